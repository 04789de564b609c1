package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Gather in one round: everybody sends to the root, straight to where the data belongs. Cost: one
/// message per rank, `p - 1` messages at once on the root. For few ranks or large data.
///
/// GATHER_V sends empty parts too: only the root knows the partition, and a rank that holds another
/// count than the root expects must be noticed at once.
record LinearGather(CollectiveKind kind) implements Algorithm {
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
      steps.add(new Copy(Shapes.input(chunks.count(rank)), chunks.in(Space.OUTPUT, rank)));
      for (int peer = 0; peer < shape.size(); peer++) {
        if (peer != rank) {
          steps.add(new Receive(peer, chunks.in(Space.OUTPUT, peer), Wire.VALUE));
        }
      }
    } else {
      Slice own = Shapes.input(shape.count());
      steps.add(new Send(shape.root(), own));
    }
    boolean partsAreCommonKnowledge = kind == CollectiveKind.GATHER;
    return Schedule.of(
        0,
        0,
        List.of(
            partsAreCommonKnowledge ? Phase.round(steps) : Phase.roundWithEmptyMessages(steps)));
  }
}
