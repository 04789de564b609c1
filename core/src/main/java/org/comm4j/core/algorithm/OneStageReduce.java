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
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Publish;

/// Reduce over peer memory: everybody publishes its input, the root folds them all. Cost: one
/// synchronisation, `n(p - 1)` elements read by the root. For small data, and for two ranks.
record OneStageReduce(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "one-stage";
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
  public boolean usesPeerMemory() {
    return true;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Pieces pieces = cut.pieces(shape, shape.count());
    if (rank != shape.root()) {
      return memory.plan(
          pieces.number(),
          Phase.of(
              pieces.number(),
              stage ->
                  Round.of(new Publish(stage, pieces.in(Space.INPUT, stage)), new Done(stage))));
    }
    PeerFold fold = PeerFold.of(shape, rank, shape.size() - 1, cut, pieces.largest(), memory);
    Phase phase =
        Phase.of(
            pieces.number(),
            stage -> {
              Slice own = pieces.in(Space.INPUT, stage);
              List<Step> steps =
                  new ArrayList<>(fold.steps(stage, _ -> 0, own, own.in(Space.OUTPUT)));
              steps.add(new Done(stage));
              return new Round(steps);
            });
    return memory.plan(pieces.number(), phase);
  }
}
