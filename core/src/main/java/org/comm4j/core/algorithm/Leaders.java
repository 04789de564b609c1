package org.comm4j.core.algorithm;

import java.util.function.UnaryOperator;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step.Wire;

/// What the leaders of hosts do among themselves, by messages: what is chosen for as many ranks
/// that share no memory, but for [#LEAST_IN_RING].
final class Leaders {
  /// An all-reduce by `pairwise` gives the left fold for `n(p-2)/p` of scratch, where a ring takes
  /// `2n/p`. Sums of hosts' sums have no use for it.
  private static final int LEAST_IN_RING = 5;

  private Leaders() {}

  /// All-reduces, or reduces to the root.
  ///
  /// @param total of the leader's host, and then of all; in the accumulation type, not finished
  static Phase reduce(HostGroup host, Slice total, Memory memory) {
    Shape whole = host.shape();
    Schedule plan = plan(host, total.count(), whole.accumulatorBytes());
    Slice scratch = memory.partials(plan.scratchCount());
    UnaryOperator<Slice> place =
        slice ->
            switch (slice.space()) {
              case INPUT, OUTPUT -> total.part(slice.from(), slice.count());
              case SCRATCH -> scratch.part(slice.from(), slice.count());
              case WORK -> throw new IllegalStateException("no type is widened here: " + slice);
            };
    return new Embedded(host.leaders(), place, whole.accumulatorWire()).phase(plan);
  }

  /// Sends the root's input to all leaders' outputs; in a barrier, lets every leader know that all
  /// have come.
  static Phase move(HostGroup host) {
    Schedule plan = plan(host, host.shape().count(), host.shape().valueBytes());
    return new Embedded(host.leaders(), UnaryOperator.identity(), Wire.VALUE).phase(plan);
  }

  /// The leader's plan among leaders, in order of their hosts.
  private static Schedule plan(HostGroup host, long count, int bytes) {
    CollectiveKind kind = host.shape().kind();
    int root = kind.isRooted() ? host.rootsHost() : 0;
    int hosts = host.leaders().length;
    Shape shape =
        new Shape(kind, hosts, count, root, null, null, bytes, bytes, false, false, 0, null);
    return algorithm(shape).plan(shape, host.host());
  }

  private static Algorithm algorithm(Shape shape) {
    Algorithm chosen = Algorithms.choose(Facts.of(shape)).algorithm();
    return chosen instanceof PairwiseAllReduce && shape.size() >= LEAST_IN_RING
        ? new RingAllReduce()
        : chosen;
  }
}
