package org.comm4j.cli;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.core.kernel.Kernel;
import org.jspecify.annotations.Nullable;

/// How [Bench] measures, the same way as benchmarks of other systems with which its rows are
/// compared.
///
/// - Where every rank waits for every other one: a repetition is calls back to back, its time the
///   slowest rank's mean.
/// - Where a rank may leave early: a barrier, untimed, before each call; the time of a call is the
///   slowest rank's, that of a repetition the mean of its calls.
///
/// What ranks measured is exchanged after the timed part. On a virtual machine two processors may
/// share a cache or not, and change that every few seconds, and times of shared memory change with
/// it by a factor of 2 to 5. So a cache line is bounced between ranks 0 and 1 before and after
/// every repetition; a point has only repetitions of one state, the first that has enough of them.
final class BenchHarness {
  /// Times of a cache line that differ by less are of one state.
  private static final double STATE_RATIO = 1.5;

  /// A warm-up ends when for so long no rank's compiler has worked for more than a share of it: it
  /// takes processors from the ranks, and they from it.
  private static final long QUIET_NS = 500_000_000;

  private static final double QUIET_SHARE = 0.02;

  /// Of warm-ups, as long as one takes at least.
  private static final int MOST_WARM_UPS = 5;

  private static final @Nullable CompilationMXBean COMPILER =
      ManagementFactory.getCompilationMXBean();

  /// How long calls are made at least until it is known what one takes.
  private static final double LEAST_NS = 1e7;

  private static final int MOST_CALLS = 1 << 22;

  /// Their times are kept one by one.
  private static final int MOST_ROOTED_CALLS = 8190;

  /// How often a repetition is made again when the state has changed, or is not known any more.
  private static final int MOST_ATTEMPTS = 4;

  /// How often all repetitions are made again when something was compiled meanwhile.
  private static final int MOST_MEASUREMENTS = 5;

  /// Repetitions that take longer are not made again.
  private static final double LONG_NS = 5e8;

  private final Communicator communicator;
  private final Optional<SharedLines> lines;
  private final BenchPlan plan;
  private boolean knowsState; // has ever known it; where it is lost, ranks share a processor

  /// @param lines of all ranks, if they have any
  BenchHarness(Communicator communicator, Optional<SharedLines> lines, BenchPlan plan) {
    this.communicator = communicator;
    this.lines = lines;
    this.plan = plan;
  }

  /// What a call takes.
  ///
  /// @param crossNs the time of a cache line between ranks 0 and 1 meanwhile; 0 if not known
  record Time(double medianUs, double minUs, double crossNs) {
    /// The time of one of several things that a call does.
    Time dividedBy(int units) {
      return new Time(medianUs / units, minUs / units, crossNs);
    }

    boolean isAsNearAs(Time other) {
      return areAsNear(crossNs, other.crossNs);
    }
  }

  private record Sample(double us, double crossNs) {
    /// Whether ranks 0 and 1 were as near to each other.
    boolean isAsNearAs(double otherCrossNs) {
      return areAsNear(crossNs, otherCrossNs);
    }
  }

  private static boolean areAsNear(double crossNs, double otherCrossNs) {
    return crossNs == otherCrossNs
        || (crossNs < otherCrossNs * STATE_RATIO && otherCrossNs < crossNs * STATE_RATIO);
  }

  /// Tells when calls have been made so often that they are compiled.
  final class WarmUp {
    private final long beginNs = System.nanoTime();
    private long lookedNs; // since the beginning
    private long compiledMs = compilerMs();

    /// Whether the warm-up has taken as long as it is meant to, and then as long as any rank
    /// compiles; a collective.
    ///
    /// @return the same on every rank
    boolean isOver() {
      long nowMs = compilerMs();
      long[] now =
          slowest(new long[] {System.nanoTime() - beginNs, nowMs - compiledMs, warmingUp()});
      long spentNs = now[0];
      long enoughNs = plan.warmUpNs();
      if (spentNs >= enoughNs * MOST_WARM_UPS) {
        return true;
      }
      long sinceNs = spentNs - lookedNs;
      if (sinceNs < Math.min(QUIET_NS, enoughNs)) {
        return false;
      }
      lookedNs = spentNs;
      compiledMs = nowMs;
      return spentNs >= enoughNs && now[1] * 1e6 <= QUIET_SHARE * sinceNs && now[2] == 0;
    }
  }

  /// Makes a call for a while; a collective.
  ///
  /// @return what it takes, in ns
  private double nsPerCall(Runnable call, boolean rooted) {
    int calls = 1;
    double ns = 0;
    while (true) {
      ns = (rooted ? oneByOne(call, calls) : backToBack(call, calls, ns)) * 1e3;
      if (ns * calls >= LEAST_NS || calls >= (rooted ? MOST_ROOTED_CALLS : MOST_CALLS) / 2) {
        return ns;
      }
      calls *= 2;
    }
  }

  /// Measures a call that is compiled; a collective. What the system compiles all the same takes
  /// the ranks' processors meanwhile, and is not what the call takes: then it measures again.
  ///
  /// @return the same on every rank
  Time measure(Runnable call, boolean rooted) {
    return measure(call, rooted, MOST_MEASUREMENTS);
  }

