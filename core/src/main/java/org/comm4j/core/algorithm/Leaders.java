package org.comm4j.core.algorithm;

import java.util.function.UnaryOperator;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step.Wire;

/// What the leaders of hosts do among themselves, by messages. The algorithm is chosen by the same
/// model as for ranks without hosts: a message costs 4 µs, as much as 12 KiB.
final class Leaders {
  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;

  /// One round with everything, against two with halves.
  private static final long GATHER_FOLD_TOTAL = 128 * KIB;

  /// Few leaders: all to all in two rounds.
  private static final int DIRECT_HOSTS = 16;

  private static final long DIRECT_BYTES = 256 * KIB;

  /// Logarithmic rounds, as few bytes as a ring.
  private static final long RABENSEIFNER_BYTES = MIB;

  private static final long TREE_BYTES = 64 * KIB;

  private Leaders() {}

  /// @param total of the leader's host, and then of all; in the accumulation type, not finished
  static Phase allReduce(HostGroup host, Slice total, Memory memory) {
    int hosts = host.leaders().length;
    long bytes = total.count() * host.shape().accumulatorBytes();
    Algorithm algorithm;
    if (hosts * bytes <= GATHER_FOLD_TOTAL) {
      algorithm = new GatherFoldAllReduce();
    } else if (hosts <= DIRECT_HOSTS && bytes <= DIRECT_BYTES) {
      algorithm = new DirectAllReduce();
    } else if (hosts > DIRECT_HOSTS && bytes <= RABENSEIFNER_BYTES) {
      algorithm = new RabenseifnerAllReduce();
    } else {
      algorithm = new RingAllReduce();
    }
    return partials(host, algorithm, total, memory);
  }

  /// As [#allReduce], to the root.
  static Phase reduce(HostGroup host, Slice total, Memory memory) {
    long bytes = total.count() * host.shape().accumulatorBytes();
    boolean small = bytes <= TREE_BYTES || host.leaders().length <= 4;
    return partials(host, small ? new BinomialReduce() : new PairwiseReduce(), total, memory);
  }

  private static Phase partials(HostGroup host, Algorithm algorithm, Slice total, Memory memory) {
    Shape whole = host.shape();
    Schedule plan = plan(host, algorithm, total.count(), whole.accumulatorBytes());
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

  /// Sends the root's input to all leaders' outputs.
  static Phase broadcast(HostGroup host) {
    Shape shape = host.shape();
    int hosts = host.leaders().length;
    boolean small = shape.bytes() <= Math.max(TREE_BYTES, 4 * KIB * hosts) || hosts == 2;
    Algorithm algorithm = small ? new BinomialBroadcast() : new ScatterRingBroadcast();
    Schedule plan = plan(host, algorithm, shape.count(), shape.valueBytes());
    return new Embedded(host.leaders(), UnaryOperator.identity(), Wire.VALUE).phase(plan);
  }

  /// Lets every leader know that all have come.
  static Phase barrier(HostGroup host) {
    Schedule plan = plan(host, new DisseminationBarrier(), 0, 1);
    return new Embedded(host.leaders(), UnaryOperator.identity(), Wire.VALUE).phase(plan);
  }

  /// The leader's plan among leaders, in order of their hosts.
  private static Schedule plan(HostGroup host, Algorithm algorithm, long count, int bytes) {
    int hosts = host.leaders().length;
    int root = algorithm.kind() == CollectiveKind.ALL_REDUCE ? 0 : host.rootsHost();
    Shape shape =
        new Shape(
            algorithm.kind(), hosts, count, root, null, null, bytes, bytes, false, false, 0, null);
    return algorithm.plan(shape, host.host());
  }
}
