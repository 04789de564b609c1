package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.AwaitPeer;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.FinishPeer;
import org.comm4j.core.schedule.Step.FoldPeer;
import org.comm4j.core.schedule.Step.ReadPeer;
import org.comm4j.core.schedule.Step.Reduce;
import org.comm4j.core.schedule.Step.ReducePeer;
import org.comm4j.core.schedule.Step.Wire;

/// Folds in rank order what ranks `0..last` have published, block by block, so that the partial
/// result stays in the cache. This rank's own contribution, if it is among them, comes from its
/// input.
///
/// Ranks 0 and 1 combine their own contribution with the other one's at once, straight into the
/// result; if there are only these two, they round it as well. For later ranks the partial result
/// has memory of its own, since in place the result is where the own contribution is.
///
/// @param last the last rank that contributes; the divisor follows
/// @param block room for a block of partial results; empty where the result is that
record PeerFold(Shape shape, int rank, int last, Slice block) {
  /// @param most how many elements one stage has at most
  static PeerFold of(Shape shape, int rank, int last, Cut cut, long most, Memory memory) {
    boolean needsBlock = !isEarly(rank, last) || (shape.widened() && last != 1);
    return new PeerFold(shape, rank, last, cut.block(shape, needsBlock ? most : 0, memory));
  }

  private static boolean isEarly(int rank, int last) {
    return rank == 0 || (rank == 1 && last >= 1);
  }

  /// The steps for one stage, with their waiting.
  ///
  /// @param from where in what a peer has published its contribution starts
  /// @param own this rank's contribution
  /// @param result as many elements
  List<Step> steps(int stage, IntToLongFunction from, Slice own, Slice result) {
    List<Step> steps = new ArrayList<>();
    boolean early = isEarly(rank, last);
    boolean intoResult = early && !shape.widened();
    if (early && last == 1 && shape.widened() && result.count() > 0) {
      return List.of(
          new AwaitPeer(1 - rank, stage),
          new FinishPeer(
              1 - rank, stage, from.applyAsLong(1 - rank), own, result, rank == 0, last + 1));
    }
    long limit = intoResult ? result.count() : block.count();
    for (long done = 0; done < result.count(); done += limit) {
      long count = Math.min(limit, result.count() - done);
      Slice target = result.part(done, count);
      Slice folded = intoResult ? target : block.part(0, count);
      Slice mine = own.part(done, count);
      if (last == 0 && rank == 0) {
        steps.add(new Copy(mine, folded));
      }
      for (int peer = 0; peer <= last; peer++) {
        if (peer == rank) {
          if (!early) {
            steps.add(new Reduce(mine, folded));
          }
          continue;
        }
        if (done == 0) {
          steps.add(new AwaitPeer(peer, stage));
        }
        long start = from.applyAsLong(peer) + done;
        if (early && peer == 1 - rank) {
          steps.add(new FoldPeer(peer, stage, start, mine, folded, Wire.VALUE, rank == 0));
        } else if (peer == 0) {
          steps.add(new ReadPeer(peer, stage, start, folded, Wire.VALUE));
        } else {
          steps.add(new ReducePeer(peer, stage, start, folded, Wire.VALUE));
        }
      }
      steps.add(new Finish(folded, target, last + 1));
    }
    assert own.space() == Space.INPUT : own;
    return steps;
  }
}
