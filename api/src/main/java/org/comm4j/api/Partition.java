package org.comm4j.api;

import java.util.Arrays;
import java.util.Objects;

/// Which part of a buffer belongs to which rank: a count and a displacement for each, in elements.
///
/// Immutable; arrays are copied. The parts are disjoint: that two ranks' parts overlap is refused.
public final class Partition {
  private final long[] counts;
  private final long[] displacements;
  private final long extent;

  private Partition(long[] counts, long[] displacements) {
    this.counts = counts;
    this.displacements = displacements;
    this.extent = checkedExtent(counts, displacements);
  }

  /// {@return parts one behind the other, rank 0's first}
  ///
  /// @param counts how many elements each rank has, at least 0
  public static Partition of(long... counts) {
    long[] own = Objects.requireNonNull(counts, "counts").clone();
    long[] displacements = new long[own.length];
    for (int rank = 1; rank < own.length; rank++) {
      displacements[rank] = displacements[rank - 1] + Math.max(0, own[rank - 1]);
    }
    return new Partition(own, displacements);
  }

  /// {@return parts anywhere in the buffer}
  ///
  /// @param counts how many elements each rank has, at least 0
  /// @param displacements where each rank's first element stands, at least 0
  /// @throws IllegalArgumentException if the lengths differ, a number is negative or parts overlap
  public static Partition of(long[] counts, long[] displacements) {
    Objects.requireNonNull(counts, "counts");
    Objects.requireNonNull(displacements, "displacements");
    if (counts.length != displacements.length) {
      throw new IllegalArgumentException(
          "displacements: %d of them (expected: %d, one for each count)"
              .formatted(displacements.length, counts.length));
    }
    return new Partition(counts.clone(), displacements.clone());
  }

  /// {@return equal parts one behind the other}
  ///
  /// @param ranks how many ranks have a part, at least 0
  /// @param count how many elements each part has, at least 0
  public static Partition even(int ranks, long count) {
    if (ranks < 0) {
      throw new IllegalArgumentException("ranks: " + ranks + " (expected: 0 or more)");
    }
    long[] counts = new long[ranks];
    Arrays.fill(counts, count);
    return of(counts);
  }

  /// {@return how many ranks have a part}
  public int ranks() {
    return counts.length;
  }

  /// {@return how many elements a rank's part has}
  ///
  /// @param rank in `0..ranks()-1`
  /// @throws IllegalArgumentException if there is no such rank
  public long count(int rank) {
    Checks.checkRank(rank, counts.length);
    return counts[rank];
  }

  /// {@return where a rank's part starts}
  ///
  /// @param rank in `0..ranks()-1`
  /// @throws IllegalArgumentException if there is no such rank
  public long displacement(int rank) {
    Checks.checkRank(rank, counts.length);
    return displacements[rank];
  }

  /// {@return how long a buffer must be to hold every part: the end of the last one}
  public long extent() {
    return extent;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Partition that
        && Arrays.equals(counts, that.counts)
        && Arrays.equals(displacements, that.displacements);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(counts) + Arrays.hashCode(displacements);
  }

  @Override
  public String toString() {
    return "counts " + Arrays.toString(counts) + " at " + Arrays.toString(displacements);
  }

  private static long checkedExtent(long[] counts, long[] displacements) {
    long extent = 0;
    boolean ascending = true;
    for (int rank = 0; rank < counts.length; rank++) {
      if (counts[rank] < 0 || displacements[rank] < 0) {
        throw new IllegalArgumentException(
            "rank %d's part: count %d at %d (expected: both 0 or more)"
                .formatted(rank, counts[rank], displacements[rank]));
      }
      if (displacements[rank] > Long.MAX_VALUE - counts[rank]) {
        throw new IllegalArgumentException(
            "rank %d's part: count %d at %d (expected: an end within a signed 64-bit number)"
                .formatted(rank, counts[rank], displacements[rank]));
      }
      if (counts[rank] > 0) {
        ascending &= displacements[rank] >= extent;
        extent = Math.max(extent, displacements[rank] + counts[rank]);
      }
    }
    if (!ascending) {
      checkDisjoint(counts, displacements);
    }
    return extent;
  }

  private static void checkDisjoint(long[] counts, long[] displacements) {
    Integer[] ranks = new Integer[counts.length];
    Arrays.setAll(ranks, i -> i);
    Arrays.sort(ranks, (a, b) -> Long.compare(displacements[a], displacements[b]));
    int last = -1;
    for (int rank : ranks) {
      if (counts[rank] == 0) {
        continue;
      }
      if (last >= 0 && displacements[rank] < displacements[last] + counts[last]) {
        throw new IllegalArgumentException(
            "rank %d's part (%d elements at %d) overlaps rank %d's (%d at %d) (expected: no overlap)"
                .formatted(
                    rank,
                    counts[rank],
                    displacements[rank],
                    last,
                    counts[last],
                    displacements[last]));
      }
      last = rank;
    }
  }
}
