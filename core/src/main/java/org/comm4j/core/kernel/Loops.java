package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.util.function.DoubleBinaryOperator;
import java.util.function.IntBinaryOperator;
import java.util.function.LongBinaryOperator;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp.Predefined;

/// The operators on Java's primitives, and the loops over arrays that apply them.
///
/// Integers of 8 to 32 bits share their operators: they are sign-extended on the way in, which
/// keeps the unsigned order as well, and truncated on the way out.
final class Loops {
  private Loops() {}

  /// The loop for elements of an accumulation type.
  static Loop of(Predefined op, DataType type) {
    return switch (Carrier.of(type)) {
      case BYTE -> Specialized.copy(Bytes.class, Loop.class, ints(op, type));
      case SHORT -> Specialized.copy(Shorts.class, Loop.class, ints(op, type));
      case INT -> Specialized.copy(Ints.class, Loop.class, ints(op, type));
      case LONG ->
          type.kind() == Kind.PAIR
              ? Specialized.copy(Pairs.class, Loop.class, PairOrder.of(op, type))
              : Specialized.copy(Longs.class, Loop.class, longs(op, type));
      case FLOAT ->
          isComplexProduct(op, type)
              ? new ComplexFloats()
              : Specialized.copy(Floats.class, Loop.class, floats(op));
      case DOUBLE ->
          isComplexProduct(op, type)
              ? new ComplexDoubles()
              : Specialized.copy(Doubles.class, Loop.class, doubles(op));
    };
  }

  private static boolean isComplexProduct(Predefined op, DataType type) {
    return op == Predefined.PRODUCT && type.kind() == Kind.COMPLEX;
  }

  private static IntBinaryOperator ints(Predefined op, DataType type) {
    boolean unsigned = type.kind() == Kind.UNSIGNED;
    if (type.kind() == Kind.FLOAT) {
      FloatFormat format = FloatFormat.of(type);
      return op == Predefined.MIN
          ? (a, b) -> (int) format.min(a, b)
          : (a, b) -> (int) format.max(a, b);
    }
    return switch (op) {
      case SUM, AVERAGE -> (a, b) -> a + b;
      case PRODUCT -> (a, b) -> a * b;
      case MIN ->
          unsigned
              ? (a, b) -> Integer.compareUnsigned(a, b) <= 0 ? a : b
              : (a, b) -> Math.min(a, b);
      case MAX ->
          unsigned
              ? (a, b) -> Integer.compareUnsigned(a, b) >= 0 ? a : b
              : (a, b) -> Math.max(a, b);
      case BIT_AND -> (a, b) -> a & b;
      case BIT_OR -> (a, b) -> a | b;
      case BIT_XOR -> (a, b) -> a ^ b;
      case LOGICAL_AND -> (a, b) -> bit(a) & bit(b);
      case LOGICAL_OR -> (a, b) -> bit(a | b);
      case LOGICAL_XOR -> (a, b) -> bit(a) ^ bit(b);
      case MIN_LOC, MAX_LOC -> throw new AssertionError(op);
    };
  }

  /// 1 if `value` is not zero, without a branch: then its sign or that of its negation is set.
  private static int bit(int value) {
    return (value | -value) >>> 31;
  }

  private static LongBinaryOperator longs(Predefined op, DataType type) {
    boolean unsigned = type.kind() == Kind.UNSIGNED;
    return switch (op) {
      case SUM, AVERAGE -> (a, b) -> a + b;
      case PRODUCT -> (a, b) -> a * b;
      case MIN ->
          unsigned ? (a, b) -> Long.compareUnsigned(a, b) <= 0 ? a : b : (a, b) -> Math.min(a, b);
      case MAX ->
          unsigned ? (a, b) -> Long.compareUnsigned(a, b) >= 0 ? a : b : (a, b) -> Math.max(a, b);
      case BIT_AND -> (a, b) -> a & b;
      case BIT_OR -> (a, b) -> a | b;
      case BIT_XOR -> (a, b) -> a ^ b;
      case LOGICAL_AND -> (a, b) -> bit(a) & bit(b);
      case LOGICAL_OR -> (a, b) -> bit(a | b);
      case LOGICAL_XOR -> (a, b) -> bit(a) ^ bit(b);
      case MIN_LOC, MAX_LOC -> throw new AssertionError(op);
    };
  }

  private static long bit(long value) {
    return (value | -value) >>> 63;
  }

  private static FloatBinaryOperator floats(Predefined op) {
    return switch (op) {
      case SUM, AVERAGE -> (a, b) -> a + b;
      case PRODUCT -> (a, b) -> a * b;
      case MIN -> (a, b) -> Math.min(a, b);
      case MAX -> (a, b) -> Math.max(a, b);
      default -> throw new AssertionError(op);
    };
  }

  private static DoubleBinaryOperator doubles(Predefined op) {
    return switch (op) {
      case SUM, AVERAGE -> (a, b) -> a + b;
      case PRODUCT -> (a, b) -> a * b;
      case MIN -> (a, b) -> Math.min(a, b);
      case MAX -> (a, b) -> Math.max(a, b);
      default -> throw new AssertionError(op);
    };
  }

  /// The missing sibling of [DoubleBinaryOperator].
  @FunctionalInterface
  interface FloatBinaryOperator {
    float applyAsFloat(float left, float right);
  }

