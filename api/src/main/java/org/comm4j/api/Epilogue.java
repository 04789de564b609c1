package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// A function of each element of a reduction's result, done where a rank stores it. It goes with a
/// [Collective.AllReduce], [Collective.ReduceScatter] or [Collective.ReduceScatterV] by SUM or
/// AVERAGE of a floating-point type, and makes element `i` of the output
///
///     round(f(widen(result[i]) × scale + bias[(first + i) mod bias.count()] + residual[i]))
///
/// - `result` is what the call gives without it: reduced and rounded to the input's type. So the
///   output is, bit for bit, the reduction and then the function.
/// - It is calculated in FLOAT64 if the input or the output is of that type, else in FLOAT32: the
///   scale is rounded to that type first, the product and each sum are rounded in it, and the last
///   value is rounded once to the output's type. As everywhere, NaNs that result are canonical, and
///   in FLOAT8_E4M3 what is too large becomes ±448. A bias or residual that is absent is not
///   added: −0.0 stays −0.0.
/// - `first` is the index of the output's first element in the whole result, of which a rank's part
///   of a reduce-scatter is a slice: 0 for an all-reduce, `rank × count` for a reduce-scatter, the
///   displacement of the rank's part for the V-form.
/// - `f` is the [#expression()], if one was given: text of the program's own in the language of the
///   backend's device. It has two variables: `x`, the value so far, of the type of the steps before;
///   and `i`, a 64-bit integer, the element's index in the whole result (`first` plus the index in
///   the output). Its value is converted to the type of `x`. It can be used where
///   [Capability#EXPRESSIONS] is, on data in a device's memory; backend `cuda` takes expressions of
///   CUDA C++ that its option `COMM_CUDA_EXPRESSIONS` has declared. An [UnsupportedException] says
///   where one can't be used, and leaves everything as it was.
/// - The output may have another floating-point type than the input: that is the cast. In place, as
///   everywhere, it is exactly the input's memory, so of a type of the same size.
///
/// Nothing of it goes to other ranks: each may have another one, or none, also another type of
/// output. Bias and residual are of the output's type and only read. The bias must not overlap the
/// output; the residual may be exactly the output, so that the call adds to what is there, or lie
/// apart from it, as an input that is not in place does. Both belong to the call as its input does,
/// on the same side, host or device: their owner keeps them until it has ended.
///
/// Immutable; may be shared between threads and used for any number of calls.
///
/// @param scale what the result is multiplied by; 1 for none
/// @param bias at least one element; null for none
/// @param residual as many elements as the output has; null for none
/// @param expression what the value is calculated from at the end, for example `x > 0 ? x : 0`,
///   without spaces around it; null for none
public record Epilogue(
    double scale,
    @Nullable CommData bias,
    @Nullable CommData residual,
    @Nullable String expression) {
  private static final Epilogue CAST = new Epilogue(1, null, null);

  /// Checks what needs no call.
  public Epilogue {
    if (bias != null && bias.count() == 0) {
      throw new IllegalArgumentException(
          "bias: " + bias + " (expected: at least 1 element, or null for none)");
    }
    if (expression != null) {
      expression = expression.strip();
      if (expression.isEmpty()) {
        throw new IllegalArgumentException(
            "expression: '' (expected: one in x, for example 'x > 0 ? x : 0', or null for none)");
      }
    }
  }

  /// Without an expression.
  ///
  /// @param scale as above
  /// @param bias as above
  /// @param residual as above
  public Epilogue(double scale, @Nullable CommData bias, @Nullable CommData residual) {
    this(scale, bias, residual, null);
  }

  /// {@return no function at all, for an output of another type}
  public static Epilogue cast() {
    return CAST;
  }

  /// {@return one that multiplies}
  ///
  /// @param scale what the result is multiplied by
  public static Epilogue scale(double scale) {
    return new Epilogue(scale, null, null);
  }

  /// {@return this one with a bias}
  ///
  /// @param data at least one element of the output's type, used again from the first when it ends
  public Epilogue plusBias(CommData data) {
    return new Epilogue(scale, data, residual, expression);
  }

  /// {@return this one with a residual}
  ///
  /// @param data as many elements as the output has, of its type; may be exactly the output
  public Epilogue plusResidual(CommData data) {
    return new Epilogue(scale, bias, data, expression);
  }

  /// {@return this one with an expression at its end, in place of one it has} What is added
  /// afterwards comes before it all the same.
  ///
  /// @param expression in `x`, and `i` if it wants, as the backend has been told of it: the same
  ///   text
  public Epilogue then(String expression) {
    return new Epilogue(scale, bias, residual, expression);
  }

  /// For example `× 0.5 + bias (FLOAT32 × 64) + residual (FLOAT32 × 1024), then x > 0 ? x : 0`.
  @Override
  public String toString() {
    return "× "
        + scale
        + (bias == null ? "" : " + bias (" + bias + ")")
        + (residual == null ? "" : " + residual (" + residual + ")")
        + (expression == null ? "" : ", then " + expression);
  }
}
