package org.comm4j.api.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OptionTextTest {
  private enum Fruit {
    APPLE,
    PEAR,
    PLUM
  }

  private static OptionText text(String value) {
    return new OptionText("COMM_X_Y", value);
  }

  private static void assertRefused(ThrowingCallable reading, String value, String expected) {
    assertThatThrownBy(reading)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("COMM_X_Y: '%s' (expected: %s)", value, expected);
  }

  @Test
  void of_optionOfTheConfig_isFound() {
    CommConfig config = CommConfig.builder().option("COMM_X_Y", "pear").build();
    assertThat(OptionText.of(config, "COMM_X_Y")).hasValue(text("pear"));
    assertThat(OptionText.of(config, "COMM_X_Z")).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"pear", "PEAR", "Pear", " pear "})
  void word_anyCase_isTheConstant(String value) {
    assertThat(text(value).word(Fruit.class)).isEqualTo(Fruit.PEAR);
  }

  @Test
  void word_another_isRefusedWithAllWords() {
    assertRefused(() -> text("fig").word(Fruit.class), "fig", "apple, pear or plum");
    assertRefused(
        () -> text("fig").word(Fruit.class, "take plums"),
        "fig",
        "apple, pear or plum; take plums");
    assertThat(OptionText.words(Fruit.class)).isEqualTo("apple, pear or plum");
  }

  @ParameterizedTest
  @CsvSource({"1, true", "true, true", "TRUE, true", "0, false", "false, false", "False, false"})
  void flag_anyForm_isRead(String value, boolean expected) {
    assertThat(text(value).flag()).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(strings = {"2", "on", "yes", "auto"})
  void flag_another_isRefused(String value) {
    assertRefused(() -> text(value).flag(), value, "1 or true, 0 or false");
  }

  @Test
  void number_ofItsRange_isRead() {
    assertThat(text("1").number(1, 512)).isOne();
    assertThat(text(" 512 ").number(1, 512)).isEqualTo(512);
    assertThat(text("+0007").number(1, 512)).isEqualTo(7);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "513", "99999999999", "1.5", "1KiB", "one"})
  void number_another_isRefused(String value) {
    assertRefused(() -> text(value).number(1, 512), value, "a whole number, 1..512");
    assertRefused(
        () -> text(value).number(1, 512, "take 7"), value, "a whole number, 1..512; take 7");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "4096, 4096",
    "+4096, 4096",
    "4096B, 4096",
    "4k, 4096",
    "4K, 4096",
    "4KiB, 4096",
    "4kib, 4096",
    "' 4 KIB ', 4096",
    "3MiB, 3145728",
    "3m, 3145728",
    "1GiB, 1073741824",
    "1g, 1073741824",
    "1TiB, 1099511627776",
    "1t, 1099511627776",
    "000000000000000000000000016MiB, 16777216",
    "9999999999TiB, 9223372036854775807"
  })
  void bytes_anyForm_isRead(String value, long expected) {
    assertThat(OptionText.bytes(value)).hasValue(expected);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", "KiB", "-1", "4KB", "4Ki", "4.5KiB", "0x10", "4KiB8", "4\n4", "4\nKiB", "-0", "٤GiB"
      })
  void bytes_another_isNone(String value) {
    assertThat(OptionText.bytes(value)).isEmpty();
  }

  @Test
  void size_ofItsRange_isRead() {
    assertThat(text("1024").size(1024, 65_504, 32)).isEqualTo(1024);
    assertThat(text("65504").size(1024, 65_504, 32)).isEqualTo(65_504);
    assertThat(text("16MiB").size(1 << 16, 1 << 30, 4096)).isEqualTo(16 << 20);
  }

  @ParameterizedTest
  @ValueSource(strings = {"992", "1500", "64KiB", "9999999999TiB", "-32", "large"})
  void size_another_isRefused(String value) {
    assertRefused(
        () -> text(value).size(1024, 65_504, 32),
        value,
        "a multiple of 32 from 1KiB to 65504, in bytes or with KiB, MiB, GiB or TiB");
  }

  @Test
  void size_withoutStep_isRefusedAsASize() {
    assertRefused(
        () -> text("0").size(1 << 20, 1L << 40, 1),
        "0",
        "a size from 1MiB to 1TiB, in bytes or with KiB, MiB, GiB or TiB");
  }

  @Test
  void refused_optionOfASecret_isNotShown() {
    assertThat(new OptionText("COMM_X_TOKEN", "abc").refused("a token"))
        .hasMessage("COMM_X_TOKEN: '(not shown)' (expected: a token)");
  }
}
