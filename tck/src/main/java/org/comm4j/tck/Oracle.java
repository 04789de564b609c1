package org.comm4j.tck;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.ReduceOp.Predefined;

/// What a reduction must give: the left fold over the ranks' contributions in the accumulation
/// type, rounded once. One element after the other, in plain Java, with an arithmetic of its own;
/// slow.
///
/// Elements are bytes in native order.
public final class Oracle {
  private Oracle() {}

  /// Combines contributions of several ranks.
  ///
  /// @param op legal for the type
  /// @param type what the elements are
  /// @param contributions rank 0's first, all of one length; at least one
  /// @return the result; padding of pairs is zero
  public static byte[] fold(ReduceOp op, DataType type, List<byte[]> contributions) {
    if (contributions.size() == 1) {
      return contributions.getFirst().clone();
    }
    return switch (op) {
      case Predefined predefined -> fold(predefined, type, contributions);
      case ReduceOp.UserDefined user -> fold(user, type, contributions);
    };
  }

  private static byte[] fold(ReduceOp.UserDefined op, DataType type, List<byte[]> contributions) {
    byte[] result = contributions.getFirst().clone();
    long count = type.countIn(result.length);
    for (byte[] next : contributions.subList(1, contributions.size())) {
      if (count > 0) {
        op.function()
            .combine(
                java.lang.foreign.MemorySegment.ofArray(next).asReadOnly(),
                java.lang.foreign.MemorySegment.ofArray(result),
                type,
                count);
      }
    }
    return result;
  }

  private static byte[] fold(Predefined op, DataType type, List<byte[]> contributions) {
    int bytes = contributions.getFirst().length;
    byte[] result = new byte[bytes];
    ByteBuffer to = buffer(result);
    List<ByteBuffer> from = contributions.stream().map(Oracle::buffer).toList();
    for (int at = 0; at < bytes; at += type.bytes()) {
      switch (type.kind()) {
        case SIGNED, UNSIGNED, BOOL -> integer(op, type, from, at, to);
        case FLOAT -> floating(op, type, from, at, to);
        case COMPLEX -> complex(op, type, from, at, to);
        case PAIR -> pair(op, type.valueType(), from, at, to);
      }
    }
    return result;
  }

  // --- integers: in 64 bits; what is cut off at the end would have been cut off each time ---

  private static void integer(
      Predefined op, DataType type, List<ByteBuffer> from, int at, ByteBuffer to) {
    long folded = readInteger(type, from.getFirst(), at);
    for (ByteBuffer next : from.subList(1, from.size())) {
      folded = combine(op, type, folded, readInteger(type, next, at));
    }
    if (op == Predefined.AVERAGE) {
      folded =
          type.kind() == Kind.UNSIGNED
              ? Long.divideUnsigned(folded, from.size())
              : folded / from.size();
    }
    write(to, at, type.bytes(), folded);
  }

