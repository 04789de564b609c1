package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.ReceiveReduce;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Reduce-scatter in `log₂ p` rounds, for powers of two: in each round two halves of a group exchange
/// what the other one needs, half of what they still have, and go on apart. Cost per rank: `log₂ p`
/// messages, `n(p - 1)/p` elements in the accumulation type. For small data on many ranks. Order: chunk
/// by chunk a balanced tree, lower ranks in front.
///
///     p = 4, rank 0   round 0: send c2 c3 to 2, reduce c0 c1 | 1: send c1 to 1, reduce c0
record RecursiveHalvingReduceScatter() implements Algorithm {
  @Override
  public String name() {
    return "recursive-halving";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.REDUCE_SCATTER;
  }

  @Override
  public Order order() {
    return Order.FIXED;
  }

  @Override
  public boolean supports(Shape shape) {
    return Shapes.fits(this, shape) && Ranks.isPowerOfTwo(shape.size());
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Chunks chunks = Shapes.chunks(shape);
    // Half of it would do, but then two chunks of the same place would share it.
    Slice partials = memory.partials(shape.count() * shape.size());
    Slice complete = partials.part(chunks.from(rank), shape.count());
    return memory.plan(
        phase(shape, new Cube(shape.size(), rank), chunks, partials)
            .then(Phase.once(new Finish(complete, Shapes.output(shape.count()), shape.size()))));
  }

  /// Leaves each corner with its chunk of the reduction, in the partials, not finished.
  ///
  /// @param cube seen from a corner; a host has combined its guest's input with its own in the
  ///   partials
  /// @param chunks of the input, one for each corner, one behind the other
  /// @param partials a place for every element of the input
  static Phase phase(Shape shape, Cube cube, Chunks chunks, Slice partials) {
    int corner = cube.corner();
    int corners = cube.corners();
    return Phase.of(
        Ranks.doublings(corners),
        round -> {
          int distance = corners >> (round + 1);
          int partner = corner ^ distance;
          Slice kept = half(chunks, corner, distance);
          Slice given = half(chunks, partner, distance);
          Slice sum = partials.part(kept.from(), kept.count());
          boolean first = round == 0;
          // Until the first exchange the values of a corner without a guest are its input.
          boolean raw = first && !cube.isHost();
          Wire wire = first && !cube.hasGuest(partner) ? Wire.VALUE : shape.accumulatorWire();
          int peer = cube.rankAt(partner);
          Slice sent = raw ? given : partials.part(given.from(), given.count());
          Step receive =
              partner < corner
                  ? new ReceiveReduceBefore(peer, sum, wire)
                  : new ReceiveReduce(peer, sum, wire);
          return raw
              ? Phase.round(new Copy(kept, sum), new Send(peer, sent), receive)
              : Phase.round(new Send(peer, sent), receive);
        });
  }

  /// The chunks of the `distance` corners that a corner stays with.
  private static Slice half(Chunks chunks, int corner, int distance) {
    int first = corner / distance * distance;
    return chunks.range(Space.INPUT, first, first + distance);
  }
}
