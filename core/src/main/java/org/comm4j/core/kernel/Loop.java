package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;

/// One operator on arrays of one primitive type: `z[i] = x[i] ∘ y[i]`. With the same index in all
/// three the compiler makes it a loop of vectors.
interface Loop {
  /// Combines some elements of two arrays.
  ///
  /// @param x the left operand
  /// @param y the right operand
  /// @param z the result; may be `x` or `y`
  /// @param from the first carrier: there are two per complex number or pair
  /// @param to behind the last one
  void apply(Object x, Object y, Object z, int from, int to);

  /// The same with operands in native memory, if that becomes a loop of vectors too: the compiler
  /// makes them of integers, not of floats.
  ///
  /// @param aOffset in bytes
  /// @param z gets the results from its beginning on
  /// @return false if it does not, and nothing was done
  default boolean applyNative(
      MemorySegment a, long aOffset, MemorySegment b, long bOffset, Object z, int count) {
    return false;
  }
}
