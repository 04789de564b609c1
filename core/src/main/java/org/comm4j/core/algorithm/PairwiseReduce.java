package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce as [PairwiseReduceScatter], then everybody sends its chunk of the result to the root: `p`
/// rounds, `p` messages and about `n` elements per rank, `2n` into the root, however many ranks
/// there are. The left fold. For large data.
record PairwiseReduce() implements Algorithm {
  @Override
  public String name() {
    return "pairwise";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.REDUCE;
  }

  @Override
  public Order order() {
    return Order.LEFT_FOLD;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Chunks chunks = Chunks.split(shape.count(), shape.size());
    Slice result =
        rank == shape.root() ? chunks.in(Space.OUTPUT, rank) : memory.values(chunks.count(rank));
    List<Step> gather = new ArrayList<>();
    if (rank == shape.root()) {
      for (int peer = 0; peer < shape.size(); peer++) {
        if (peer != rank) {
          gather.add(new Receive(peer, chunks.in(Space.OUTPUT, peer), Wire.VALUE));
        }
      }
    } else {
      gather.add(new Send(shape.root(), result));
    }
    return memory.plan(
        PairwiseReduceScatter.phase(chunks, rank, result, memory).then(Phase.once(gather)));
  }
}
