package org.comm4j.core.select;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.algorithm.Choice;
import org.comm4j.core.algorithm.Facts;
import org.comm4j.core.schedule.Shape;

/// Chooses the algorithm for a shape, by a user's [Tuning] first, then by the built-in one
/// ([Algorithms#choose]). The same on all ranks, since it looks only at what all of them know
/// alike: the kind, the group's size, the element's type and count (not of GATHER_V, SCATTER_V and
/// ALL_TO_ALL_V, where ranks know different parts), whether the order is fixed, and the windows.
/// Immutable.
public final class Selector {
  private final Tuning tuning;

  /// @param tuning the same on all ranks
  public Selector(Tuning tuning) {
    this.tuning = tuning;
  }

  /// Never fails for a shape that a checked call has.
  public Choice choose(Shape shape) {
    Facts facts = Facts.of(shape);
    List<String> passedOver = new ArrayList<>();
    Choice choice = tuning.choose(facts, passedOver).orElseGet(() -> Algorithms.choose(facts));
    if (passedOver.isEmpty()) {
      return choice;
    }
    return new Choice(
        choice.algorithm(), "%s (%s)".formatted(choice.reason(), String.join("; ", passedOver)));
  }
}
