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

/// All-gather over peer memory: everybody publishes its part, piece by piece, and reads those of
/// all others, beginning with its right neighbour's so that not all read from the same rank.
record PullAllGather(CollectiveKind kind, Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "pull";
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
    Chunks chunks = Shapes.chunks(shape);
    int stages = cut.pieces(shape, chunks.largest()).number();
    Pieces own = cut.pieces(shape, chunks.count(rank));
    return Schedule.ofPeerMemory(
        stages,
        0,
        0,
        stages,
        stage -> {
          List<Step> steps = new ArrayList<>();
          if (stage < own.number()) {
            Slice piece = own.in(Space.INPUT, stage);
            steps.add(new Publish(stage, piece));
            steps.add(
                new Copy(piece, chunks.in(Space.OUTPUT, rank).part(piece.from(), piece.count())));
          }
          for (int distance = 1; distance < size; distance++) {
            int peer = Ranks.at(rank, distance, size);
            Pieces theirs = cut.pieces(shape, chunks.count(peer));
            if (stage < theirs.number()) {
              Slice piece = theirs.in(Space.OUTPUT, stage);
              Slice place = chunks.in(Space.OUTPUT, peer).part(piece.from(), piece.count());
              steps.add(new AwaitPeer(peer, stage));
              steps.add(new ReadPeer(peer, stage, 0, place, Wire.VALUE));
            }
          }
          steps.add(new Done(stage));
          return new Round(steps);
        });
  }
}
