package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;

/// Hands out temporary memory while a plan is made, and knows in the end how much it was.
final class Memory {
  private final Space accumulators;
  private long workCount;
  private long scratchCount;

  Memory(Shape shape) {
    accumulators = shape.widened() ? Space.WORK : Space.SCRATCH;
  }

  /// Whether partial reductions are in another type than the data.
  boolean isWide() {
    return accumulators == Space.WORK;
  }

  /// Memory for partial reductions, in the accumulation type. It is sent with the wire type
  /// [Shape#accumulatorWire()].
  Slice partials(long count) {
    if (accumulators == Space.SCRATCH) {
      return values(count);
    }
    workCount += count;
    return new Slice(Space.WORK, workCount - count, count);
  }

  /// Memory for raw values, in the data's type.
  Slice values(long count) {
    scratchCount += count;
    return new Slice(Space.SCRATCH, scratchCount - count, count);
  }

  /// The plan that uses this memory.
  Schedule plan(Phase phase) {
    return Schedule.of(phase.rounds(), workCount, scratchCount, phase.round());
  }

  /// The plan over peer memory that uses this memory.
  Schedule plan(int stages, Phase phase) {
    return Schedule.ofPeerMemory(phase.rounds(), workCount, scratchCount, stages, phase.round());
  }
}
