package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;

/// All-reduce as [PairwiseReduceScatter], then [RingAllGather]: the left fold at the price of a
/// ring, `2(p - 1)` rounds and messages, `2n(p - 1)/p` elements per rank. For large data.
record PairwiseAllReduce() implements Algorithm {
  @Override
  public String name() {
    return "pairwise";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_REDUCE;
  }

  @Override
  public Order order() {
    return Order.LEFT_FOLD;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Chunks chunks = Chunks.split(shape.count(), shape.size());
    return memory.plan(
        PairwiseReduceScatter.phase(chunks, rank, chunks.in(Space.OUTPUT, rank), memory)
            .then(RingAllGather.phase(chunks, rank)));
  }
}
