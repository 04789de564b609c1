package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;

/// Every collective in a group of one: the output becomes the input. The only algorithm for that
/// size, so that no other needs to think of it.
record Alone(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "alone";
  }

  @Override
  public Order order() {
    return switch (kind) {
      case REDUCE, ALL_REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, SCAN, EXCLUSIVE_SCAN ->
          Order.LEFT_FOLD;
      default -> Order.NONE;
    };
  }

  @Override
  public boolean supports(Shape shape) {
    return shape.kind() == kind && shape.size() == 1;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Phase phase =
        switch (kind) {
          case BARRIER, BROADCAST, EXCLUSIVE_SCAN -> Phase.NOTHING;
          case ALL_GATHER, GATHER, SCATTER, ALL_TO_ALL -> copy(0, 0, shape.count());
          case ALL_GATHER_V, GATHER_V ->
              copy(0, Shapes.parts(shape).displacement(0), Shapes.parts(shape).count(0));
          case SCATTER_V ->
              copy(Shapes.parts(shape).displacement(0), 0, Shapes.parts(shape).count(0));
          case ALL_TO_ALL_V ->
              copy(
                  Shapes.parts(shape).displacement(0),
                  Shapes.receiveParts(shape).displacement(0),
                  Shapes.parts(shape).count(0));
          case REDUCE, ALL_REDUCE, REDUCE_SCATTER, SCAN -> finishOwn(shape, memory);
          case REDUCE_SCATTER_V ->
              finish(
                  shape, memory, Shapes.parts(shape).displacement(0), Shapes.parts(shape).count(0));
        };
    return memory.plan(phase);
  }

  private static Phase copy(long from, long to, long count) {
    return Phase.once(
        new Copy(new Slice(Space.INPUT, from, count), new Slice(Space.OUTPUT, to, count)));
  }

  /// The output becomes the input, as a complete reduction of one contribution.
  static Phase finishOwn(Shape shape, Memory memory) {
    return finish(shape, memory, 0, shape.count());
  }

  private static Phase finish(Shape shape, Memory memory, long from, long count) {
    Slice result = new Slice(Space.OUTPUT, 0, count);
    Slice reduced = shape.widened() ? memory.partials(count) : result;
    return Phase.once(
        new Copy(new Slice(Space.INPUT, from, count), reduced), new Finish(reduced, result, 1));
  }
}
