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

/// Scatter down a [BinomialTree]: [BinomialGather] backwards. `⌈log₂ p⌉` rounds; in each, whoever
/// has parts of others sends half of them on. Cost: `⌈log₂ p⌉` messages on the root instead of `p -
/// 1`; elements travel up to `⌈log₂ p⌉` times. For small data on many ranks.
record BinomialScatter() implements Algorithm {
  @Override
  public String name() {
    return "binomial";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.SCATTER;
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
    Slice output = Shapes.output(count);
    // Nobody below: what arrives is the output.
    Slice scattered = root || extent == 1 ? output : memory.values(extent * count);
    Phase descend =
        Phase.of(
            tree.levels(),
            round -> {
              int distance = tree.outward(round);
              List<Step> steps = new ArrayList<>(2);
              if (tree.isParent(distance)) {
                int child = tree.child(distance);
                List<Slice> parts =
                    root
                        ? tree.below(child, Space.INPUT, count)
                        : List.of(scattered.part(distance * count, tree.extent(child) * count));
                for (Slice part : parts) {
                  steps.add(new Send(tree.rankAt(child), part));
                }
              } else if (tree.isChild(distance)) {
                for (Slice part : tree.splitForRoot(scattered, count)) {
                  steps.add(new Receive(tree.rankAt(tree.parent()), part, Wire.VALUE));
                }
              }
              return steps.isEmpty() ? Round.of() : Phase.round(steps);
            });
    Phase end = Phase.NOTHING;
    if (root) {
      end = Phase.once(new Copy(Shapes.chunks(shape).in(Space.INPUT, rank), output));
    } else if (extent > 1) {
      end = Phase.once(new Copy(scattered.part(0, count), output));
    }
    return memory.plan(descend.then(end));
  }
}
