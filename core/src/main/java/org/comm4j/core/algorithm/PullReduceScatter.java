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
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Publish;

/// Reduce-scatter over peer memory: everybody publishes what is for others and folds its own chunk over
/// all ranks. Cost per rank: `n(p - 1)/p` elements read.
///
/// Every stage must have something for every rank, or ranks would fold in turn instead of at once. So
/// where the input does not fit a stage, a stage is a piece of every chunk, packed one behind the other
/// in temporary memory. On two ranks there is one chunk for others, which is published as it is.
///
///     p = 3, rank 0 publishes   stage 0: c1[0..4) c2[0..4) | stage 1: c1[4..8) c2[4..8) | …
record PullReduceScatter(CollectiveKind kind, Cut cut) implements Algorithm {
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
  public boolean supports(Shape shape) {
    return Shapes.fits(this, shape) && Cut.windowHolds(shape, shape.size());
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    int size = shape.size();
    Memory memory = new Memory(shape);
    Chunks chunks = Shapes.chunks(shape);
    long limit = cut.limit(shape);
    if (size > 2 && kind == CollectiveKind.REDUCE_SCATTER && shape.count() * size <= limit) {
      return whole(shape, rank, chunks, memory);
    }
    Pieces largest = Pieces.of(chunks.largest(), limit / (size - 1));
    PeerFold fold = PeerFold.of(shape, rank, size - 1, cut, largest.largest(), memory);
    Slice packed = memory.values(size == 2 ? 0 : largest.largest() * (size - 1));
    Phase phase =
        Phase.of(
            largest.number(),
            stage -> {
              Packing packing = new Packing(chunks, largest.limit(), stage);
              List<Step> steps = new ArrayList<>(publish(packing, rank, packed));
              long position = packing.position(rank);
              Slice own = packing.part(rank);
              Slice result = new Slice(Space.OUTPUT, own.from() - chunks.from(rank), own.count());
              steps.addAll(
                  fold.steps(
                      stage,
                      // A publisher leaves out its own part.
                      peer -> position - (peer < rank ? packing.part(peer).count() : 0),
                      own,
                      result));
              steps.add(new Done(stage));
              return new Round(steps);
            });
    return memory.plan(largest.number(), phase);
  }

  private Schedule whole(Shape shape, int rank, Chunks chunks, Memory memory) {
    long count = shape.count();
    PeerFold fold = PeerFold.of(shape, rank, shape.size() - 1, cut, count, memory);
    List<Step> steps = new ArrayList<>();
    if (count > 0) {
      steps.add(new Publish(0, Shapes.input(count * shape.size())));
    }
    steps.addAll(
        fold.steps(0, _ -> chunks.from(rank), chunks.in(Space.INPUT, rank), Shapes.output(count)));
    steps.add(new Done(0));
    return memory.plan(1, Phase.once(steps));
  }

  private static List<Step> publish(Packing packing, int rank, Slice packed) {
    List<Step> steps = new ArrayList<>();
    int size = packing.chunks.parts();
    if (size == 2) {
      Slice other = packing.part(1 - rank);
      if (other.count() > 0) {
        steps.add(new Publish(packing.stage, other));
      }
      return steps;
    }
    long end = 0;
    for (int owner = 0; owner < size; owner++) {
      Slice part = packing.part(owner);
      if (owner != rank && part.count() > 0) {
        steps.add(new Copy(part, packed.part(end, part.count())));
        end += part.count();
      }
    }
    if (end > 0) {
      steps.add(new Publish(packing.stage, packed.part(0, end)));
    }
    return steps;
  }

  /// What a rank publishes in a stage: a part of every chunk but its own, in rank order.
  ///
  /// @param limit the elements of a part
  private record Packing(Chunks chunks, long limit, int stage) {
    /// The part of an owner's chunk.
    Slice part(int owner) {
      Slice chunk = chunks.in(Space.INPUT, owner);
      long from = Math.min(stage * limit, chunk.count());
      return chunk.part(from, Math.min(limit, chunk.count() - from));
    }

    /// Where an owner's part would be if all parts were published.
    long position(int owner) {
      long position = 0;
      for (int before = 0; before < owner; before++) {
        position += part(before).count();
      }
      return position;
    }
  }
}
