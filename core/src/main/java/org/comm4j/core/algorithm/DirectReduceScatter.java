package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Reduce;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce-scatter in one round: everybody sends everybody else, raw, the chunk that the other owns, all
/// at once; owners fold in rank order. Cost per rank: `p - 1` messages and `n(p - 1)/p` elements, as
/// [PairwiseReduceScatter], but they wait for each other once instead of `p - 1` times. For few ranks
/// and data that is not large: `p - 1` messages arrive at once, and each has its place in temporary
/// memory.
///
///     p = 3, rank 1   round 0: send c0 and c2, keep x0 and x2 of c1 | fold x0 ∘ x1 ∘ x2
record DirectReduceScatter(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "direct";
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
    Slice raw = memory.values((size - 1) * own.count());
    List<Slice> contributions = new ArrayList<>(size);
    for (int peer = 0; peer < size; peer++) {
      int place = peer < rank ? peer : peer - 1;
      contributions.add(peer == rank ? own : raw.part(place * own.count(), own.count()));
    }
    List<Step> exchange = new ArrayList<>();
    for (int distance = 1; distance < size; distance++) {
      int to = Ranks.at(rank, distance, size);
      int from = Ranks.at(rank, -distance, size);
      exchange.add(new Send(to, chunks.in(Space.INPUT, to)));
      exchange.add(new Receive(from, contributions.get(from), Wire.VALUE));
    }
    Slice folded = memory.partials(own.count());
    return Phase.once(exchange).then(fold(contributions, folded, result));
  }

  /// Folds contributions in the order in which they stand.
  ///
  /// @param folded room for the partial result; may be the result itself where no contribution is
  static Phase fold(List<Slice> contributions, Slice folded, Slice result) {
    List<Step> fold = new ArrayList<>(contributions.size() + 1);
    fold.add(new Copy(contributions.getFirst(), folded));
    for (Slice contribution : contributions.subList(1, contributions.size())) {
      fold.add(new Reduce(contribution, folded));
    }
    fold.add(new Finish(folded, result, contributions.size()));
    return Phase.once(fold);
  }
}
