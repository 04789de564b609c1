package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-reduce as [DirectReduceScatter], then everybody sends its chunk of the result to everybody
/// else. Two rounds, `2(p - 1)` messages and `2n(p - 1)/p` elements per rank, the left fold. For
/// few ranks, between the sizes where rounds cost most and those where `p - 1` messages at once are
/// too many bytes.
record DirectAllReduce() implements Algorithm {
  @Override
  public String name() {
    return "direct";
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
    Phase reduce = DirectReduceScatter.phase(chunks, rank, chunks.in(Space.OUTPUT, rank), memory);
    List<Step> gather = new ArrayList<>();
    for (int distance = 1; distance < shape.size(); distance++) {
      int to = Ranks.at(rank, distance, shape.size());
      int from = Ranks.at(rank, -distance, shape.size());
      gather.add(new Send(to, chunks.in(Space.OUTPUT, rank)));
      gather.add(new Receive(from, chunks.in(Space.OUTPUT, from), Wire.VALUE));
    }
    return memory.plan(reduce.then(Phase.once(gather)));
  }
}
