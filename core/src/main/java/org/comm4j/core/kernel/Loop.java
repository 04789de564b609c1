package org.comm4j.core.kernel;

/// One operator on two arrays of one primitive type: `x[i] = x[i] ∘ y[i]`.
interface Loop {
  /// Combines the first elements of two arrays.
  ///
  /// @param x the left operand and the result
  /// @param y the right operand
  /// @param count how many carriers: two per complex number or pair
  void apply(Object x, Object y, int count);
}
