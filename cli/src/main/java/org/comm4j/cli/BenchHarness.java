package org.comm4j.cli;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
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
  /// Times of a cache line below are those of processors that share a cache.
  private static final double NEAR_NS = 120;

  /// A call that takes less than this share of the fastest so far is still being compiled.
  private static final double STEADY = 0.9;

  private static final int MOST_WARM_UPS = 20; // as long as it takes at least

  /// How long no rank's compiler has had anything to do when a warm-up ends: it takes processors
  /// from the ranks.
  private static final long QUIET_NS = 100_000_000;

  private static final @Nullable CompilationMXBean COMPILER =
      ManagementFactory.getCompilationMXBean();

  private static final int MOST_CALLS = 1 << 22;

  /// Their times are kept one by one.
  private static final int MOST_ROOTED_CALLS = 8190;

  /// How often a repetition is made again when the state has changed, or is not known any more.
  private static final int MOST_ATTEMPTS = 4;

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
  }

  private record Sample(double us, double crossNs) {
    boolean isNear() {
      return crossNs < NEAR_NS;
    }
  }

  /// Measures a call; a collective.
  ///
  /// @param first whether it is the first of its kind, not yet compiled
  /// @return the same on every rank
  Time measure(Runnable call, boolean rooted, boolean first) {
    double perCallNs = warmUp(call, rooted, first);
    int calls = calls(perCallNs, rooted);
    int most = plan.repetitions() * (perCallNs * calls > LONG_NS ? 1 : MOST_ATTEMPTS);
    List<Sample> near = new ArrayList<>();
    List<Sample> far = new ArrayList<>();
    double before = crossNs();
    knowsState |= before > 0;
    for (int repetition = 1; repetition <= most; repetition++) {
      double us = rooted ? oneByOne(call, calls) : backToBack(call, calls);
      Sample sample = new Sample(us, crossNs());
      boolean moved = new Sample(us, before).isNear() != sample.isNear();
      boolean disturbed = knowsState && (before == 0 || sample.crossNs() == 0);
      before = sample.crossNs();
      if ((moved || disturbed) && repetition < most) {
        continue;
      }
      List<Sample> state = sample.isNear() ? near : far;
      state.add(sample);
      if (state.size() == plan.repetitions()) {
        break;
      }
    }
    return time(far.size() > near.size() ? far : near);
  }

  private static Time time(List<Sample> samples) {
    double[] us = samples.stream().mapToDouble(Sample::us).sorted().toArray();
    double[] cross = samples.stream().mapToDouble(Sample::crossNs).sorted().toArray();
    int middle = us.length / 2;
    double median = us.length % 2 == 1 ? us[middle] : (us[middle - 1] + us[middle]) / 2;
    return new Time(median, us[0], cross[cross.length / 2]);
  }

  /// Doubles the calls until they take long enough, and goes on until they have not become faster
  /// for a quarter of the time that a warm-up takes at least, and no rank is compiling.
  ///
  /// @return what a call took in the end
  private double warmUp(Runnable call, boolean rooted, boolean first) {
    long leastNs = Math.min(plan.warmUpNs(), plan.firstWarmUpNs());
    long enoughNs = first ? plan.firstWarmUpNs() : plan.firstWarmUpNs() / 16;
    long begin = System.nanoTime();
    long bestAt = 0;
    long compiled = 0;
    long compiledAt = 0;
    double best = Double.MAX_VALUE;
    for (int calls = 1; ; ) {
      double ns =
          (rooted ? oneByOne(call, Math.min(calls, MOST_ROOTED_CALLS)) : backToBack(call, calls))
              * 1e3;
      long[] now = slowest(new long[] {System.nanoTime() - begin, compilerMillis()});
      long spent = now[0];
      if (now[1] > compiled) {
        compiled = now[1];
        compiledAt = spent;
      }
      if (ns < STEADY * best) {
        best = ns;
        bestAt = spent;
      }
      boolean longEnough = ns * calls >= leastNs;
      boolean steady = spent - bestAt >= enoughNs / 4 && spent - compiledAt >= QUIET_NS;
      boolean isOver = (steady && spent >= enoughNs) || spent >= MOST_WARM_UPS * enoughNs;
      if (longEnough && isOver) {
        return ns;
      }
      if (!longEnough && calls < MOST_CALLS) {
        calls *= 2;
      }
    }
  }

  private static long compilerMillis() {
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
  private double backToBack(Runnable call, int calls) {
    barrier();
    long start = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      call.run();
    }
    long ns = System.nanoTime() - start;
    barrier();
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
