package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveFold;
import org.comm4j.core.schedule.Step.ReceiveReduce;
import org.comm4j.core.schedule.Step.Reduce;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce-scatter by direct exchange: `p - 1` rounds; in round `k` every rank sends, raw, the chunk
/// that rank `r - k` owns to that rank, and gets its own chunk from rank `r + k`. Owners fold in rank
/// order. Cost per rank: `p - 1` messages, `n(p - 1)/p` elements, as on a ring, but raw: half the bytes
/// where 16-bit values are accumulated in 32 bit.
///
/// A rank gets the chunks of ranks `r+1, …, p-1, 0, …, r-1` in that order. It keeps those of the ranks
/// above it until it has folded those below it, which it does while they arrive: so it needs room for
/// `p - 1 - r` chunks, and none on rank 0.
///
///     p = 4, rank 1   round 1: keep x2 | 2: keep x3 | 3: fold x0 ∘ x1 as x0 comes | fold … ∘ x2 ∘ x3
///            rank 2   round 1: keep x3 | 2: take x0 | 3: fold x0 ∘ x1 as x1 comes | fold … ∘ x2 ∘ x3
record PairwiseReduceScatter(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "pairwise";
  }

  @Override
  public Order order() {
    return Order.LEFT_FOLD;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Chunks chunks = Shapes.chunks(shape);
    return memory.plan(phase(chunks, rank, Shapes.output(chunks.count(rank)), memory));
  }

  /// @param chunks of the input
  /// @param result where chunk `rank` goes, finished
  static Phase phase(Chunks chunks, int rank, Slice result, Memory memory) {
    int size = chunks.parts();
    Slice own = chunks.in(Space.INPUT, rank);
    // Ranks 0 and 1 begin with their own elements, so their result may go where these are.
    boolean inPlace = rank <= 1 && !memory.isWide();
    Slice folded = inPlace ? result : memory.partials(own.count());
    // Rank 0 has nobody below it to wait for.
    int kept = rank == 0 ? 0 : size - 1 - rank;
    Slice raw = memory.values(kept * own.count());
    Phase exchange =
        Phase.of(
            size - 1,
            round -> {
              int to = Ranks.at(rank, -round - 1, size);
              int from = Ranks.at(rank, round + 1, size);
              Step receive;
              if (round < kept) {
                receive = new Receive(from, raw.part(round * own.count(), own.count()), Wire.VALUE);
              } else if (rank + from == 1) {
                receive = new ReceiveFold(from, own, folded, Wire.VALUE, rank == 0);
              } else if (from == 0) {
                receive = new Receive(from, folded, Wire.VALUE);
              } else {
                receive = new ReceiveReduce(from, folded, Wire.VALUE);
              }
              return Phase.round(new Send(to, chunks.in(Space.INPUT, to)), receive);
            });
    List<Step> fold = new ArrayList<>();
    if (rank > 1) {
      fold.add(new Reduce(own, folded));
    }
    for (int above = 0; above < kept; above++) {
      fold.add(new Reduce(raw.part(above * own.count(), own.count()), folded));
    }
    fold.add(new Finish(folded, result, size));
    return exchange.then(Phase.once(fold));
  }
}
