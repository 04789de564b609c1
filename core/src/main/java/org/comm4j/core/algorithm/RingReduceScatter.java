package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce-scatter on a ring: `p - 1` rounds; in each, every rank passes one partial chunk to its right
/// and adds its own values to the one that comes from its left. Chunk `r` starts at rank `r + 1` and
/// ends, complete, at rank `r`. Cost per rank: `p - 1` messages, `n(p - 1)/p` elements, in the
/// accumulation type. For large data on many ranks: each speaks to two neighbours only. Order:
/// chunk `r` is the left fold over ranks `r+1, …, p-1, 0, …, r`.
///
///     p = 4, rank 0   round 0: send c3, reduce c2 | 1: send c2, reduce c1 | 2: send c1, reduce c0
///
/// Partial chunks live in two buffers that take turns, so the input is never written, in place
/// neither.
///
/// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms (2009).
record RingReduceScatter(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "ring";
  }

  @Override
  public Order order() {
    return Order.FIXED;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Chunks chunks = Shapes.chunks(shape);
    Slice result = new Slice(Space.OUTPUT, 0, chunks.count(rank));
    return memory.plan(phase(shape, chunks, rank, result, memory));
  }

  /// @param chunks of the input
  /// @param result where chunk `rank` goes, finished
  static Phase phase(Shape shape, Chunks chunks, int rank, Slice result, Memory memory) {
    int size = shape.size();
    long largest = chunks.largest();
    Slice[] partials = {memory.partials(largest), memory.partials(largest)};
    Phase ring =
        Phase.of(
            size - 1,
            round -> {
              Slice own = chunks.in(Space.INPUT, rank - round - 2);
              Slice partial = partials[round % 2].part(0, own.count());
              Slice passed = chunks.in(Space.INPUT, rank - round - 1);
              if (round > 0) {
                passed = partials[(round - 1) % 2].part(0, passed.count());
              }
              return Phase.round(
                  new Copy(own, partial),
                  new Send(Ranks.at(rank, 1, size), passed),
                  new ReceiveReduceBefore(
                      Ranks.at(rank, -1, size),
                      partial,
                      round == 0 ? Wire.VALUE : shape.accumulatorWire()));
            });
    Slice complete = partials[(size - 2) % 2].part(0, result.count());
    return ring.then(Phase.once(new Finish(complete, result, size)));
  }
}
