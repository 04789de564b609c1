package org.comm4j.core.algorithm;

import java.util.Objects;
import org.comm4j.api.Partition;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;

/// What algorithms often ask of a shape.
final class Shapes {
  private Shapes() {}

  static Partition parts(Shape shape) {
    return Objects.requireNonNull(shape.parts(), "parts");
  }

  static Partition receiveParts(Shape shape) {
    return Objects.requireNonNull(shape.receiveParts(), "receiveParts");
  }

  /// The chunks of a buffer that holds one part for every rank: an all-gather's output, a
  /// reduce-scatter's input, a gather's output and a scatter's input on the root.
  static Chunks chunks(Shape shape) {
    return switch (shape.kind()) {
      case ALL_GATHER_V, GATHER_V, SCATTER_V, REDUCE_SCATTER_V, ALL_TO_ALL_V ->
          Chunks.of(parts(shape));
      default -> Chunks.even(shape.count(), shape.size());
    };
  }

  /// The chunks of an all-to-all's output.
  static Chunks receivedChunks(Shape shape) {
    return shape.kind() == CollectiveKind.ALL_TO_ALL_V
        ? Chunks.of(receiveParts(shape))
        : chunks(shape);
  }

  /// The first `count` elements of the input.
  static Slice input(long count) {
    return new Slice(Space.INPUT, 0, count);
  }

  /// The first `count` elements of the output.
  static Slice output(long count) {
    return new Slice(Space.OUTPUT, 0, count);
  }

  /// Whether a group of more than one rank, of the algorithm's kind, may get the order that the
  /// algorithm has.
  static boolean fits(Algorithm algorithm, Shape shape) {
    return shape.kind() == algorithm.kind()
        && shape.size() > 1
        && !(shape.ordered() && algorithm.order() == Algorithm.Order.FIXED);
  }
}
