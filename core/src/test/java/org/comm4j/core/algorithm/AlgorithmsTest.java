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
      Calls calls = Calls.of(algorithm.kind(), size, size + 3L);
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
  /// accumulation type.
  private static void check(Algorithm algorithm, Calls calls) {
    boolean[] widenings = calls.isReduction() ? new boolean[] {false, true} : new boolean[] {false};
    long[] windows = {0};
    if (algorithm.usesPeerMemory()) {
      // All in one piece; pieces of some elements; as small as it may be.
      windows = new long[] {1 << 20, 4L * calls.size() + 20, 4L * calls.size()};
    }
    for (boolean widened : widenings) {
      for (long window : windows) {
        Calls call = calls.withWidened(widened).withWindow(window);
        if (algorithm.supports(call.shape(0))) {
          call.check(algorithm);
        }
      }
    }
  }

  /// Nothing, one, around the size, and a prime that no size divides; fewer for large groups.
  private static Set<Long> counts(int size) {
    Set<Long> counts = new TreeSet<>();
    counts.add(0L);
    counts.add(1L);
    counts.add(size - 1L);
    counts.add((long) size);
    counts.add(size + 1L);
    counts.add(size <= 9 ? 37L : 67L);
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
