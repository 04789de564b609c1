package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveReduce;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-reduce in `log₂ p` rounds: in round `k` every corner of the [Cube] exchanges all that it has with
/// the corner that differs in bit `k`, and both combine the two. Cost per rank: `log₂ p` messages of `n`
/// elements in the accumulation type; two rounds more where `p` is no power of two. For small data on
/// many ranks. Order: the balanced tree over corners, lower ones in front; both sides of an exchange
/// compute the same expression, so all ranks have the same bits.
///
///     p = 4   round 0: 0↔1, 2↔3 | 1: 0↔2, 1↔3     ((x0 ∘ x1) ∘ (x2 ∘ x3))
///
/// What is sent must not change while it is sent, so two buffers take turns.
record RecursiveDoublingAllReduce() implements Algorithm {
  @Override
  public String name() {
    return "recursive-doubling";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_REDUCE;
  }

  @Override
  public Order order() {
    return Order.FIXED;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Cube cube = new Cube(shape.size(), rank);
    Slice input = Shapes.input(shape.count());
    Slice output = Shapes.output(shape.count());
    if (cube.isGuest()) {
      return memory.plan(
          Phase.once(new Send(cube.host(), input))
              .then(Phase.once(new Receive(cube.host(), output, Wire.VALUE))));
    }
    Slice[] partials = {memory.partials(shape.count()), memory.partials(shape.count())};
    Phase start = Phase.once(new Copy(input, partials[0]));
    if (cube.isHost()) {
      start =
          Phase.once(
              new Copy(input, partials[0]),
              new ReceiveReduceBefore(cube.guest(), partials[0], Wire.VALUE));
    }
    int rounds = Ranks.doublings(cube.corners());
    Phase doubling =
        Phase.of(
            rounds,
            round -> {
              Slice before = partials[round % 2];
              Slice after = partials[(round + 1) % 2];
              int partner = cube.corner() ^ (1 << round);
              int peer = cube.rankAt(partner);
              Step receive =
                  partner < cube.corner()
                      ? new ReceiveReduceBefore(peer, after, shape.accumulatorWire())
                      : new ReceiveReduce(peer, after, shape.accumulatorWire());
              return Phase.round(new Copy(before, after), new Send(peer, before), receive);
            });
    Phase end = Phase.once(new Finish(partials[rounds % 2], output, shape.size()));
    if (cube.isHost()) {
      end = end.then(Phase.once(new Send(cube.guest(), output)));
    }
    return memory.plan(start.then(doubling).then(end));
  }
}
