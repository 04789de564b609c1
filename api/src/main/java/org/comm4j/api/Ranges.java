package org.comm4j.api;

/// The one check of a range inside a whole.
final class Ranges {
  private Ranges() {}

  static void check(long from, long count, long whole) {
    if (from < 0 || count < 0 || from > whole - count) {
      throw new IllegalArgumentException(
          "slice: %d elements from %d (expected: inside 0..%d)".formatted(count, from, whole));
    }
  }
}
