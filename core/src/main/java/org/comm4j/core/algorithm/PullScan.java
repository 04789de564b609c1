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

/// Scan over peer memory: everybody publishes its input, piece by piece, and folds the inputs of
/// the ranks up to itself, or before itself. Cost: one synchronisation a piece; rank `r` reads `nr`
/// elements, so large groups with large data are better off with a chain.
record PullScan(CollectiveKind kind, Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "pull";
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
    int last = kind == CollectiveKind.SCAN ? rank : rank - 1;
    PeerFold fold = PeerFold.of(shape, rank, last, cut, pieces.largest(), memory);
    Phase phase =
        Phase.of(
            pieces.number(),
            stage -> {
              Slice own = pieces.in(Space.INPUT, stage);
              List<Step> steps = new ArrayList<>();
              if (rank < shape.size() - 1) {
                steps.add(new Publish(stage, own));
              }
              if (last >= 0) {
                steps.addAll(fold.steps(stage, _ -> 0, own, own.in(Space.OUTPUT)));
              }
              steps.add(new Done(stage));
              return new Round(steps);
            });
    return memory.plan(pieces.number(), phase);
  }
}
