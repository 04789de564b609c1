package org.comm4j.core.schedule;

/// Which memory a [Slice] is in.
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