  /// Goes once through all that [#measure] does, whatever is compiled meanwhile.
  void warmUp(Runnable call, boolean rooted) {
    var _ = measure(call, rooted, 1);
  }

  private Time measure(Runnable call, boolean rooted, int most) {
    for (int left = most - 1; ; left--) {
      long startNs = System.nanoTime();
      long startMs = compilerMs();
      long warming = warmingUp();
      Time time = measureOnce(call, rooted);
      long[] used =
          slowest(
              new long[] {
                System.nanoTime() - startNs, compilerMs() - startMs, warming + warmingUp()
              });
      boolean quiet = used[1] * 1e6 <= QUIET_SHARE * used[0] && used[2] == 0;
      if (quiet || left == 0 || used[0] > LONG_NS * left) {
        return time;
      }
    }
  }

  private Time measureOnce(Runnable call, boolean rooted) {
    double perCallNs = nsPerCall(call, rooted);
    int calls = calls(perCallNs, rooted);
    int most = plan.repetitions() * (perCallNs * calls > LONG_NS ? 1 : MOST_ATTEMPTS);
    List<List<Sample>> states = new ArrayList<>();
    double before = crossNs();
    knowsState |= before > 0;
    for (int repetition = 1; repetition <= most; repetition++) {
      double us = rooted ? oneByOne(call, calls) : backToBack(call, calls, perCallNs);
      Sample sample = new Sample(us, crossNs());
      boolean moved = !sample.isAsNearAs(before);
      boolean disturbed = knowsState && (before == 0 || sample.crossNs() == 0);
      before = sample.crossNs();
      if ((moved || disturbed) && repetition < most) {
        continue;
      }
      List<Sample> state = stateOf(sample, states);
      state.add(sample);
      if (state.size() == plan.repetitions()) {
        break;
      }
    }
    return time(Collections.max(states, Comparator.comparingInt(List::size)));
  }

  private static List<Sample> stateOf(Sample sample, List<List<Sample>> states) {
    for (List<Sample> state : states) {
      if (state.getFirst().isAsNearAs(sample.crossNs())) {
        return state;
      }
    }
    states.add(new ArrayList<>());
    return states.getLast();
  }

  private static Time time(List<Sample> samples) {
    double[] us = samples.stream().mapToDouble(Sample::us).sorted().toArray();
    double[] cross = samples.stream().mapToDouble(Sample::crossNs).sorted().toArray();
    int middle = us.length / 2;
    double median = us.length % 2 == 1 ? us[middle] : (us[middle - 1] + us[middle]) / 2;
    return new Time(median, us[0], cross[cross.length / 2]);
  }

  private static long warmingUp() {
    return Kernel.areWarmingUp() ? 1 : 0;
  }

  private static long compilerMs() {
    return COMPILER != null && COMPILER.isCompilationTimeMonitoringSupported()
        ? COMPILER.getTotalCompilationTime()
        : 0;
  }

  private int calls(double perCallNs, boolean rooted) {
    int most = rooted ? MOST_ROOTED_CALLS : MOST_CALLS;
    return plan.iterations() > 0
        ? Math.min(plan.iterations(), most)
        : Math.clamp((long) (plan.repetitionNs() / Math.max(1, perCallNs)), 1, most);
  }

  /// In µs a call.
  ///
  /// @param perCallNs what one takes, as far as is known: some ranks may have nothing to do
  private double backToBack(Runnable call, int calls, double perCallNs) {
    barrier();
    long start = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      call.run();
    }
    long ns = System.nanoTime() - start;
    long expectedNs = (long) (calls * perCallNs);
    lines.ifPresentOrElse(shared -> shared.barrier(expectedNs), communicator::barrier);
    return max(ns) / 1e3 / calls;
  }

  /// In µs a call.
  private double oneByOne(Runnable call, int calls) {
    long[] ns = new long[calls];
    for (int i = 0; i < calls; i++) {
      barrier();
      long start = System.nanoTime();
      call.run();
      ns[i] = System.nanoTime() - start;
    }
    barrier();
    return Arrays.stream(slowest(ns)).sum() / 1e3 / calls;
  }

  private void barrier() {
    lines.ifPresentOrElse(SharedLines::barrier, communicator::barrier);
  }

  private long max(long mine) {
    return slowest(new long[] {mine})[0];
  }

  /// The greatest of all ranks, one by one; by hand, since a reduction would be warmed up beside
  /// what is measured.
  private long[] slowest(long[] mine) {
    long[] all = new long[mine.length * communicator.size()];
    communicator.allGather(CommData.of(mine), CommData.of(all));
    long[] most = new long[mine.length];
    for (int i = 0; i < all.length; i++) {
      most[i % mine.length] = Math.max(most[i % mine.length], all[i]);
    }
    return most;
  }

  private double crossNs() {
    double mine = lines.isPresent() ? lines.get().probe() : 0;
    return max(Math.round(1e3 * mine)) / 1e3;
  }
}
