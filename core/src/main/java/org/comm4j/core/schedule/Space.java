package org.comm4j.core.schedule;

/// Which memory a [Slice] is in.
///
/// Not every rank has an input and an output: a broadcast's data is the root's INPUT and everybody
/// else's OUTPUT; a reduce and a gather have an OUTPUT on the root only, a scatter has an INPUT on
/// the root only, a barrier has neither. Empty slices are legal in any space.
public enum Space {
  /// What this rank contributes, in the data's type. Only read.
  INPUT,

  /// Where this rank's result goes, in the data's type. In place it is, or contains, the input.
  OUTPUT,

  /// Temporary memory in the data's type, [Schedule#scratchCount()] elements.
  SCRATCH,

  /// Temporary memory in the accumulation type, [Schedule#workCount()] elements.
  WORK
}
