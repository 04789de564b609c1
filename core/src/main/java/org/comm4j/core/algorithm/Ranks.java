package org.comm4j.core.algorithm;

/// Arithmetic on ranks.
final class Ranks {
  private Ranks() {}

  /// The rank that stands `distance` behind another on the ring of all; before it if negative.
  static int at(int rank, int distance, int size) {
    return Math.floorMod(rank + distance, size);
  }

  /// How many times a group doubles until it has at least `size` members.
  static int doublings(int size) {
    return Integer.SIZE - Integer.numberOfLeadingZeros(size - 1);
  }

  static boolean isPowerOfTwo(int size) {
    return Integer.bitCount(size) == 1;
  }
}
