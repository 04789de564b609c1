package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// The arithmetic of one operator on elements of one type, on memory anywhere: heap or native, aligned
/// or not. The engine and the backends of the host call it; it is stateless, may be used on any
/// thread, and allocates nothing once a thread has used it (user-defined operators get fresh slices).
///
/// Elements live in two forms: raw, of [#type()], as the user has them; and accumulated, of
/// [#accumulator()], in which they are combined. A reduction widens or combines raw values into the
/// accumulated form, combines accumulated values any number of times, and finishes once:
///
///     raw ──combineRaw / combineRawInto / widen──▶ accumulated ──finish──▶ raw
///                                     combine / combineInto ↺
///     raw ─────────────────────combineFinished─────────────────────▶ raw
///
/// Where both forms are the same type, raw and accumulated calls are the same call and `widen` copies.
/// Every NaN that a combination or a rounding gives is the canonical one of its type, so that results
/// do not depend on the order of operands or on the processor.
///
/// Offsets are in bytes, counts in elements; segments must hold `count` elements of the form named
/// there, else an [IndexOutOfBoundsException]. In `∘` the left operand comes from lower ranks. An
/// output may be exactly the memory of an input of the same type; any other overlap gives undefined
/// results.
public interface Kernel {
  /// The kernel of this operator and type.
  ///
  /// @throws IllegalArgumentException if the operator is not defined for the type
  static Kernel of(ReduceOp op, DataType type) {
    return Kernels.of(op, type);
  }

  /// Makes the NaNs among elements that others have calculated canonical, in place. A piece of
  /// memory without any, as nearly all are, is only read.
  ///
  /// @param type in which they were calculated; of all but FLOAT32, FLOAT64 and complex numbers
  ///   nothing is done
  static void makeNansCanonical(DataType type, MemorySegment data, long offset, long count) {
    Nans.makeCanonical(type, data, offset, count);
  }

  /// {@return whether vector loops of kernels are being called, on a thread of their own, until
  /// they are compiled} For whoever measures.
  static boolean areWarmingUp() {
    return WarmUp.isAtWork();
  }

  /// The type of raw elements.
  DataType type();

  /// The type in which elements are combined.
  DataType accumulator();

  /// `target[i] = target[i] ∘ source[i]`, both accumulated.
  default void combine(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count) {
    combineInto(target, targetOffset, source, sourceOffset, target, targetOffset, count);
  }

  /// `target[i] = target[i] ∘ widen(source[i])`, the target accumulated.
  void combineRaw(
      MemorySegment source, long sourceOffset, MemorySegment target, long targetOffset, long count);

  /// `out[i] = a[i] ∘ b[i]`, all accumulated.
  void combineInto(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count);

  /// `out[i] = widen(a[i]) ∘ widen(b[i])`, the output accumulated.
  void combineRawInto(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count);

  /// `out[i] = round(widen(a[i]) ∘ widen(b[i]))`, for an average divided by `divisor` before: raw
  /// from raw, as [#combineRawInto] and [#finish] give it.
  ///
  /// @param divisor how many ranks an average is over, at least 1; other operators ignore it
  void combineFinished(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count,
      int divisor);

  /// `target[i] = widen(source[i])`: exact; a plain copy where the forms are the same type. A NaN
  /// that changes type may have any bits until it is combined or finished.
  void widen(
      MemorySegment source, long sourceOffset, MemorySegment target, long targetOffset, long count);

  /// `target[i] = round(source[i])`, for an average `round(source[i] / divisor)`: from the
  /// accumulated form to the raw one. Where there is nothing to calculate it copies; where the
  /// memory is the same as well, it does nothing.
  ///
  /// @param divisor how many ranks an average is over, at least 1; other operators ignore it
  void finish(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count,
      int divisor);
}
