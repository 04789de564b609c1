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
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-to-all in `⌈log₂ p⌉` rounds: the part that must travel `d` ranks to the right goes the distances
/// of the bits of `d`. In round `k` every rank packs all parts with bit `k` into one message for rank
/// `r + 2ᵏ`. Cost per rank: `⌈log₂ p⌉` messages of about `np/2` elements for parts of `n`, and as many
/// copies. For very small parts on many ranks.
///
///     p = 4, parts by distance   0 stays | 1 goes in round 0 | 2 goes in round 1 | 3 goes in both
///
/// J. Bruck and others: Efficient algorithms for all-to-all communications in multiport message-passing
/// systems (1997).
record BruckAllToAll() implements Algorithm {
  @Override
  public String name() {
    return "bruck";
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
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    int size = shape.size();
    long count = shape.count();
    Chunks parts = Shapes.chunks(shape);
    // By distance: first what this rank sends that far, in the end what came from that far.
    Slice byDistance = memory.values(size * count);
    long packed = (size + 1) / 2 * count;
    Slice leaving = memory.values(packed);
    Slice arriving = memory.values(packed);
    List<Step> sort = new ArrayList<>(size);
    List<Step> place = new ArrayList<>(size);
    for (int distance = 0; distance < size; distance++) {
      Slice part = byDistance.part(distance * count, count);
      sort.add(new Copy(parts.in(Space.INPUT, rank + distance), part));
      place.add(new Copy(part, parts.in(Space.OUTPUT, rank - distance)));
    }
    Phase travel =
        Phase.of(
            Ranks.doublings(size),
            round -> {
              List<Step> steps = new ArrayList<>();
              int travelling = 0;
              for (int distance = 0; distance < size; distance++) {
                // What the round before brought has the place of what it took.
                if (round > 0 && isBitSet(distance, round - 1)) {
                  int index = bitsSetBelow(distance, round - 1);
                  steps.add(
                      new Copy(
                          arriving.part(index * count, count),
                          byDistance.part(distance * count, count)));
                }
                if (isBitSet(distance, round)) {
                  steps.add(
                      new Copy(
                          byDistance.part(distance * count, count),
                          leaving.part(travelling++ * count, count)));
                }
              }
              long sent = travelling * count;
              steps.add(new Send(Ranks.at(rank, 1 << round, size), leaving.part(0, sent)));
              steps.add(
                  new Receive(
                      Ranks.at(rank, -(1 << round), size), arriving.part(0, sent), Wire.VALUE));
              return Phase.round(steps);
            });
    int last = Ranks.doublings(size) - 1;
    List<Step> end = new ArrayList<>();
    for (int distance = 0; distance < size; distance++) {
      if (isBitSet(distance, last)) {
        end.add(
            new Copy(
                arriving.part(bitsSetBelow(distance, last) * count, count),
                byDistance.part(distance * count, count)));
      }
    }
    end.addAll(place);
    return memory.plan(Phase.once(sort).then(travel).then(Phase.once(end)));
  }

  private static boolean isBitSet(int number, int bit) {
    return (number >> bit & 1) == 1;
  }

  /// How many numbers below one have this bit.
  private static int bitsSetBelow(int number, int bit) {
    int cycle = 2 << bit;
    return number / cycle * (cycle / 2) + Math.max(0, number % cycle - cycle / 2);
  }
}
