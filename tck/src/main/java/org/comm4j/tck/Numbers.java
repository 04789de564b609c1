package org.comm4j.tck;

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp;

/// Comparing elements as numbers: what is near enough, and how to show them.
final class Numbers {
  private Numbers() {}

  private static DataType part(DataType type) {
    return switch (type) {
      case COMPLEX64 -> DataType.FLOAT32;
      case COMPLEX128 -> DataType.FLOAT64;
      default -> type.valueType();
    };
  }

  private static int parts(DataType type) {
    return type.kind() == Kind.COMPLEX ? 2 : 1;
  }

  /// Whether both elements have NaNs in the same places and are the same elsewhere.
  static boolean areBothNan(DataType type, byte[] a, byte[] b, int at) {
    DataType part = part(type);
    if (part.kind() != Kind.FLOAT) {
      return false;
    }
    if (type.kind() == Kind.PAIR && index(a, at) != index(b, at)) {
      return false;
    }
    boolean found = false;
    for (int i = 0; i < parts(type); i++) {
      int place = at + i * part.bytes();
      double x = Oracle.readFloat(part, Oracle.buffer(a), place);
      double y = Oracle.readFloat(part, Oracle.buffer(b), place);
      if (Double.isNaN(x) != Double.isNaN(y) || (!Double.isNaN(x) && Double.compare(x, y) != 0)) {
        return false;
      }
      found |= Double.isNaN(x);
    }
    return found;
  }

  private static long index(byte[] pair, int at) {
    return Oracle.read(Oracle.buffer(pair), at + DataType.PAIR_INDEX_OFFSET, 8);
  }

  /// Whether floats or complex numbers are equal, NaN to NaN and −0.0 to +0.0.
  static boolean areEqual(DataType type, byte[] a, byte[] b, int at) {
    DataType part = part(type);
    for (int i = 0; i < parts(type); i++) {
      int place = at + i * part.bytes();
      double x = Oracle.readFloat(part, Oracle.buffer(a), place);
      double y = Oracle.readFloat(part, Oracle.buffer(b), place);
      if (x != y && !(Double.isNaN(x) && Double.isNaN(y))) {
        return false;
      }
    }
    return true;
  }

  /// Whether a sum, product or average is within the error that so many terms may make.
  ///
  /// @param terms contributions; of [Values#ORDINARY]
  /// @param from at which byte the element is in each
  /// @param is results
  /// @param at at which byte the element is there
  /// @param coarse whether each step may round to the type itself
  static boolean areNear(
      DataType type, ReduceOp op, List<byte[]> terms, int from, byte[] is, int at, boolean coarse) {
    DataType part = part(type);
    double epsilon = epsilon(coarse ? part : part == DataType.FLOAT64 ? part : DataType.FLOAT32);
    double[] exact = exact(type, part, op, terms, from);
    double slack = exact[2] * 4 * terms.size() * epsilon + Double.MIN_NORMAL;
    ByteBuffer result = Oracle.buffer(is);
    for (int i = 0; i < parts(type); i++) {
      double value = Oracle.readFloat(part, result, at + i * part.bytes());
      double low = Oracle.decode(part, Oracle.encode(part, exact[i] - slack));
      double high = Oracle.decode(part, Oracle.encode(part, exact[i] + slack));
      if (!(value >= low && value <= high)) {
        return false;
      }
    }
    return true;
  }

  /// Real part, imaginary part, and how large intermediate results can be.
  private static double[] exact(
      DataType type, DataType part, ReduceOp op, List<byte[]> terms, int from) {
    boolean product = op == ReduceOp.PRODUCT;
    double x = product ? 1 : 0;
    double y = 0;
    double size = x;
    for (byte[] term : terms) {
      ByteBuffer bytes = Oracle.buffer(term);
      double u = Oracle.readFloat(part, bytes, from);
      double v = parts(type) == 2 ? Oracle.readFloat(part, bytes, from + part.bytes()) : 0;
      if (product) {
        double real = x * u - y * v;
        y = x * v + y * u;
        x = real;
        size *= Math.abs(u) + Math.abs(v);
      } else {
        x += u;
        y += v;
        size += Math.abs(u) + Math.abs(v);
      }
    }
    int divisor = op == ReduceOp.AVERAGE ? terms.size() : 1;
    return new double[] {x / divisor, y / divisor, size / divisor};
  }

  private static double epsilon(DataType type) {
    return switch (type) {
      case FLOAT64 -> 0x1p-52;
      case FLOAT32 -> 0x1p-23;
      case FLOAT16 -> 0x1p-10;
      case BFLOAT16 -> 0x1p-7;
      case FLOAT8_E4M3 -> 0x1p-3;
      case FLOAT8_E5M2 -> 0x1p-2;
      default -> throw new IllegalArgumentException(type + " is no float");
    };
  }

  /// An element for people: its value and its bits.
  static String text(DataType type, byte[] bytes, int at) {
    String bits = HexFormat.of().formatHex(bytes, at, at + type.bytes());
    DataType part = part(type);
    if (part.kind() == Kind.FLOAT) {
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < parts(type); i++) {
        text.append(Oracle.readFloat(part, Oracle.buffer(bytes), at + i * part.bytes()))
            .append(' ');
      }
      return text + "[" + bits + "]";
    }
    return "[" + bits + "]";
  }
}
