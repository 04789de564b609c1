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

/// Scatter over peer memory: the root publishes its input, piece by piece, and everybody reads what
/// is for it. Where the root is the first or the last rank, its own part is left out.
record PullScatter(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "pull";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.SCATTER;
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
    int root = shape.root();
    int last = shape.size() - 1;
    long count = shape.count();
    long first = root == 0 ? count : 0;
    long end = root == last ? last * count : shape.size() * count;
    Pieces pieces = cut.pieces(shape, end - first);
    return Schedule.ofPeerMemory(
        pieces.number(),
        0,
        0,
        pieces.number(),
        stage -> {
          Slice piece = pieces.in(Space.INPUT, stage);
          long from = first + piece.from();
          if (rank == root) {
            List<Step> steps = new ArrayList<>();
            steps.add(new Publish(stage, new Slice(Space.INPUT, from, piece.count())));
            if (stage == 0) {
              steps.add(
                  new Copy(new Slice(Space.INPUT, root * count, count), Shapes.output(count)));
            }
            steps.add(new Done(stage));
            return new Round(steps);
          }
          // What of the piece is for this rank.
          long begin = Math.max(from, rank * count);
          long part = Math.min(from + piece.count(), (rank + 1) * count) - begin;
          return part <= 0
              ? Round.of(new Done(stage))
              : Round.of(
                  new AwaitPeer(root, stage),
                  new ReadPeer(
                      root,
                      stage,
                      begin - from,
                      new Slice(Space.OUTPUT, begin - rank * count, part),
                      Wire.VALUE),
                  new Done(stage));
        });
  }
}