  /// Template for 8-bit integers.
  static final class Bytes implements Loop {
    private static final IntBinaryOperator OP =
        Specialized.operator(MethodHandles.lookup(), IntBinaryOperator.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      byte[] a = (byte[]) x;
      byte[] b = (byte[]) y;
      byte[] c = (byte[]) z;
      for (int i = from; i < to; i++) {
        c[i] = (byte) OP.applyAsInt(a[i], b[i]);
      }
    }
  }

  /// Template for 16-bit integers.
  static final class Shorts implements Loop {
    private static final IntBinaryOperator OP =
        Specialized.operator(MethodHandles.lookup(), IntBinaryOperator.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      short[] a = (short[]) x;
      short[] b = (short[]) y;
      short[] c = (short[]) z;
      for (int i = from; i < to; i++) {
        c[i] = (short) OP.applyAsInt(a[i], b[i]);
      }
    }
  }

  /// Template for 32-bit integers.
  static final class Ints implements Loop {
    private static final IntBinaryOperator OP =
        Specialized.operator(MethodHandles.lookup(), IntBinaryOperator.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      int[] a = (int[]) x;
      int[] b = (int[]) y;
      int[] c = (int[]) z;
      for (int i = from; i < to; i++) {
        c[i] = OP.applyAsInt(a[i], b[i]);
      }
    }

    @Override
    public boolean applyNative(
        MemorySegment a, long aOffset, MemorySegment b, long bOffset, Object z, int count) {
      var _ = a.address() ^ b.address(); // tells the compiler their classes
      int[] c = (int[]) z;
      for (int i = 0; i < count; i++) {
        c[i] =
            OP.applyAsInt(
                a.get(ValueLayout.JAVA_INT_UNALIGNED, aOffset + 4L * i),
                b.get(ValueLayout.JAVA_INT_UNALIGNED, bOffset + 4L * i));
      }
      return true;
    }
  }

  /// Template for 64-bit integers.
  static final class Longs implements Loop {
    private static final LongBinaryOperator OP =
        Specialized.operator(MethodHandles.lookup(), LongBinaryOperator.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      long[] a = (long[]) x;
      long[] b = (long[]) y;
      long[] c = (long[]) z;
      for (int i = from; i < to; i++) {
        c[i] = OP.applyAsLong(a[i], b[i]);
      }
    }

    @Override
    public boolean applyNative(
        MemorySegment a, long aOffset, MemorySegment b, long bOffset, Object z, int count) {
      var _ = a.address() ^ b.address(); // tells the compiler their classes
      long[] c = (long[]) z;
      for (int i = 0; i < count; i++) {
        c[i] =
            OP.applyAsLong(
                a.get(ValueLayout.JAVA_LONG_UNALIGNED, aOffset + 8L * i),
                b.get(ValueLayout.JAVA_LONG_UNALIGNED, bOffset + 8L * i));
      }
      return true;
    }
  }

  /// Template for floats; NaNs are made canonical afterwards.
  static final class Floats implements Loop {
    private static final FloatBinaryOperator OP =
        Specialized.operator(MethodHandles.lookup(), FloatBinaryOperator.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      float[] a = (float[]) x;
      float[] b = (float[]) y;
      float[] c = (float[]) z;
      for (int i = from; i < to; i++) {
        c[i] = OP.applyAsFloat(a[i], b[i]);
      }
    }
  }

  /// Template for doubles; NaNs are made canonical afterwards.
  static final class Doubles implements Loop {
    private static final DoubleBinaryOperator OP =
        Specialized.operator(MethodHandles.lookup(), DoubleBinaryOperator.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      double[] a = (double[]) x;
      double[] b = (double[]) y;
      double[] c = (double[]) z;
      for (int i = from; i < to; i++) {
        c[i] = OP.applyAsDouble(a[i], b[i]);
      }
    }
  }

  /// Template for pairs: the value's word, then the index.
  static final class Pairs implements Loop {
    private static final PairOrder ORDER =
        Specialized.operator(MethodHandles.lookup(), PairOrder.class);

    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      long[] a = (long[]) x;
      long[] b = (long[]) y;
      long[] c = (long[]) z;
      for (int i = from; i < to; i += 2) {
        long key = ORDER.key(a[i]);
        long other = ORDER.key(b[i]);
        c[i + 1] =
            key == other
                ? Math.min(a[i + 1], b[i + 1])
                : ORDER.isFirst(key, other) ? a[i + 1] : b[i + 1];
        c[i] = ORDER.word(ORDER.isFirst(key, other) ? key : other);
      }
    }
  }

  /// The textbook product, of FLOAT32 parts.
  static final class ComplexFloats implements Loop {
    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      float[] a = (float[]) x;
      float[] b = (float[]) y;
      float[] c = (float[]) z;
      for (int i = from; i < to; i += 2) {
        float real = a[i] * b[i] - a[i + 1] * b[i + 1];
        c[i + 1] = a[i] * b[i + 1] + a[i + 1] * b[i];
        c[i] = real;
      }
    }
  }

  /// The textbook product, of FLOAT64 parts.
  static final class ComplexDoubles implements Loop {
    @Override
    public void apply(Object x, Object y, Object z, int from, int to) {
      double[] a = (double[]) x;
      double[] b = (double[]) y;
      double[] c = (double[]) z;
      for (int i = from; i < to; i += 2) {
        double real = a[i] * b[i] - a[i + 1] * b[i + 1];
        c[i + 1] = a[i] * b[i + 1] + a[i + 1] * b[i];
        c[i] = real;
      }
    }
  }
}
