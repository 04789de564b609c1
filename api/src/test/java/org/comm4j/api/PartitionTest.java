package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Arrays;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class PartitionTest {
  @Test
  void of_counts_areOneBehindTheOther() {
    Partition parts = Partition.of(3, 0, 2);

    assertThat(parts.ranks()).isEqualTo(3);
    assertThat(parts.displacement(1)).isEqualTo(3);
    assertThat(parts.displacement(2)).isEqualTo(3);
    assertThat(parts.count(2)).isEqualTo(2);
    assertThat(parts.extent()).isEqualTo(5);
    assertThat(parts).isEqualTo(Partition.of(new long[] {3, 0, 2}, new long[] {0, 3, 3}));
    assertThat(Partition.even(3, 4)).isEqualTo(Partition.of(4, 4, 4));
    assertThat(Partition.of().extent()).isZero();
  }

  @Test
  void of_arraysChangedLater_staysAsItWas() {
    long[] counts = {1, 2};
    long[] displacements = {0, 5};
    Partition parts = Partition.of(counts, displacements);

    counts[0] = 9;
    displacements[1] = 1;

    assertThat(parts).isEqualTo(Partition.of(new long[] {1, 2}, new long[] {0, 5}));
    assertThat(parts.extent()).isEqualTo(7);
  }

  @Test
  void of_anyOrderWithGapsAndEmptyParts_isAccepted() {
    Partition parts = Partition.of(new long[] {2, 0, 3, 0}, new long[] {10, 11, 1, 99});

    assertThat(parts.extent()).isEqualTo(12);
    assertThat(parts.toString()).contains("[2, 0, 3, 0]", "[10, 11, 1, 99]");
  }

  @Test
  void of_wrong_isRefusedWithRankValuesAndExpectation() {
    assertRefused(() -> Partition.of(1, -2), "rank 1", "count -2", "0 or more");
    assertRefused(
        () -> Partition.of(new long[] {1}, new long[] {-1}), "rank 0", "at -1", "0 or more");
    assertRefused(
        () -> Partition.of(new long[] {1, 2}, new long[] {0}), "displacements: 1", "2, one for");
    assertRefused(
        () -> Partition.of(new long[] {3, 1, 3}, new long[] {0, 9, 2}),
        "rank 2's part (3 elements at 2)",
        "rank 0's (3 at 0)",
        "no overlap");
    assertRefused(
        () -> Partition.of(new long[] {1, 1}, new long[] {5, 5}), "rank 1's", "rank 0's", "at 5");
    assertRefused(() -> Partition.even(-1, 4), "ranks: -1", "0 or more");
    assertRefused(() -> Partition.even(2, -4), "count -4", "0 or more");
  }

  @Test
  void of_beyond64Bits_isRefused() {
    assertThat(Partition.of(Long.MAX_VALUE).extent()).isEqualTo(Long.MAX_VALUE);
    assertRefused(
        () -> Partition.of(Long.MAX_VALUE, 1), "rank 1", "count 1", "at " + Long.MAX_VALUE);
    assertRefused(
        () -> Partition.of(Long.MAX_VALUE, Long.MAX_VALUE, 5), "rank 1", "" + Long.MAX_VALUE);
    assertRefused(
        () -> Partition.of(new long[] {2}, new long[] {Long.MAX_VALUE - 1}), "rank 0", "count 2");
    assertRefused(() -> Partition.even(3, Long.MAX_VALUE / 2), "rank 2", "64-bit");
  }

  @Test
  void of_randomParts_areRefusedExactlyWhenAnElementHasTwoOwners() {
    Random random = new Random(7);
    for (int trial = 0; trial < 2000; trial++) {
      int ranks = random.nextInt(5);
      long[] counts = random.longs(ranks, 0, 4).toArray();
      long[] displacements = random.longs(ranks, 0, 12).toArray();
      int[] owners = new int[16];
      for (int rank = 0; rank < ranks; rank++) {
        for (long i = 0; i < counts[rank]; i++) {
          owners[(int) (displacements[rank] + i)]++;
        }
      }
      boolean disjoint = Arrays.stream(owners).allMatch(n -> n <= 1);
      assertThat(isAccepted(counts, displacements))
          .as(Arrays.toString(counts) + " at " + Arrays.toString(displacements))
          .isEqualTo(disjoint);
    }
  }

  @Test
  void count_noSuchRank_isRefused() {
    Partition parts = Partition.of(1, 2);
    assertRefused(() -> parts.count(2), "rank: 2", "0..1");
    assertRefused(() -> parts.displacement(-1), "rank: -1", "0..1");
  }

  private static boolean isAccepted(long[] counts, long[] displacements) {
    try {
      return Partition.of(counts, displacements).ranks() == counts.length;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  private static void assertRefused(ThrowingCallable call, String... parts) {
    assertThatIllegalArgumentException()
        .isThrownBy(call)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts).contains("expected: "));
  }
}