  private static long combine(Predefined op, DataType type, long a, long b) {
    boolean less =
        type.kind() == Kind.UNSIGNED ? Long.compareUnsigned(a, b) < 0 : Long.compare(a, b) < 0;
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case PRODUCT -> a * b;
      case MIN -> less ? a : b;
      case MAX -> less ? b : a;
      case BIT_AND -> a & b;
      case BIT_OR -> a | b;
      case BIT_XOR -> a ^ b;
      case LOGICAL_AND -> a != 0 && b != 0 ? 1 : 0;
      case LOGICAL_OR -> a != 0 || b != 0 ? 1 : 0;
      case LOGICAL_XOR -> (a != 0) ^ (b != 0) ? 1 : 0;
      case MIN_LOC, MAX_LOC -> throw new AssertionError(op);
    };
  }

  private static long readInteger(DataType type, ByteBuffer from, int at) {
    long bits = read(from, at, type.bytes());
    int unused = 64 - 8 * type.bytes();
    return type.kind() == Kind.SIGNED ? bits << unused >> unused : bits;
  }

  // --- floats ---

  private static void floating(
      Predefined op, DataType type, List<ByteBuffer> from, int at, ByteBuffer to) {
    double folded = readFloat(type, from.getFirst(), at);
    for (ByteBuffer next : from.subList(1, from.size())) {
      folded = combine(op, type, folded, readFloat(type, next, at));
    }
    if (op == Predefined.AVERAGE) {
      folded = accumulated(type, folded / from.size());
    }
    write(to, at, type.bytes(), encode(type, folded));
  }

  private static double combine(Predefined op, DataType type, double a, double b) {
    return switch (op) {
      case SUM, AVERAGE -> accumulated(type, a + b);
      case PRODUCT -> accumulated(type, a * b);
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      default -> throw new AssertionError(op);
    };
  }

  /// Of two floats a double's sum, product and quotient, rounded to float, are those of floats.
  private static double accumulated(DataType type, double value) {
    return type == DataType.FLOAT64 ? value : (float) value;
  }

  /// {@return an element's value; exact}
  ///
  /// @param type a float
  /// @param from where it is
  /// @param at at which byte
  static double readFloat(DataType type, ByteBuffer from, int at) {
    return decode(type, read(from, at, type.bytes()));
  }

  // --- complex numbers ---

  private static void complex(
      Predefined op, DataType type, List<ByteBuffer> from, int at, ByteBuffer to) {
    DataType part = type == DataType.COMPLEX64 ? DataType.FLOAT32 : DataType.FLOAT64;
    int imaginary = at + part.bytes();
    double x = readFloat(part, from.getFirst(), at);
    double y = readFloat(part, from.getFirst(), imaginary);
    for (ByteBuffer next : from.subList(1, from.size())) {
      double u = readFloat(part, next, at);
      double v = readFloat(part, next, imaginary);
      if (op == Predefined.PRODUCT) {
        double real = accumulated(part, accumulated(part, x * u) - accumulated(part, y * v));
        y = accumulated(part, accumulated(part, x * v) + accumulated(part, y * u));
        x = real;
      } else {
        x = accumulated(part, x + u);
        y = accumulated(part, y + v);
      }
    }
    if (op == Predefined.AVERAGE) {
      x = accumulated(part, x / from.size());
      y = accumulated(part, y / from.size());
    }
    write(to, at, part.bytes(), encode(part, x));
    write(to, imaginary, part.bytes(), encode(part, y));
  }

  // --- pairs ---

  private static void pair(
      Predefined op, DataType value, List<ByteBuffer> from, int at, ByteBuffer to) {
    ByteBuffer best = from.getFirst();
    for (ByteBuffer next : from.subList(1, from.size())) {
      int order = order(op, value, next, best, at);
      if (order < 0 || (order == 0 && index(next, at) < index(best, at))) {
        best = next;
      }
    }
    long bits = read(best, at, value.bytes());
    if (value.kind() == Kind.FLOAT) {
      bits = encode(value, decode(value, bits)); // makes NaN canonical
    }
    write(to, at, value.bytes(), bits);
    write(to, at + DataType.PAIR_INDEX_OFFSET, 8, index(best, at));
  }

  /// Negative if the value in `a` goes before the one in `b`.
  private static int order(Predefined op, DataType value, ByteBuffer a, ByteBuffer b, int at) {
    int sign = op == Predefined.MIN_LOC ? 1 : -1;
    if (value.kind() == Kind.FLOAT) {
      double x = readFloat(value, a, at);
      double y = readFloat(value, b, at);
      if (Double.isNaN(x) || Double.isNaN(y)) {
        return Boolean.compare(Double.isNaN(y), Double.isNaN(x));
      }
      return sign * Double.compare(x, y); // −0.0 is less than +0.0 here
    }
    long x = readInteger(value, a, at);
    long y = readInteger(value, b, at);
    return sign * (value.kind() == Kind.UNSIGNED ? Long.compareUnsigned(x, y) : Long.compare(x, y));
  }

  private static long index(ByteBuffer pair, int at) {
    return read(pair, at + DataType.PAIR_INDEX_OFFSET, 8);
  }

  // --- floats as bits ---

  /// A small float.
  ///
  /// @param mantissa bits of it
  /// @param bias of the exponent
  /// @param largest finite value
  /// @param infinity bits of it, or of what stands for it
  /// @param nan the canonical one
  private record Format(int mantissa, int bias, double largest, long infinity, long nan) {
    static Format of(DataType type) {
      return switch (type) {
        case FLOAT16 -> new Format(10, 15, 65504, 0x7c00, 0x7e00);
        case BFLOAT16 -> new Format(7, 127, 0x1.fep127, 0x7f80, 0x7fc0);
        case FLOAT8_E4M3 -> new Format(3, 7, 448, 0x7e, 0x7f);
        case FLOAT8_E5M2 -> new Format(2, 15, 57344, 0x7c, 0x7e);
        default -> throw new IllegalArgumentException(type + " is no small float");
      };
    }
  }

  /// {@return the value of a float's bits}
  ///
  /// @param type a float
  /// @param bits its bits, the upper ones zero
  static double decode(DataType type, long bits) {
    if (type == DataType.FLOAT64) {
      return Double.longBitsToDouble(bits);
    }
    if (type == DataType.FLOAT32) {
      return Float.intBitsToFloat((int) bits);
    }
    Format format = Format.of(type);
    long signBit = 1L << (8 * type.bytes() - 1);
    long magnitude = bits & (signBit - 1);
    double value;
    if (type == DataType.FLOAT8_E4M3 ? magnitude == 0x7f : magnitude > format.infinity) {
      value = Double.NaN;
    } else if (type != DataType.FLOAT8_E4M3 && magnitude == format.infinity) {
      value = Double.POSITIVE_INFINITY;
    } else {
      long exponent = magnitude >> format.mantissa;
      long fraction = magnitude - (exponent << format.mantissa);
      long significand = exponent == 0 ? fraction : fraction + (1L << format.mantissa);
      int scale = (int) Math.max(1, exponent) - format.bias - format.mantissa;
      value = Math.scalb((double) significand, scale);
    }
    return (bits & signBit) != 0 ? -value : value;
  }

  /// {@return the largest finite value of a float}
  ///
  /// @param type a float
  static double largest(DataType type) {
    return switch (type) {
      case FLOAT64 -> Double.MAX_VALUE;
      case FLOAT32 -> Float.MAX_VALUE;
      default -> Format.of(type).largest;
    };
  }

  /// {@return the bits of the nearest float, of two the even one} NaN is canonical; what is too
  /// large is infinite, in E4M3 the largest finite value.
  ///
  /// @param type a float
  /// @param value rounded once
  static long encode(DataType type, double value) {
    if (type == DataType.FLOAT64) {
      return Double.doubleToLongBits(value);
    }
    if (type == DataType.FLOAT32) {
      return Integer.toUnsignedLong(Float.floatToIntBits((float) value));
    }
    Format format = Format.of(type);
    if (Double.isNaN(value)) {
      return format.nan;
    }
    long sign = Math.copySign(1, value) < 0 ? 1L << (8 * type.bytes() - 1) : 0;
    double size = Math.abs(value);
    int least = 1 - format.bias;
    int exponent = Math.max(least, Math.min(Math.getExponent(size), 1000));
    double rounded =
        Double.isInfinite(size)
            ? size
            : Math.scalb(
                Math.rint(Math.scalb(size, format.mantissa - exponent)),
                exponent - format.mantissa);
    if (rounded > format.largest) {
      return sign | format.infinity;
    }
    if (rounded < Math.scalb(1.0, least)) {
      return sign | (long) Math.scalb(rounded, format.mantissa - least);
    }
    int scale = Math.getExponent(rounded);
    long significand = (long) Math.scalb(rounded, format.mantissa - scale);
    return sign
        | (long) (scale + format.bias) << format.mantissa
        | (significand - (1L << format.mantissa));
  }

  // --- bytes ---

  static ByteBuffer buffer(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
  }

  static long read(ByteBuffer from, int at, int bytes) {
    return switch (bytes) {
      case 1 -> from.get(at) & 0xffL;
      case 2 -> from.getShort(at) & 0xffffL;
      case 4 -> Integer.toUnsignedLong(from.getInt(at));
      case 8 -> from.getLong(at);
      default -> throw new AssertionError(bytes);
    };
  }

  static void write(ByteBuffer to, int at, int bytes, long bits) {
    switch (bytes) {
      case 1 -> to.put(at, (byte) bits);
      case 2 -> to.putShort(at, (short) bits);
      case 4 -> to.putInt(at, (int) bits);
      case 8 -> to.putLong(at, bits);
      default -> throw new AssertionError(bytes);
    }
  }

  /// {@return whether two elements are equal as results} Padding counts for nothing.
  ///
  /// @param type what they are
  /// @param a elements
  /// @param b elements
  /// @param at at which byte the elements to compare start
  static boolean isSame(DataType type, byte[] a, byte[] b, int at) {
    if (type.kind() != Kind.PAIR) {
      return Arrays.equals(a, at, at + type.bytes(), b, at, at + type.bytes());
    }
    int value = type.valueType().bytes();
    return Arrays.equals(a, at, at + value, b, at, at + value)
        && Arrays.equals(a, at + 8, at + 16, b, at + 8, at + 16);
  }
}
