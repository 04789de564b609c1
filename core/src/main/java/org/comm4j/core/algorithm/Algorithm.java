package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;

/// A way to do a collective, as a pure function. Knows no transport, keeps no state.
public interface Algorithm {
  /// In which order a reduction combines the ranks' contributions.
  enum Order {
    /// Not a reduction, or any order gives the same bits.
    NONE,
    /// The left fold over ranks `0..p-1`.
    LEFT_FOLD,
    /// A fixed order of its own, the same on all ranks and in every run.
    FIXED
  }

  /// The name as selection, `explain` and the command line show it, for example `ring`. Unique
  /// among the algorithms of a collective.
  String name();

  /// Which collective it does.
  CollectiveKind kind();

  /// The order in which it reduces.
  Order order();

  /// Whether it reads peers' memory instead of receiving messages.
  default boolean usesPeerMemory() {
    return false;
  }

  /// Whether it sends messages; with [#usesPeerMemory] to other hosts, and reads on its own.
  default boolean usesMessages() {
    return !usesPeerMemory();
  }

  /// Whether it can do this shape: for example only powers of two, only small counts, or only with
  /// windows. Unordered algorithms can't do ordered shapes. If it says nothing else: all groups of
  /// more than one rank, with windows that hold an element if it reads them.
  default boolean supports(Shape shape) {
    return Shapes.fits(this, shape) && (!usesPeerMemory() || Cut.windowHolds(shape, 1));
  }

  /// This rank's plan.
  ///
  /// @param shape one that it [#supports]
  /// @param rank in `0..shape.size()-1`
  Schedule plan(Shape shape, int rank);
}
