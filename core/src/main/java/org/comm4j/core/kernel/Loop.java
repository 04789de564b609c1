package org.comm4j.core.kernel;

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
}
