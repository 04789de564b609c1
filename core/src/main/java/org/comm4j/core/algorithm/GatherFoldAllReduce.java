package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;

/// All-reduce as [BruckAllGather] of the inputs, after which everybody folds them all in rank
/// order. Cost per rank: `⌈log₂ p⌉` rounds and messages, `n(p - 1)` elements, room for `np`, `np`
/// additions: the left fold as fast as rounds allow. For small data.
record GatherFoldAllReduce() implements Algorithm {
  @Override
  public String name() {
    return "gather-fold";
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
    long count = shape.count();
    int size = shape.size();
    Slice rotated = memory.values(count * size);
    List<Slice> contributions = new ArrayList<>(size);
    for (int peer = 0; peer < size; peer++) {
      contributions.add(rotated.part(Ranks.at(peer, -rank, size) * count, count));
    }
    Slice output = Shapes.output(count);
    // The input was copied first, so in place the output can take the partial results.
    Slice folded = shape.widened() ? memory.partials(count) : output;
    return memory.plan(
        BruckAllGather.phase(count, rank, size, rotated)
            .then(DirectReduceScatter.fold(contributions, folded, output)));
  }
}
