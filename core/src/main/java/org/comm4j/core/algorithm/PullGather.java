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
import org.comm4j.core.schedule.Step.AwaitPeer;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Publish;
import org.comm4j.core.schedule.Step.ReadPeer;
import org.comm4j.core.schedule.Step.Wire;

/// Gather over peer memory: everybody but the root publishes its part, piece by piece, and the root
/// reads them.
record PullGather(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "pull";
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
  public boolean usesPeerMemory() {
    return true;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    int size = shape.size();
    Pieces pieces = cut.pieces(shape, shape.count());
    Chunks chunks = Shapes.chunks(shape);
    return Schedule.ofPeerMemory(
        pieces.number(),
        0,
        0,
        pieces.number(),
        stage -> {
          Slice piece = pieces.in(Space.INPUT, stage);
          if (rank != shape.root()) {
            return Round.of(new Publish(stage, piece), new Done(stage));
          }
          List<Step> steps = new ArrayList<>();
          steps.add(
              new Copy(piece, chunks.in(Space.OUTPUT, rank).part(piece.from(), piece.count())));
          for (int distance = 1; distance < size; distance++) {
            int peer = Ranks.at(rank, distance, size);
            Slice place = chunks.in(Space.OUTPUT, peer).part(piece.from(), piece.count());
            steps.add(new AwaitPeer(peer, stage));
            steps.add(new ReadPeer(peer, stage, 0, place, Wire.VALUE));
          }
          steps.add(new Done(stage));
          return new Round(steps);
        });
  }
}
