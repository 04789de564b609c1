package org.comm4j.core.algorithm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.comm4j.core.schedule.CollectiveKind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every algorithm does what its collective promises: proved with symbols, for every size up to 33
/// and some beyond.
class AlgorithmsTest {
  private static final int[] LARGER_SIZES = {47, 63, 64};

  static Stream<Algorithm> algorithms() {
    // Pieces and blocks of few elements, so that small counts are many of them.
    Cut small = new Cut(1 << 20, 8);
    return Stream.concat(
        Algorithms.all().stream(),
        Stream.of(
            new ChainScan(CollectiveKind.SCAN, 12),
            new ChainScan(CollectiveKind.EXCLUSIVE_SCAN, 12),
            new OneStageAllReduce(small),
            new TwoStageAllReduce(small),
            new OneStageReduce(small),
            new TwoStageReduce(small),
            new PullReduceScatter(CollectiveKind.REDUCE_SCATTER, small),
            new PullReduceScatter(CollectiveKind.REDUCE_SCATTER_V, small),
            new PullScan(CollectiveKind.SCAN, small),
            new PullScan(CollectiveKind.EXCLUSIVE_SCAN, small)));
  }

  @ParameterizedTest
  @MethodSource("algorithms")
  void plan_everySize_doesTheCollective(Algorithm algorithm) {
    for (int size = 1; size <= 33; size++) {
      for (long count : counts(size)) {
        for (int root : roots(algorithm, size)) {
          check(algorithm, Calls.of(algorithm.kind(), size, count).withRoot(root));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("algorithms")
  void plan_largerSizes_doesTheCollective(Algorithm algorithm) {
    for (int size : LARGER_SIZES) {
      Calls calls = Calls.of(algorithm.kind(), size, 3);
      if (!calls.hasPartPerRank()) {
        calls = Calls.of(algorithm.kind(), size, size + 3L);
      }
      check(algorithm, calls.withRoot(calls.isRooted() ? size / 2 : 0));
    }
  }

  @Test
  void names_perKind_areUnique() {
    for (CollectiveKind kind : CollectiveKind.values()) {
      assertThat(Algorithms.of(kind)).extracting(Algorithm::name).doesNotHaveDuplicates();
    }
  }

  /// Tries the shape as messages or with windows of some sizes, with and without a wider
  /// accumulation type, out of place and in place. In large groups not all of that with all.
  private static void check(Algorithm algorithm, Calls calls) {
    // All in one piece; pieces of some elements; as small as it may be.
    long[] windows = {1 << 20, 4L * calls.size() + 20, 4L * calls.size()};
    boolean all = calls.size() <= 9;
    for (int variant = 0; variant < (all ? 12 : 3); variant++) {
      long window = algorithm.usesPeerMemory() ? windows[variant % 3] : 0;
      boolean widened = all ? variant / 3 % 2 == 1 : variant % 2 == 1 && calls.isReduction();
      boolean inPlace = (all ? variant / 6 : variant % 2) == 1;
      boolean redundant =
          (widened && !calls.isReduction())
              || (inPlace && !calls.hasInPlace())
              || (window == 0 && variant % 3 > 0 && (all || variant == 2));
      Calls call = calls.withWidened(widened).withWindow(window);
      if (!redundant && algorithm.supports(call.shape(0))) {
        call.check(algorithm, inPlace);
      }
    }
  }

  /// Nothing, one, around the size, and for small groups a prime that is many pieces.
  private static Set<Long> counts(int size) {
    Set<Long> counts = new TreeSet<>(Set.of(0L, 1L, size + 1L));
    counts.add(size - 1L);
    counts.add((long) size);
    if (size <= 16) {
      counts.add(size <= 9 ? 67L : 37L);
    }
    return counts;
  }

  private static int[] roots(Algorithm algorithm, int size) {
    if (!Calls.of(algorithm.kind(), size, 0).isRooted()) {
      return new int[] {0};
    }
    if (size <= 9) {
      return java.util.stream.IntStream.range(0, size).toArray();
    }
    return new int[] {0, 1, size / 2, size - 1};
  }
}
