package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Broadcast down a [BinomialTree]: `⌈log₂ p⌉` rounds; in each, whoever has the data sends all of it to
/// one that has not. Cost: up to `⌈log₂ p⌉` messages of `n` elements per rank, most on the root. For
/// small data.
///
///     p = 7   round 0: 0→4 | 1: 0→2, 4→6 | 2: 0→1, 2→3, 4→5
record BinomialBroadcast() implements Algorithm {
  @Override
  public String name() {
    return "binomial";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.BROADCAST;
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    BinomialTree tree = new BinomialTree(shape.size(), shape.root(), rank);
    Slice data = rank == shape.root() ? Shapes.input(shape.count()) : Shapes.output(shape.count());
    return Schedule.of(
        tree.levels(),
        0,
        0,
        round -> {
          int distance = tree.outward(round);
          if (tree.isChild(distance)) {
            return Phase.round(new Receive(tree.rankAt(tree.parent()), data, Wire.VALUE));
          }
          if (tree.isParent(distance)) {
            return Phase.round(new Send(tree.rankAt(tree.child(distance)), data));
          }
          return Round.of();
        });
  }
}
