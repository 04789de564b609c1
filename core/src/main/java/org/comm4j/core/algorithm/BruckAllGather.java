package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-gather in `⌈log₂ p⌉` rounds for any `p`: in round `k` every rank sends all that it has, the parts
/// of ranks `r, r+1, …`, to rank `r - 2ᵏ`. Parts are kept in that rotated order and put in place at the
/// end. Cost per rank: `⌈log₂ p⌉` messages, `n(p - 1)/p` elements of the output's `n`, and one copy of
/// all of it. For small data.
///
///     p = 5, rank 0 has   x0 | x0 x1 | x0 x1 x2 x3 | x0 x1 x2 x3 x4
///
/// J. Bruck and others: Efficient algorithms for all-to-all communications in multiport message-passing
/// systems (1997).
record BruckAllGather() implements Algorithm {
  @Override
  public String name() {
    return "bruck";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_GATHER;
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    long count = shape.count();
    int size = shape.size();
    Slice rotated = memory.values(count * size);
    long behind = (size - rank) * count;
    Slice output = Shapes.output(count * size);
    return memory.plan(
        phase(count, rank, size, rotated)
            .then(
                Phase.once(
                    new Copy(rotated.part(0, behind), output.part(rank * count, behind)),
                    new Copy(rotated.part(behind, rank * count), output.part(0, rank * count)))));
  }

  /// @param rotated gets the parts of ranks `rank, rank + 1, …, size - 1, 0, …, rank - 1`
  static Phase phase(long count, int rank, int size, Slice rotated) {
    Phase own = Phase.once(new Copy(Shapes.input(count), rotated.part(0, count)));
    return own.then(
        Phase.of(
            Ranks.doublings(size),
            round -> {
              int distance = 1 << round;
              long sent = Math.min(distance, size - distance) * count;
              return Phase.round(
                  new Send(Ranks.at(rank, -distance, size), rotated.part(0, sent)),
                  new Receive(
                      Ranks.at(rank, distance, size),
                      rotated.part(distance * count, sent),
                      Wire.VALUE));
            }));
  }
}
