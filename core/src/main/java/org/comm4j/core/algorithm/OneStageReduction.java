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

/// All-reduce, reduce and scans over peer memory: everybody whose input others want publishes it,
/// piece by piece, and who gets a result folds the inputs that are in it. Cost: one synchronisation
/// a piece.
///
/// - All-reduce: everybody folds all inputs, so each rank reads `n(p - 1)` elements. For small
///   data, and for two ranks always: each reads `n` elements, as it would in two stages, but waits
///   once.
/// - Reduce: the root folds all inputs, and reads as many elements. For small data, and for two
///   ranks.
/// - Scans: everybody folds the inputs of the ranks up to itself, or before itself. Rank `r` reads
///   `nr` elements, so large groups with large data are better off with a chain.
record OneStageReduction(CollectiveKind kind, Cut cut) implements Algorithm {
  @Override
  public String name() {
    return isScan() ? "pull" : "one-stage";
  }

  private boolean isScan() {
    return kind == CollectiveKind.SCAN || kind == CollectiveKind.EXCLUSIVE_SCAN;
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
    int last = last(shape, rank);
    long folded = last < 0 ? 0 : pieces.largest();
    PeerFold fold = PeerFold.of(shape, rank, last, cut, folded, memory);
    Phase phase =
        Phase.of(
            pieces.number(),
            stage -> {
              Slice own = pieces.in(Space.INPUT, stage);
              List<Step> steps = new ArrayList<>();
              if (isRead(shape, rank)) {
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

  /// The last rank whose input is in a rank's result; -1 where that gets none.
  private int last(Shape shape, int rank) {
    if (isScan()) {
      return kind == CollectiveKind.SCAN ? rank : rank - 1;
    }
    boolean getsResult = kind == CollectiveKind.ALL_REDUCE || rank == shape.root();
    return getsResult ? shape.size() - 1 : -1;
  }

  /// Whether a rank's input is in another one's result.
  private boolean isRead(Shape shape, int rank) {
    if (isScan()) {
      return rank < shape.size() - 1;
    }
    return kind == CollectiveKind.ALL_REDUCE || rank != shape.root();
  }
}
