package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.AwaitPeer;
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Publish;
import org.comm4j.core.schedule.Step.ReadPeer;
import org.comm4j.core.schedule.Step.Wire;

/// Broadcast over peer memory: the root publishes piece by piece, everybody else reads it, while
/// the root goes on with the next piece.
record PullBroadcast(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "pull";
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
  public boolean usesPeerMemory() {
    return true;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Pieces pieces = cut.pieces(shape, shape.count());
    int root = shape.root();
    return Schedule.ofPeerMemory(
        pieces.number(),
        0,
        0,
        pieces.number(),
        stage ->
            rank == root
                ? Round.of(new Publish(stage, pieces.in(Space.INPUT, stage)), new Done(stage))
                : Round.of(
                    new AwaitPeer(root, stage),
                    new ReadPeer(root, stage, 0, pieces.in(Space.OUTPUT, stage), Wire.VALUE),
                    new Done(stage)));
  }
}
