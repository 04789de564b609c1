package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Scatter in one round: the root sends everybody its part, straight from where it is. Cost: one
/// message per rank, `p - 1` messages at once on the root. For few ranks or large data.
///
/// SCATTER_V sends empty parts too: only the root knows the partition, and a rank that expects
/// another count than the root has for it must be noticed at once.
record LinearScatter(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "linear";
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    List<Step> steps = new ArrayList<>();
    if (rank == shape.root()) {
      Chunks chunks = Shapes.chunks(shape);
      steps.add(new Copy(chunks.in(Space.INPUT, rank), Shapes.output(chunks.count(rank))));
      // Starting behind the root, so that roots that scatter in turn do not all begin with rank 0.
      for (int distance = 1; distance < shape.size(); distance++) {
        int peer = Ranks.at(rank, distance, shape.size());
        steps.add(new Send(peer, chunks.in(Space.INPUT, peer)));
      }
    } else {
      steps.add(new Receive(shape.root(), Shapes.output(shape.count()), Wire.VALUE));
    }
    boolean partsAreCommonKnowledge = kind == CollectiveKind.SCATTER;
    return Schedule.of(
        0,
        0,
        List.of(
            partsAreCommonKnowledge ? Phase.round(steps) : Phase.roundWithEmptyMessages(steps)));
  }
}
