package org.comm4j.core.select;

import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.schedule.Shape;

/// Chooses the algorithm for a shape: the same on all ranks, since it looks only at what all of
/// them know. Immutable.
public final class Selector {
  private Selector() {}

  /// The built-in table.
  public static Selector standard() {
    return new Selector();
  }

  /// Never fails for a shape that a checked call has.
  public Choice choose(Shape shape) {
    for (Algorithm algorithm : Algorithms.of(shape.kind())) {
      if (algorithm.supports(shape)) {
        return new Choice(algorithm, "the first that supports the shape");
      }
    }
    throw new IllegalStateException("no algorithm for " + shape);
  }
}
