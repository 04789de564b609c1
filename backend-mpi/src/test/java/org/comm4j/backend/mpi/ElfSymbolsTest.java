package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ElfSymbolsTest {
  private Path file = Path.of("");

  @BeforeEach
  void name(@TempDir Path folder) {
    file = folder.resolve("libx.so");
  }

  @Test
  void of_library_tellsNamesAndTexts() throws IOException {
    new FakeLibrary()
        .soname("libx.so.1")
        .exports("open", "close")
        .imports("malloc")
        .hides("inner")
        .text("x_version", "1.2.3")
        .write(file);

    try (ElfSymbols symbols = ElfSymbols.of(file)) {
      assertThat(symbols.soname()).hasValue("libx.so.1");
      assertThat(symbols.exports("open")).isTrue();
      assertThat(symbols.exports("close")).isTrue();
      assertThat(symbols.exports("malloc")).isFalse();
      assertThat(symbols.exports("inner")).isFalse();
      assertThat(symbols.hasPrefix("mall")).isTrue();
      assertThat(symbols.hasPrefix("inn")).isFalse();
      assertThat(symbols.text("x_version")).hasValue("1.2.3");
      assertThat(symbols.text("none")).isEmpty();
    }
  }

  @Test
  void of_noLibrary_saysWhy() throws IOException {
    refuses(new byte[0], "is no shared library: it has 0 bytes");
    refuses(new byte[100], "is no shared library: it does not begin as ELF files do");
    refuses(
        "/* GNU ld script */ INPUT(libmpi.so.40)".repeat(3).getBytes(StandardCharsets.US_ASCII),
        "ELF files do");
    assertThatThrownBy(() -> ElfSymbols.of(file.resolveSibling("none")))
        .isInstanceOf(ElfSymbols.FormatException.class)
        .hasMessage("is not there");
    assertThatThrownBy(() -> ElfSymbols.of(file.resolveSibling(""))).hasMessage("is no file");
  }

  @Test
  void of_foreignLibrary_saysWhose() throws IOException {
    byte[] narrow = library();
    narrow[4] = 1;
    refuses(narrow, "is a library of 32 bits, this process has 64");

    byte[] foreign = library();
    buffer(foreign).putShort(18, (short) 8);
    refuses(foreign, "for other processors (ELF machine 8), this one is");

    byte[] program = library();
    buffer(program).putShort(16, (short) 1);
    refuses(program, "its ELF type is 1 (expected: 3)");

    byte[] bare = library();
    buffer(bare).putShort(60, (short) 0);
    refuses(bare, "has no section headers");
  }

  /// Wherever it ends, it says so or is no longer a library.
  @Test
  void of_truncated_saysWhere() throws IOException {
    byte[] whole = library();
    for (int bytes = 0; bytes < whole.length; bytes++) {
      refuses(
          Arrays.copyOf(whole, bytes), bytes < 64 ? "it has " + bytes : "is truncated: it ends");
    }
  }

  /// No nonsense in a file costs more than an exception that says so.
  @Test
  void of_damaged_isReadOrRefused() throws IOException {
    byte[] whole = library();
    Random random = new Random(11);
    for (int trial = 0; trial < 3000; trial++) {
      byte[] damaged = whole.clone();
      for (int i = random.nextInt(4); i >= 0; i--) {
        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
      }
      Files.write(file, damaged);
      try (ElfSymbols symbols = ElfSymbols.of(file)) {
        var _ = symbols.text("x_version");
      } catch (ElfSymbols.FormatException e) {
        assertThat(e).hasMessageMatching("(is|has) .*");
      }
    }
  }

  private static byte[] library() {
    return new FakeLibrary()
        .soname("libx.so.1")
        .exports("open", "close")
        .text("x_version", "1.2.3")
        .bytes();
  }

  private static ByteBuffer buffer(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
  }

  private void refuses(byte[] bytes, String why) throws IOException {
    Files.write(file, bytes);
    assertThatThrownBy(() -> ElfSymbols.of(file))
        .isInstanceOf(ElfSymbols.FormatException.class)
        .hasMessageContaining(why);
  }
}
