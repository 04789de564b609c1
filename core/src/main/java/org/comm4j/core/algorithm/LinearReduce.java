package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveReduce;
import org.comm4j.core.schedule.Step.Reduce;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce by sending everything to the root, which takes it in rank order and folds it while it
/// arrives. Cost: one message of `n` elements per rank, `p - 1` of them on the root, one after the
/// other. For few ranks and small data, where the left fold is wanted.
///
///     p = 4, root 1   take x0 | reduce own x1, then x2 | reduce x3 | finish
record LinearReduce() implements Algorithm {
  @Override
  public String name() {
    return "linear";
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
    Slice own = Shapes.input(shape.count());
    if (rank != shape.root()) {
      return memory.plan(Phase.once(new Send(shape.root(), own)));
    }
    // In place the output is the input, which is needed until it has been folded: on rank 0 at
    // once.
    Slice output = Shapes.output(shape.count());
    Slice folded = rank == 0 && !shape.widened() ? output : memory.partials(shape.count());
    Phase below = Phase.of(rank, peer -> Phase.round(take(peer, folded)));
    Phase middle = Phase.once(rank == 0 ? new Copy(own, folded) : new Reduce(own, folded));
    Phase above =
        Phase.of(shape.size() - 1 - rank, index -> Phase.round(take(rank + 1 + index, folded)));
    Phase finish = Phase.once(new Finish(folded, output, shape.size()));
    return memory.plan(below.then(middle).then(above).then(finish));
  }

  private static Step take(int peer, Slice folded) {
    return peer == 0
        ? new Receive(peer, folded, Wire.VALUE)
        : new ReceiveReduce(peer, folded, Wire.VALUE);
  }
}
