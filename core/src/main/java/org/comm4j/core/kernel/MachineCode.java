package org.comm4j.core.kernel;

import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/// Machine code, written down line by line. To be run it has to be put into executable memory, for
/// which backends have native access.
public final class MachineCode {
  private MachineCode() {}

  /// {@return the code, or null where the processor is another}
  ///
  /// @param listing of x86-64 in the System V convention: in each line the bytes in hexadecimal
  ///   digits, a blank, and what they mean
  public static byte @Nullable [] ofX86(String listing) {
    if (!"amd64".equals(System.getProperty("os.arch"))) {
      return null;
    }
    var hex = new StringBuilder();
    listing
        .lines()
        .forEach(
            line -> hex.append(line, 0, line.indexOf(' ') < 0 ? line.length() : line.indexOf(' ')));
    return HexFormat.of().parseHex(hex);
  }
}
