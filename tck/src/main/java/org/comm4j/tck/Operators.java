package org.comm4j.tck;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// User-defined operators to try.
final class Operators {
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  /// Composes affine maps `x → m·x + b` modulo 2^32: associative, but not commutative, so it tells
  /// in which order ranks were combined. Elements are sequences of maps, each of two ints.
  static final ReduceOp AFFINE = ReduceOp.of("affine", Operators::combineAffine);

  private Operators() {}

  static void combineAffine(
      MemorySegment source, MemorySegment accumulator, DataType type, long count) {
    for (long at = 0; at < type.bytes(count); at += 8) {
      int m = accumulator.get(INT, at);
      int b = accumulator.get(INT, at + 4);
      int n = source.get(INT, at);
      int c = source.get(INT, at + 4);
      accumulator.set(INT, at, n * m);
      accumulator.set(INT, at + 4, n * b + c);
    }
  }
}
