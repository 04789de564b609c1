package org.comm4j.api;

/// In which order a reduction combines the ranks' contributions (`COMM_REDUCTION`).
public enum Reduction {
  /// The order that is fastest for the chosen algorithm, fixed and documented per algorithm. All
  /// ranks get equal bits, and so does a repeated run of the same calls on the same group.
  FAST,

  /// The left fold over ranks `0..p-1` in the accumulation type, rounded once: the same bits on
  /// every backend, with every algorithm and message size.
  ORDERED
}
