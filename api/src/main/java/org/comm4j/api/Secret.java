package org.comm4j.api;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;

/// What the ranks of a launch know and nobody else: it never shows in a message, a log or
/// [#toString()]. Immutable.
public final class Secret {
  private final byte[] bytes;

  private Secret(byte[] bytes) {
    if (bytes.length == 0) {
      throw new IllegalArgumentException(
          "secret: empty (expected: at least one byte, better 32 random ones)");
    }
    this.bytes = bytes;
  }

  /// {@return a secret of these bytes}
  ///
  /// @param bytes at least one; copied, so the caller may overwrite them
  /// @throws IllegalArgumentException if there are none
  public static Secret of(byte[] bytes) {
    return new Secret(bytes.clone());
  }

  /// {@return a secret of this text's UTF-8 bytes}
  ///
  /// @param text at least one character
  /// @throws IllegalArgumentException if there is none
  public static Secret of(String text) {
    return new Secret(text.getBytes(StandardCharsets.UTF_8));
  }

  /// {@return a copy of the bytes, for the caller to overwrite after use}
  public byte[] bytes() {
    return bytes.clone();
  }

  /// Compares in a time that does not depend on where two secrets of one length differ.
  @Override
  public boolean equals(Object other) {
    return other instanceof Secret that && MessageDigest.isEqual(bytes, that.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }

  /// {@return a text without anything of the secret}
  @Override
  public String toString() {
    return "(not shown)";
  }
}
