package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-gather in `log₂ p` rounds, for powers of two: in round `k` groups of `2ᵏ` ranks exchange all that
/// they have with the group beside them. Cost per rank: `log₂ p` messages, `n(p - 1)/p` elements of the
/// output's `n`, nothing copied. For data that is not large.
///
///     p = 4, rank 2   round 0: send c2 to 3, receive c3 | 1: send c2 c3 to 0, receive c0 c1
record RecursiveDoublingAllGather() implements Algorithm {
  @Override
  public String name() {
    return "recursive-doubling";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_GATHER;
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public boolean supports(Shape shape) {
    return Shapes.fits(this, shape) && Ranks.isPowerOfTwo(shape.size());
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Chunks chunks = Shapes.chunks(shape);
    Phase own = Phase.once(new Copy(Shapes.input(shape.count()), chunks.in(Space.OUTPUT, rank)));
    return new Memory(shape).plan(own.then(phase(new Cube(shape.size(), rank), chunks)));
  }

  /// @param cube seen from a corner
  /// @param chunks of the output, one for each corner, one behind the other; each corner's own is
  ///   there
  static Phase phase(Cube cube, Chunks chunks) {
    return Phase.of(
        Ranks.doublings(cube.corners()),
        round -> {
          int group = 1 << round;
          int partner = cube.corner() ^ group;
          int own = cube.corner() / group * group;
          int other = partner / group * group;
          int peer = cube.rankAt(partner);
          return Phase.round(
              new Send(peer, chunks.range(Space.OUTPUT, own, own + group)),
              new Receive(peer, chunks.range(Space.OUTPUT, other, other + group), Wire.VALUE));
        });
  }
}
