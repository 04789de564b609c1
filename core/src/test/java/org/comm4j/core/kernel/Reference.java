package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.random.RandomGenerator;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp.Predefined;

/// The kernels' arithmetic once more, slowly and by other means: one element at a time, integers as
/// big integers, small floats by search in the list of all their values.
final class Reference {
  private Reference() {}

  /// `a ∘ b` of one element each, in the accumulation type.
  static byte[] combine(Predefined op, DataType type, byte[] a, byte[] b) {
    return switch (type.kind()) {
      case PAIR -> pair(op, type.valueType(), a, b);
      case COMPLEX -> complex(op, type, a, b);
      case FLOAT -> floating(type, operate(op, floating(type, a), floating(type, b), type));
      case SIGNED, UNSIGNED, BOOL ->
          integer(type, integers(op, integer(type, a), integer(type, b)));
    };
  }

  private static BigInteger integers(Predefined op, BigInteger a, BigInteger b) {
    boolean p = a.signum() != 0;
    boolean q = b.signum() != 0;
    return switch (op) {
      case SUM, AVERAGE -> a.add(b);
      case PRODUCT -> a.multiply(b);
      case MIN -> a.min(b);
      case MAX -> a.max(b);
      case BIT_AND -> a.and(b);
      case BIT_OR -> a.or(b);
      case BIT_XOR -> a.xor(b);
      case LOGICAL_AND -> BigInteger.valueOf(p && q ? 1 : 0);
      case LOGICAL_OR -> BigInteger.valueOf(p || q ? 1 : 0);
      case LOGICAL_XOR -> BigInteger.valueOf(p != q ? 1 : 0);
      case MIN_LOC, MAX_LOC -> throw new AssertionError();
    };
  }

  /// On values that are exact in a double; FLOAT32 rounds once more, which is harmless for one + or
  /// ×.
  private static double operate(Predefined op, double a, double b, DataType type) {
    double result =
        switch (op) {
          case SUM, AVERAGE -> a + b;
          case PRODUCT -> a * b;
          case MIN -> Math.min(a, b);
          case MAX -> Math.max(a, b);
          default -> throw new AssertionError();
        };
    return type == DataType.FLOAT32 ? (float) result : result;
  }

  private static byte[] complex(Predefined op, DataType type, byte[] a, byte[] b) {
    DataType part = type == DataType.COMPLEX64 ? DataType.FLOAT32 : DataType.FLOAT64;
    int half = part.bytes();
    double p = floating(part, Arrays.copyOf(a, half));
    double q = floating(part, Arrays.copyOfRange(a, half, 2 * half));
    double r = floating(part, Arrays.copyOf(b, half));
    double s = floating(part, Arrays.copyOfRange(b, half, 2 * half));
    if (op != Predefined.PRODUCT) {
      return join(floating(part, operate(op, p, r, part)), floating(part, operate(op, q, s, part)));
    }
    double real = round(part, round(part, p * r) - round(part, q * s));
    double imaginary = round(part, round(part, p * s) + round(part, q * r));
    return join(floating(part, real), floating(part, imaginary));
  }

  private static double round(DataType part, double value) {
    return part == DataType.FLOAT32 ? (float) value : value;
  }

  private static byte[] pair(Predefined op, DataType type, byte[] a, byte[] b) {
    long i = bits(Arrays.copyOfRange(a, 8, 16), 8);
    long j = bits(Arrays.copyOfRange(b, 8, 16), 8);
    int order;
    if (type.kind() == Kind.FLOAT) {
      double p = floating(type, Arrays.copyOf(a, type.bytes()));
      double q = floating(type, Arrays.copyOf(b, type.bytes()));
      // Double.compare has −0.0 before +0.0, and NaN last: for the minimum it is to be first
      order =
          op == Predefined.MIN_LOC && Double.isNaN(p) != Double.isNaN(q)
              ? (Double.isNaN(p) ? -1 : 1)
              : Double.compare(p, q);
    } else {
      order =
          integer(type, Arrays.copyOf(a, type.bytes()))
              .compareTo(integer(type, Arrays.copyOf(b, type.bytes())));
    }
    order = op == Predefined.MAX_LOC ? -order : order;
    byte[] winner = order < 0 || (order == 0 && i <= j) ? a : b;
    byte[] value = Arrays.copyOf(winner, type.bytes());
    if (type.kind() == Kind.FLOAT && Double.isNaN(floating(type, value))) {
      value = floating(type, Double.NaN);
    }
    byte[] result = Arrays.copyOf(value, 16);
    System.arraycopy(winner, 8, result, 8, 8);
    return result;
  }

  /// One raw element in the accumulation type.
  static byte[] widen(DataType type, DataType accumulator, byte[] raw) {
    if (type == accumulator) {
      return raw;
    }
    return type.kind() == Kind.FLOAT
        ? floating(accumulator, floating(type, raw))
        : integer(accumulator, integer(type, raw));
  }

