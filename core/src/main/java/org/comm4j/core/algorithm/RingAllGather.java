package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-gather on a ring: `p - 1` rounds; in each, every rank passes on to its right the chunk that it
/// got in the round before, at first its own. Cost per rank: `p - 1` messages, `n(p - 1)/p` elements of
/// the output's `n`. For large data: no byte is sent twice by one rank, none is copied.
///
///     p = 4, rank 0   round 0: send c0, receive c3 | 1: send c3, receive c2 | 2: send c2, receive c1
record RingAllGather(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "ring";
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Chunks chunks = Shapes.chunks(shape);
    Phase copy =
        Phase.once(new Copy(Shapes.input(chunks.count(rank)), chunks.in(Space.OUTPUT, rank)));
    return new Memory(shape).plan(copy.then(phase(chunks, rank)));
  }

  /// @param chunks of the output, where this rank's own is already
  static Phase phase(Chunks chunks, int rank) {
    int size = chunks.parts();
    return Phase.of(
        size - 1,
        round ->
            Phase.round(
                new Send(Ranks.at(rank, 1, size), chunks.in(Space.OUTPUT, rank - round)),
                new Receive(
                    Ranks.at(rank, -1, size),
                    chunks.in(Space.OUTPUT, rank - round - 1),
                    Wire.VALUE)));
  }
}
