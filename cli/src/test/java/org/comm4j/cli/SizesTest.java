package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SizesTest {
  @Test
  void parse_range_goesUpByFourAndHasBothEnds() {
    assertThat(Sizes.parse("8B..1KiB").bytes()).containsExactly(8L, 32L, 128L, 512L, 1024L);
    assertThat(Sizes.parse("32MiB..64MiB").bytes()).containsExactly(32L << 20, 64L << 20);
    assertThat(Sizes.parse("1..8*2").bytes()).containsExactly(1L, 2L, 4L, 8L);
    assertThat(Sizes.parse("4k..4k").bytes()).containsExactly(4096L);
  }

  @Test
  void parse_list_keepsItsOrder() {
    assertThat(Sizes.parse("1MiB, 8,2g").bytes()).containsExactly(1L << 20, 8L, 2L << 30);
    assertThat(Sizes.parse("1TiB").bytes()).containsExactly(1L << 40);
  }

  @ParameterizedTest
  @CsvSource({
    "8Q, 'a number with B, KiB, MiB, GiB or TiB'",
    "4KB, write 4KiB",
    "'', write for example 4KiB",
    "-8, write for example 4KiB",
    "64MiB..8B, write for example 8B..64MiB*4",
    "0..8, write for example 8B..64MiB*4",
    "8..64*1, write for example 8B..64MiB*4",
    "99999999999GiB, write a smaller number"
  })
  void parse_nonsense_namesValueExpectationAndRemedy(String text, String remedy) {
    assertThatThrownBy(() -> Sizes.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + text + "'")
        .hasMessageContaining("(expected: ")
        .hasMessageContaining(remedy);
  }

  @Test
  void text_wholeUnits_namesTheLargest() {
    assertThat(Sizes.text(1 << 20)).isEqualTo("1 MiB");
    assertThat(Sizes.text(1025)).isEqualTo("1025 B");
    assertThat(Sizes.roughly(1536)).isEqualTo("1.5 KiB");
  }
}