  /// One element of the accumulation type, finished.
  static byte[] finish(Predefined op, DataType type, DataType wide, byte[] a, int divisor) {
    boolean average = op == Predefined.AVERAGE;
    return switch (type.kind()) {
      case SIGNED, UNSIGNED ->
          integer(
              type,
              average ? integer(wide, a).divide(BigInteger.valueOf(divisor)) : integer(wide, a));
      case FLOAT -> {
        if (!average && type == wide) {
          yield a;
        }
        double value = floating(wide, a);
        yield floating(type, average ? round(wide, value / divisor) : value);
      }
      case COMPLEX -> {
        if (!average) {
          yield a;
        }
        DataType part = type == DataType.COMPLEX64 ? DataType.FLOAT32 : DataType.FLOAT64;
        int half = part.bytes();
        double real = floating(part, Arrays.copyOf(a, half));
        double imaginary = floating(part, Arrays.copyOfRange(a, half, 2 * half));
        yield join(
            floating(part, round(part, real / divisor)),
            floating(part, round(part, imaginary / divisor)));
      }
      case BOOL, PAIR -> a;
    };
  }

  /// Whether an element is, or has, a NaN.
  static boolean isNan(DataType type, byte[] element) {
    return type.kind() == Kind.FLOAT && Double.isNaN(floating(type, element));
  }

  private static byte[] join(byte[] a, byte[] b) {
    byte[] joined = Arrays.copyOf(a, a.length + b.length);
    System.arraycopy(b, 0, joined, a.length, b.length);
    return joined;
  }

  private static BigInteger integer(DataType type, byte[] element) {
    long bits = bits(element, type.bytes());
    if (type.kind() == Kind.SIGNED) {
      return BigInteger.valueOf(bits << (64 - 8 * type.bytes()) >> (64 - 8 * type.bytes()));
    }
    return new BigInteger(Long.toUnsignedString(bits));
  }

  private static byte[] integer(DataType type, BigInteger value) {
    return bytes(value.longValue(), type.bytes());
  }

  private static double floating(DataType type, byte[] element) {
    long bits = bits(element, type.bytes());
    return switch (type) {
      case FLOAT64 -> Double.longBitsToDouble(bits);
      case FLOAT32 -> Float.intBitsToFloat((int) bits);
      default -> SmallFloat.of(type).decode((int) bits);
    };
  }

  private static byte[] floating(DataType type, double value) {
    long bits =
        switch (type) {
          case FLOAT64 -> Double.doubleToLongBits(value);
          case FLOAT32 -> Float.floatToIntBits((float) value);
          default -> SmallFloat.of(type).encode(value);
        };
    return bytes(bits, type.bytes());
  }

  private static long bits(byte[] element, int bytes) {
    long bits = 0;
    for (int i = 0; i < bytes; i++) {
      bits |= (element[i] & 0xffL) << (8 * place(i, bytes));
    }
    return bits;
  }

  private static byte[] bytes(long bits, int bytes) {
    byte[] element = new byte[bytes];
    for (int i = 0; i < bytes; i++) {
      element[i] = (byte) (bits >>> (8 * place(i, bytes)));
    }
    return element;
  }

  private static int place(int i, int bytes) {
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? i : bytes - 1 - i;
  }

  /// Bytes of elements: any bits, and often the values at the edges.
  static byte[] random(DataType type, int count, RandomGenerator random) {
    byte[] bytes = new byte[count * type.bytes()];
    random.nextBytes(bytes);
    DataType part =
        switch (type) {
          case COMPLEX64 -> DataType.FLOAT32;
          case COMPLEX128 -> DataType.FLOAT64;
          default -> type.valueType();
        };
    int stride = type.kind() == Kind.PAIR ? 16 : part.bytes();
    for (int at = 0; at < bytes.length; at += stride) {
      byte[] value = interesting(part, random);
      System.arraycopy(value, 0, bytes, at, value.length);
      if (type.kind() == Kind.PAIR) {
        System.arraycopy(bytes(random.nextInt(-2, 3), 8), 0, bytes, at + 8, 8);
      }
    }
    return bytes;
  }

  private static byte[] interesting(DataType type, RandomGenerator random) {
    int bits = 8 * type.bytes();
    return switch (random.nextInt(8)) {
      case 0 -> bytes(random.nextInt(-2, 3), type.bytes());
      case 1 -> bytes(1L << (bits - 1), type.bytes()); // −0.0, the smallest integer
      case 2 -> bytes((1L << (bits - 1)) - 1, type.bytes()); // NaN, the largest
      case 3 ->
          type.kind() == Kind.FLOAT
              ? floating(type, random.nextBoolean() ? 1 / 0.0 : -1 / 0.0)
              : bytes(random.nextInt(2), type.bytes());
      case 4, 5 ->
          type.kind() == Kind.FLOAT
              ? floating(type, random.nextInt(-64, 65) / 8.0)
              : bytes(random.nextInt(-9, 10), type.bytes());
      default -> bytes(random.nextLong(), type.bytes());
    };
  }

  /// The element at a place in a segment.
  static byte[] element(MemorySegment segment, long offset, long index, int bytes) {
    return segment.asSlice(offset + index * bytes, bytes).toArray(ValueLayout.JAVA_BYTE);
  }
}
