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

/// All-to-all in one round: all messages at once. As [PairwiseAllToAll], but ranks wait for each
/// other once. For few ranks. ALL_TO_ALL_V sends empty parts too, as there.
record DirectAllToAll(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "direct";
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    int size = shape.size();
    Chunks sent = Shapes.chunks(shape);
    Chunks received = Shapes.receivedChunks(shape);
    List<Step> steps = new ArrayList<>();
    steps.add(new Copy(sent.in(Space.INPUT, rank), received.in(Space.OUTPUT, rank)));
    for (int distance = 1; distance < size; distance++) {
      int to = Ranks.at(rank, distance, size);
      int from = Ranks.at(rank, -distance, size);
      steps.add(new Send(to, sent.in(Space.INPUT, to)));
      steps.add(new Receive(from, received.in(Space.OUTPUT, from), Wire.VALUE));
    }
    boolean countsAreCommonKnowledge = kind == CollectiveKind.ALL_TO_ALL;
    return Schedule.of(
        0,
        0,
        List.of(
            countsAreCommonKnowledge ? Phase.round(steps) : Phase.roundWithEmptyMessages(steps)));
  }
}
