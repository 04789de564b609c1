package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;

/// One operator on vectors, straight from segment to segment: `out = a ∘ b`.
interface VectorLoop {
  /// Combines `bytes` bytes, a multiple of a vector's size.
  ///
  /// @return false if some of them are not for vectors; then nothing is done
  boolean apply(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int bytes);

  /// Whether there is [#applyMasked].
  default boolean hasMaskedForm() {
    return false;
  }

  /// Combines `bytes` bytes, a multiple of an element's size and less than a vector's, with a mask.
  default void applyMasked(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int bytes) {
    throw new UnsupportedOperationException("there is no masked form");
  }
}
