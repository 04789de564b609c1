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
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Publish;
import org.comm4j.core.schedule.Step.ReadPeer;
import org.comm4j.core.schedule.Step.Wire;

/// All-reduce and reduce over peer memory in two stages for each piece of the data: everybody
/// publishes its input and folds one chunk of it over all ranks, then publishes that chunk of the
/// result; everybody, or only the root, reads the others. Cost: two synchronisations a piece, and
/// `2n(p - 1)/p` elements read by who gets the result, half as many by other ranks. For large data
/// on more than two ranks.
record TwoStageReduction(CollectiveKind kind, Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "two-stage";
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
    int size = shape.size();
    boolean everybody = kind == CollectiveKind.ALL_REDUCE;
    boolean getsResult = everybody || rank == shape.root();
    boolean isRead = everybody || rank != shape.root();
    Memory memory = new Memory(shape);
    Pieces pieces = cut.pieces(shape, shape.count());
    long largestChunk = Chunks.split(pieces.largest(), size).largest();
    PeerFold fold = PeerFold.of(shape, rank, size - 1, cut, largestChunk, memory);
    Slice finished = memory.values(getsResult ? 0 : largestChunk);
    Phase phase =
        Phase.of(
            pieces.number(),
            index -> {
              int stage = 2 * index;
              Slice piece = pieces.in(Space.INPUT, index);
              Slice result = piece.in(Space.OUTPUT);
              Chunks chunks = Chunks.split(piece.count(), size);
              long from = chunks.from(rank);
              long count = chunks.count(rank);
              Slice chunk = getsResult ? result.part(from, count) : finished.part(0, count);
              List<Step> steps = new ArrayList<>();
              steps.add(new Publish(stage, piece));
              steps.addAll(fold.steps(stage, _ -> from, piece.part(from, count), chunk));
              steps.add(new Done(stage));
              if (isRead && count > 0) {
                steps.add(new Publish(stage + 1, chunk));
              }
              if (getsResult) {
                collect(stage + 1, chunks, rank, result, steps);
              }
              steps.add(new Done(stage + 1));
              return new Round(steps);
            });
    return memory.plan(2 * pieces.number(), phase);
  }

  /// Reads the chunks of the others.
  private static void collect(int stage, Chunks chunks, int rank, Slice result, List<Step> steps) {
    int size = chunks.parts();
    for (int distance = 1; distance < size; distance++) {
      int peer = Ranks.at(rank, distance, size);
      Slice chunk = result.part(chunks.from(peer), chunks.count(peer));
      if (chunk.count() > 0) {
        steps.add(new AwaitPeer(peer, stage));
        steps.add(new ReadPeer(peer, stage, 0, chunk, Wire.VALUE));
      }
    }
  }
}
