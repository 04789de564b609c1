package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/// One operator on memory where vectors can be read and written in place: native memory, and arrays
/// of the very primitive that the vector is made of. Three to four times as fast as the way through
/// tiles while the data is in a cache.
///
/// Access to a segment depends on its hidden class (native, mapped, one per kind of array), and the
/// compiler's profile of that access is shared by the whole virtual machine: once three classes
/// were seen, vectors are boxed and speed falls by a factor of twenty or more. So there is a copy
/// of the loop for each combination of classes ([Specialized]), and each starts with a call on its
/// segments whose profile, being the copy's own, tells the compiler which classes these are.
///
/// Work is handed over in pieces, so that a copy that is new is soon called, and compiled, often
/// enough.
final class VectorFold {
  /// Large enough that a call does not count, small enough to be compiled after a few megabytes.
  private static final int PIECE = 16 << 10;

  private record Copy(Class<?> a, Class<?> b, Class<?> out, VectorLoop loop) {}

  private final Class<? extends VectorLoop> template;
  private final Object operator;
  private final int vectorBytes;
  private final Class<?> array;
  private volatile Copy[] copies = {};

  /// @param template the loop, a template of [Specialized]
  /// @param operator its operator
  /// @param carrier the primitive that the vectors are made of
  VectorFold(
      Class<? extends VectorLoop> template, Object operator, Carrier carrier, int vectorBytes) {
    this.template = template;
    this.operator = operator;
    this.vectorBytes = vectorBytes;
    this.array = carrier.tile(carrier.bytes()).segment().getClass();
  }

  /// `out = a ∘ b` from the start, in whole vectors.
  ///
  /// @return how many bytes were combined, a multiple of 16; 0 if the memory is of another kind
  long fold(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long bytes) {
    long end = bytes & -vectorBytes;
    if (end == 0 || !suits(a) || !suits(b) || !suits(out)) {
      return 0;
    }
    VectorLoop loop = loop(a.getClass(), b.getClass(), out.getClass());
    for (long at = 0; at < end; at += PIECE) {
      int piece = (int) Math.min(PIECE, end - at);
      loop.apply(a, aOffset + at, b, bOffset + at, out, outOffset + at, piece);
    }
    return end;
  }

  private boolean suits(MemorySegment segment) {
    return segment.isNative() || segment.getClass() == array;
  }

  private VectorLoop loop(Class<?> a, Class<?> b, Class<?> out) {
    for (Copy copy : copies) {
      if (copy.a == a && copy.b == b && copy.out == out) {
        return copy.loop;
      }
    }
    return addLoop(a, b, out);
  }

  private synchronized VectorLoop addLoop(Class<?> a, Class<?> b, Class<?> out) {
    Copy[] more = Arrays.copyOf(copies, copies.length + 1);
    more[copies.length] =
        new Copy(a, b, out, Specialized.copy(template, VectorLoop.class, operator));
    copies = more;
    return more[more.length - 1].loop;
  }
}
