package org.comm4j.core.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.ScheduleCheck;
import org.comm4j.core.schedule.Step;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

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
            new OneStageReduction(CollectiveKind.ALL_REDUCE, small),
            new TwoStageReduction(CollectiveKind.ALL_REDUCE, small),
            new OneStageReduction(CollectiveKind.REDUCE, small),
            new TwoStageReduction(CollectiveKind.REDUCE, small),
            new PullReduceScatter(CollectiveKind.REDUCE_SCATTER, small),
            new PullReduceScatter(CollectiveKind.REDUCE_SCATTER_V, small),
            new OneStageReduction(CollectiveKind.SCAN, small),
            new OneStageReduction(CollectiveKind.EXCLUSIVE_SCAN, small),
            new HierarchicalReduce(small),
            new HierarchicalAllReduce(small)));
  }

  @ParameterizedTest
  @MethodSource("algorithms")
  void plan_everySize_doesTheCollective(Algorithm algorithm) {
    for (int size = 1; size <= 33; size++) {
      for (long count : counts(algorithm, size)) {
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

  /// The check sees each fault of this kind, and no plan has a step that it does not need.
  @ParameterizedTest
  @MethodSource("algorithms")
  void plan_anyStepLeftOut_isNoticed(Algorithm algorithm) {
    int size = 6;
    Calls calls = Calls.of(algorithm.kind(), size, 13).withRoot(isRooted(algorithm) ? 2 : 0);
    if (algorithm.usesPeerMemory()) {
      calls = calls.withWindow(4L * size + 20);
    }
    if (algorithm.name().equals("hierarchical")) {
      calls = calls.withHosts(2);
    }
    if (!algorithm.supports(calls.shape(0))) {
      return; // powers of two
    }
    for (int rank = 0; rank < size; rank++) {
      Schedule plan = algorithm.plan(calls.shape(rank), rank);
      for (int index = 0; index < plan.rounds(); index++) {
        List<Step> steps = plan.round(index).steps();
        for (int left = 0; left < steps.size(); left++) {
          List<Step> others = new ArrayList<>(steps);
          Step missing = others.remove(left);
          if (algorithm instanceof HierarchicalAllReduce && missing instanceof Step.Copy) {
            continue; // the leaders' part is in place: it may copy what is there already
          }
          Schedule wrong = withRound(plan, index, new Round(others));
          Calls call = calls;
          int wrongRank = rank;
          assertThatThrownBy(() ->
                  ScheduleCheck.check(
                      size,
                      call::shape,
                      r -> r == wrongRank ? wrong : algorithm.plan(call.shape(r), r),
                      algorithm.order() == Algorithm.Order.LEFT_FOLD,
                      false))
              .as("rank %d, round %d without %s", rank, index, missing)
              .isInstanceOf(ScheduleCheck.Fault.class);
        }
      }
    }
  }

  private static Schedule withRound(Schedule plan, int index, Round round) {
    return Schedule.ofPeerMemory(
        plan.rounds(),
        plan.workCount(),
        plan.scratchCount(),
        plan.stages(),
        at -> at == index ? round : plan.round(at));
  }

  /// Leaders of hosts do each of what there is for them.
  @ParameterizedTest
  @CsvSource({
    "BROADCAST, 3, 20000", // scatter-ring
    "REDUCE, 2, 20000", // linear
    "REDUCE, 5, 7000", // binomial
    "REDUCE, 5, 20000", // pairwise
    "ALL_REDUCE, 2, 5000", // gather-fold
    "ALL_REDUCE, 2, 20000", // pairwise
    "ALL_REDUCE, 5, 5000", // direct
    "ALL_REDUCE, 17, 1000", // recursive-doubling
    "ALL_REDUCE, 17, 5000", // rabenseifner
  })
  void plan_hostsWithMoreData_doesTheCollective(CollectiveKind kind, int hosts, long count) {
    Algorithm algorithm = Algorithms.find(kind, "hierarchical").orElseThrow();
    Calls calls = Calls.of(kind, 2 * hosts, count).withWindow(1 << 20).withHosts(Calls.PAIRS);
    Calls rooted = calls.withRoot(calls.isRooted() ? 3 : 0);
    rooted.check(algorithm, rooted.hasInPlace());
    if (rooted.isReduction()) {
      rooted.withWidened(true).check(algorithm, false);
    }
  }

  /// Logarithmic algorithms at the size that the simulator promises.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "BARRIER dissemination",
        "BROADCAST binomial",
        "REDUCE binomial",
        "ALL_REDUCE recursive-doubling",
        "ALL_REDUCE rabenseifner",
        "SCAN recursive-doubling",
        "EXCLUSIVE_SCAN recursive-doubling",
        "SCAN chain",
      })
  void plan_thousandsOfRanks_doesTheCollective(String name) {
    String[] words = name.split(" ", -1);
    CollectiveKind kind = CollectiveKind.valueOf(words[0]);
    Algorithm algorithm = Algorithms.find(kind, words[1]).orElseThrow();
    int[] sizes =
        Boolean.getBoolean("comm4j.full") ? new int[] {1021, 2048, 4096} : new int[] {1021, 2048};
    for (int size : sizes) {
      Calls.of(kind, size, 3).check(algorithm, false);
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
      boolean inHosts = algorithm.name().equals("hierarchical");
      int lastHosts = inHosts ? Calls.HOSTS - 1 : 0;
      for (int hosts = inHosts ? 1 : 0; hosts <= lastHosts; hosts++) {
        if (!redundant && algorithm.supports(call.withHosts(hosts).shape(0))) {
          call.withHosts(hosts).check(algorithm, inPlace);
        }
      }
    }
  }

  /// Nothing, one, around the size, and for small groups a prime that is many pieces; between 16
  /// and the next power of two fewer. Where buffers hold a part for every rank the size means
  /// little to the count.
  private static Set<Long> counts(Algorithm algorithm, int size) {
    boolean hasPartPerRank = Calls.of(algorithm.kind(), size, 0).hasPartPerRank();
    if (size > 17 && size < 31) {
      return Set.of(1L, hasPartPerRank ? 5L : size + 1L);
    }
    Set<Long> counts = new TreeSet<>(Set.of(0L, 1L, 5L));
    if (size <= 16 || !hasPartPerRank) {
      counts.add(size - 1L);
      counts.add((long) size);
      counts.add(size + 1L);
    }
    if (size <= 16) {
      counts.add(size <= 9 ? 67L : 37L);
    }
    return counts;
  }

  private static int[] roots(Algorithm algorithm, int size) {
    if (!isRooted(algorithm)) {
      return new int[] {0};
    }
    if (size <= 9) {
      return java.util.stream.IntStream.range(0, size).toArray();
    }
    return new int[] {0, 1, size / 2, size - 1};
  }

  private static boolean isRooted(Algorithm algorithm) {
    return Calls.of(algorithm.kind(), 2, 0).isRooted();
  }
}
