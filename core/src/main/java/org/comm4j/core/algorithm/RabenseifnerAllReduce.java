package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-reduce as [RecursiveHalvingReduceScatter], then [RecursiveDoublingAllGather]: `2 log₂ p`
/// rounds and messages, `2n(p - 1)/p` elements per rank: as few bytes as a ring in far fewer
/// rounds. Where `p` is no power of two, the guests of the [Cube] cost two rounds and `2n` elements
/// more. For medium data on many ranks. Order: chunk by chunk a balanced tree, computed once and
/// then copied, so all ranks have the same bits.
///
/// R. Rabenseifner: Optimization of collective reduction operations (2004).
record RabenseifnerAllReduce() implements Algorithm {
  @Override
  public String name() {
    return "rabenseifner";
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
    Chunks chunks = Chunks.split(shape.count(), cube.corners());
    Slice partials = shape.widened() ? memory.partials(shape.count()) : output;
    Slice result = chunks.in(Space.OUTPUT, cube.corner());
    Slice complete = partials.part(result.from(), result.count());
    Phase start = Phase.NOTHING;
    Phase end = Phase.NOTHING;
    if (cube.isHost()) {
      start =
          Phase.once(
              new Copy(input, partials),
              new ReceiveReduceBefore(cube.guest(), partials, Wire.VALUE));
      end = Phase.once(new Send(cube.guest(), output));
    }
    return memory.plan(
        start
            .then(RecursiveHalvingReduceScatter.phase(shape, cube, chunks, partials))
            .then(Phase.once(new Finish(complete, result, shape.size())))
            .then(RecursiveDoublingAllGather.phase(cube, chunks))
            .then(end));
  }
}
