package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Broadcast as a scatter down a [BinomialTree], then an all-gather on a ring: `⌈log₂ p⌉ + p - 1`
/// rounds, about `2n` elements per rank, however many ranks there are. For large data.
///
/// Chunks and the ring count from the root: chunk `v` is first with position `v`. After the scatter a
/// position has the chunks of all that hang below it, and is not sent these again; so the root, which
/// has them all, gets nothing.
///
///     p = 4   scatter   0→2: c2 c3 | 0→1: c1, 2→3: c3
///             ring      0→1: c0, 1→2: c1, 2→3: c2 | 0→1: c3, 1→2: c0, 2→3: c1 | 0→1: c2, 2→3: c0
///
/// M. Barnett and others: Building a high-performance collective communication library (1994).
record ScatterRingBroadcast() implements Algorithm {
  @Override
  public String name() {
    return "scatter-ring";
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
    Chunks chunks = Chunks.split(shape.count(), shape.size());
    Space data = rank == shape.root() ? Space.INPUT : Space.OUTPUT;
    return new Memory(shape).plan(scatter(tree, chunks, data).then(ring(tree, chunks, data)));
  }

  private static Phase scatter(BinomialTree tree, Chunks chunks, Space data) {
    return Phase.of(
        tree.levels(),
        round -> {
          int distance = tree.outward(round);
          if (tree.isParent(distance)) {
            int child = tree.child(distance);
            return Phase.round(
                new Send(
                    tree.rankAt(child), chunks.range(data, child, child + tree.extent(child))));
          }
          if (tree.isChild(distance)) {
            int own = tree.position();
            return Phase.round(
                new Receive(
                    tree.rankAt(tree.parent()),
                    chunks.range(data, own, own + tree.extent(own)),
                    Wire.VALUE));
          }
          return Round.of();
        });
  }

  private static Phase ring(BinomialTree tree, Chunks chunks, Space data) {
    int size = tree.size();
    int own = tree.position();
    int right = Ranks.at(own, 1, size);
    return Phase.of(
        size - 1,
        round -> {
          int sent = Ranks.at(own, -round, size);
          int received = Ranks.at(own, -round - 1, size);
          List<Step> steps = new ArrayList<>(2);
          if (lacks(tree, right, sent)) {
            steps.add(new Send(tree.rankAt(right), chunks.in(data, sent)));
          }
          if (lacks(tree, own, received)) {
            steps.add(
                new Receive(
                    tree.rankAt(Ranks.at(own, -1, size)), chunks.in(data, received), Wire.VALUE));
          }
          return Phase.round(steps);
        });
  }

  /// Whether a position has not got a chunk in the scatter.
  private static boolean lacks(BinomialTree tree, int position, int chunk) {
    return chunk < position || chunk >= position + tree.extent(position);
  }
}
