package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Gather up a [BinomialTree]: `⌈log₂ p⌉` rounds; in each, half of the ranks that are left send all
/// that they have to the other half. Cost: one message per rank, `⌈log₂ p⌉` taken by the root
/// instead of `p - 1`; elements travel up to `⌈log₂ p⌉` times. For small data on many ranks.
///
/// What comes from below a rank stands in its memory in the order of the tree's positions, which
/// the root puts where it belongs. Where it goes over the last rank to rank 0, the child of the
/// root sends it as two messages.
record BinomialGather() implements Algorithm {
  @Override
  public String name() {
    return "binomial";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.GATHER;
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    BinomialTree tree = new BinomialTree(shape.size(), shape.root(), rank);
    long count = shape.count();
    int own = tree.position();
    boolean root = own == 0;
    int extent = tree.extent(own);
    // Nobody below: what is sent is the input.
    Slice gathered = root || extent == 1 ? Shapes.input(count) : memory.values(extent * count);
    Slice place = root ? Shapes.chunks(shape).in(Space.OUTPUT, rank) : gathered.part(0, count);
    Phase start =
        root || extent > 1 ? Phase.once(new Copy(Shapes.input(count), place)) : Phase.NOTHING;
    Phase climb =
        Phase.of(
            tree.levels(),
            round -> {
              int distance = tree.inward(round);
              List<Step> steps = new ArrayList<>(2);
              if (tree.isParent(distance)) {
                int child = tree.child(distance);
                List<Slice> parts =
                    root
                        ? tree.below(child, Space.OUTPUT, count)
                        : List.of(gathered.part(distance * count, tree.extent(child) * count));
                for (Slice part : parts) {
                  steps.add(new Receive(tree.rankAt(child), part, Wire.VALUE));
                }
              } else if (tree.isChild(distance)) {
                for (Slice part : tree.splitForRoot(gathered, count)) {
                  steps.add(new Send(tree.rankAt(tree.parent()), part));
                }
              }
              return steps.isEmpty() ? Round.of() : Phase.round(steps);
            });
    return memory.plan(start.then(climb));
  }
}
