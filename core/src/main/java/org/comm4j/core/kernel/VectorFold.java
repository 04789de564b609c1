package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

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
/// Until it is compiled, a vector loop is a thousand times slower, and it takes some thousand calls
/// to be compiled. So [WarmUp] calls a copy that is used often, beside the program and on memory of
/// its own, and the copy takes over once it is fast. Where it never is (no vector instructions, no
/// optimizing compiler), the way through tiles stays. Which way an element goes makes no difference
/// to its bits.
final class VectorFold {
  private static final class Copy {
    final Class<?> a;
    final Class<?> b;
    final Class<?> out;
    final VectorLoop loop;
    int uses; // about: written without a lock
    boolean warming;
    volatile boolean fast;
    volatile boolean maskedFast;

    Copy(Class<?> a, Class<?> b, Class<?> out, VectorLoop loop) {
      this.a = a;
      this.b = b;
      this.out = out;
      this.loop = loop;
    }
  }

  /// Loops that are used less are not worth the tenths of a second that their warm-up takes: so
  /// many small calls, or 5 MiB.
  private static final int MANY_USES = 20_000;

  private static final int BYTES_PER_USE = 256;

  private final Class<? extends VectorLoop> template;
  private final Object operator;
  private final int vectorBytes;
  private final Carrier aCarrier;
  private final Carrier bCarrier;
  private final Carrier outCarrier;
  private final Class<?> aArray;
  private final Class<?> bArray;
  private final Class<?> outArray;
  private volatile Copy[] copies = {};

  /// @param template the loop, a template of [Specialized]
  /// @param operator its operator
  /// @param aCarrier the primitive of arrays that it takes as its first operand
  /// @param vectorBytes what it combines in one go, in bytes of the widest of the three
  VectorFold(
      Class<? extends VectorLoop> template,
      Object operator,
      Carrier aCarrier,
      Carrier bCarrier,
      Carrier outCarrier,
      int vectorBytes) {
    this.template = template;
    this.operator = operator;
    this.vectorBytes = vectorBytes;
    this.aCarrier = aCarrier;
    this.bCarrier = bCarrier;
    this.outCarrier = outCarrier;
    this.aArray = arrayClass(aCarrier);
    this.bArray = arrayClass(bCarrier);
    this.outArray = arrayClass(outCarrier);
  }

  private static Class<?> arrayClass(Carrier carrier) {
    return carrier.tile(carrier.bytes()).segment().getClass();
  }

  /// `out = a ∘ b` from the start, as far as vectors go, for one piece of perhaps many.
  ///
  /// @param bytes of the widest of the three
  /// @return how many bytes were combined; 0 if the memory is of another kind, the loop is not
  ///   fast, or some of it is not for vectors
  int fold(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int bytes) {
    if (!suits(a, aArray) || !suits(b, bArray) || !suits(out, outArray)) {
      return 0;
    }
    Copy copy = copy(a.getClass(), b.getClass(), out.getClass());
    if (copy.uses < MANY_USES) {
      use(copy, 1 + bytes / BYTES_PER_USE);
    }
    int end = bytes & -vectorBytes;
    if (end > 0) {
      if (!copy.fast || !copy.loop.apply(a, aOffset, b, bOffset, out, outOffset, end)) {
        return 0;
      }
    }
    if (end == bytes || !copy.maskedFast) {
      return end;
    }
    copy.loop.applyMasked(a, aOffset + end, b, bOffset + end, out, outOffset + end, bytes - end);
    return bytes;
  }

  /// Whether memory of these classes is combined by vectors from now on.
  boolean isFast(MemorySegment a, MemorySegment b, MemorySegment out) {
    Copy copy = copy(a.getClass(), b.getClass(), out.getClass());
    return copy.fast && (copy.maskedFast || !copy.loop.hasMaskedForm());
  }

  /// What combines memory of these classes, be it fast or not.
  VectorLoop loop(MemorySegment a, MemorySegment b, MemorySegment out) {
    return copy(a.getClass(), b.getClass(), out.getClass()).loop;
  }

  private static boolean suits(MemorySegment segment, Class<?> array) {
    return segment.isNative() || segment.getClass() == array;
  }

  private Copy copy(Class<?> a, Class<?> b, Class<?> out) {
    Copy known = find(a, b, out);
    return known == null ? addCopy(a, b, out) : known;
  }

  private @Nullable Copy find(Class<?> a, Class<?> b, Class<?> out) {
    for (Copy copy : copies) {
      if (copy.a == a && copy.b == b && copy.out == out) {
        return copy;
      }
    }
    return null;
  }

  private synchronized Copy addCopy(Class<?> a, Class<?> b, Class<?> out) {
    Copy known = find(a, b, out);
    if (known != null) {
      return known; // added by another thread meanwhile
    }
    Copy[] more = Arrays.copyOf(copies, copies.length + 1);
    VectorLoop loop = Specialized.copy(template, VectorLoop.class, operator);
    Copy copy = new Copy(a, b, out, loop);
    more[copies.length] = copy;
    copies = more;
    return copy;
  }

  private void use(Copy copy, int times) {
    copy.uses += times;
    if (copy.uses >= MANY_USES) {
      makeFast(copy);
    }
  }

  private synchronized void makeFast(Copy copy) {
    if (copy.warming) {
      return;
    }
    copy.warming = true;
    Supplier<WarmUp.Memory> memory =
        () ->
            new WarmUp.Memory(
                WarmUp.segment(copy.a, aCarrier),
                WarmUp.segment(copy.b, bCarrier),
                WarmUp.segment(copy.out, outCarrier));
    WarmUp.start(copy.loop, 0, memory, () -> copy.fast = true);
    if (copy.loop.hasMaskedForm()) {
      int tail = vectorBytes - aCarrier.bytes();
      WarmUp.start(copy.loop, tail, memory, () -> copy.maskedFast = true);
    }
  }
}
