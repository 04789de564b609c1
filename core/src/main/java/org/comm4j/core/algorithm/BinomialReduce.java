package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.ReceiveReduce;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce up a [BinomialTree]: `⌈log₂ p⌉` rounds; in each, half of the ranks that are left send their
/// partial reduction of `n` elements to the other half. Cost: one message per rank, `⌈log₂ p⌉` taken by
/// the root. For small data on many ranks. Order: the tree, ranks counted from the root.
///
///     p = 4, root 0   round 0: 1→0, 3→2 | 1: 2→0     ((x0 ∘ x1) ∘ (x2 ∘ x3))
record BinomialReduce() implements Algorithm {
  @Override
  public String name() {
    return "binomial";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.REDUCE;
  }

  @Override
  public Order order() {
    return Order.FIXED;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    BinomialTree tree = new BinomialTree(shape.size(), shape.root(), rank);
    Slice input = Shapes.input(shape.count());
    boolean leaf = tree.extent(tree.position()) == 1;
    boolean root = rank == shape.root();
    Slice sum =
        leaf
            ? input
            : root && !shape.widened()
                ? Shapes.output(shape.count())
                : memory.partials(shape.count());
    Phase climb =
        Phase.of(
            tree.levels(),
            round -> {
              int distance = tree.inward(round);
              List<Step> steps = new ArrayList<>();
              if (tree.isParent(distance)) {
                if (round == 0) {
                  steps.add(new Copy(input, sum));
                }
                int child = tree.child(distance);
                Wire wire = tree.extent(child) == 1 ? Wire.VALUE : shape.accumulatorWire();
                steps.add(new ReceiveReduce(tree.rankAt(child), sum, wire));
              } else if (tree.isChild(distance)) {
                steps.add(new Send(tree.rankAt(tree.parent()), sum));
              }
              return steps.isEmpty() ? Round.of() : Phase.round(steps);
            });
    return memory.plan(
        root
            ? climb.then(Phase.once(new Finish(sum, Shapes.output(shape.count()), shape.size())))
            : climb);
  }
}
