package org.comm4j.api;

/// The arithmetic of ranges: whether one is inside a whole, whether two overlap.
final class Ranges {
  private Ranges() {}

  static void check(long from, long count, long whole) {
    if (from < 0 || count < 0 || from > whole - count) {
      throw new IllegalArgumentException(
          "slice: %d elements from %d (expected: inside 0..%d, the elements of the view)"
              .formatted(count, from, whole));
    }
  }

  /// Whether two ranges have a byte in common. Addresses may wrap around at the end of 64 bits.
  static boolean overlap(long address, long bytes, long otherAddress, long otherBytes) {
    return bytes > 0
        && otherBytes > 0
        && (Long.compareUnsigned(otherAddress - address, bytes) < 0
            || Long.compareUnsigned(address - otherAddress, otherBytes) < 0);
  }
}
