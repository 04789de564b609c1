package org.comm4j.core.algorithm;

/// The largest hypercube in a group of any size, seen from one rank. Where the size is no power of two,
/// the first ranks are pairs `0 1 | 2 3 | …`: the even one is a guest that gives its input to the odd
/// one, its host, and gets the result from it. The others, and the hosts, are the cube's corners,
/// numbered in rank order.
///
///     p = 6   ranks   0→1  2→3  4  5
///             corners   0    1  2  3
///
/// So corners stand for ranks in ascending order, and combining lower corners in front of higher ones
/// keeps the contributions of neighbours together.
record Cube(int size, int rank) {
  /// How many corners.
  int corners() {
    return Integer.highestOneBit(size);
  }

  private int pairs() {
    return size - corners();
  }

  /// Whether this rank is no corner.
  boolean isGuest() {
    return rank < 2 * pairs() && rank % 2 == 0;
  }

  /// Whether this rank is a corner that has a guest.
  boolean isHost() {
    return rank < 2 * pairs() && rank % 2 == 1;
  }

  /// A guest's host.
  int host() {
    return rank + 1;
  }

  /// A host's guest.
  int guest() {
    return rank - 1;
  }

  /// This rank's corner. Not of a guest.
  int corner() {
    return rank < 2 * pairs() ? rank / 2 : rank - pairs();
  }

  /// The rank at a corner.
  int rankAt(int corner) {
    return corner < pairs() ? 2 * corner + 1 : corner + pairs();
  }

  /// Whether a corner has a guest.
  boolean hasGuest(int corner) {
    return corner < pairs();
  }
}
