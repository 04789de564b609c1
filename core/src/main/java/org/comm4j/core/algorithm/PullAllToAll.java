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

/// All-to-all over peer memory: everybody publishes its input and reads its part of everybody
/// else's.
///
/// Where the input does not fit a stage, stages go by pairs: with distance `d` every rank
/// publishes, piece by piece, the part for rank `r + d` and reads from rank `r - d`, so that all
/// read at once and each from another.
record PullAllToAll(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "pull";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_TO_ALL;
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
    Chunks parts = Shapes.chunks(shape);
    Memory memory = new Memory(shape);
    Phase own = Phase.once(new Copy(parts.in(Space.INPUT, rank), parts.in(Space.OUTPUT, rank)));
    if (size > 2 && shape.count() * size <= cut.limit(shape)) {
      return memory.plan(1, whole(shape, rank, parts).then(own));
    }
    Pieces pieces = cut.pieces(shape, shape.count());
    int stages = (size - 1) * pieces.number();
    Phase pairs =
        Phase.of(
            stages,
            stage -> {
              int distance = 1 + stage / pieces.number();
              Slice piece = pieces.in(Space.INPUT, stage % pieces.number());
              int to = Ranks.at(rank, distance, size);
              int from = Ranks.at(rank, -distance, size);
              return Round.of(
                  new Publish(stage, parts.in(Space.INPUT, to).part(piece.from(), piece.count())),
                  new AwaitPeer(from, stage),
                  new ReadPeer(
                      from,
                      stage,
                      0,
                      parts.in(Space.OUTPUT, from).part(piece.from(), piece.count()),
                      Wire.VALUE),
                  new Done(stage));
            });
    return memory.plan(stages, pairs.then(own));
  }

  private static Phase whole(Shape shape, int rank, Chunks parts) {
    int size = shape.size();
    List<Step> steps = new ArrayList<>();
    steps.add(new Publish(0, Shapes.input(shape.count() * size)));
    for (int distance = 1; distance < size; distance++) {
      int peer = Ranks.at(rank, distance, size);
      steps.add(new AwaitPeer(peer, 0));
      steps.add(new ReadPeer(peer, 0, parts.from(rank), parts.in(Space.OUTPUT, peer), Wire.VALUE));
    }
    steps.add(new Done(0));
    return Phase.once(steps);
  }
}
