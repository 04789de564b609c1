package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;

/// All-reduce as [RingReduceScatter], then [RingAllGather]: `2(p - 1)` rounds and messages, `2n(p -
/// 1)/p` elements per rank, the least that is possible. For large data on many ranks. Order: chunk
/// `r` is the left fold over ranks `r+1, …, p-1, 0, …, r`, computed once and then copied, so all
/// ranks have the same bits.
record RingAllReduce() implements Algorithm {
  @Override
  public String name() {
    return "ring";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_REDUCE;
  }

  @Override
  public Order order() {
    return Order.FIXED;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Chunks chunks = Chunks.split(shape.count(), shape.size());
    return memory.plan(
        RingReduceScatter.phase(shape, chunks, rank, chunks.in(Space.OUTPUT, rank), memory)
            .then(RingAllGather.phase(chunks, rank)));
  }
}
