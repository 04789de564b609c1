package org.comm4j.tck;

import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp;
import org.jspecify.annotations.Nullable;

/// What kind of numbers a call is tried with. They come from a seed, so every rank knows what every
/// other one has.
enum Values {
  /// Numbers of which every order of combining gives the same bits.
  EXACT,

  /// Any bits: NaNs, infinities, zeros of both signs, the largest and smallest. For moved data, and
  /// for reductions in an order that is known.
  ANY,

  /// Ordinary numbers, for which only a bound of the error is known unless the order is.
  ORDINARY;

  /// Elements as bytes in native order.
  ///
  /// @param op what they are for; null if they are only moved
  byte[] make(DataType type, int count, @Nullable ReduceOp op, long seed) {
    byte[] bytes = new byte[count * type.bytes()];
    SplittableRandom random = new SplittableRandom(seed);
    if (op == null || op instanceof ReduceOp.UserDefined) {
      random.nextBytes(bytes);
      return bytes;
    }
    ByteBuffer to = Oracle.buffer(bytes);
    for (int at = 0; at < bytes.length; at += type.bytes()) {
      element(type, op, random, to, at);
    }
    return bytes;
  }

  private void element(DataType type, ReduceOp op, SplittableRandom random, ByteBuffer to, int at) {
    switch (type.kind()) {
      case SIGNED, UNSIGNED -> Oracle.write(to, at, type.bytes(), integer(type, op, random));
      case BOOL ->
          to.put(at, (byte) (random.nextInt(8) == 0 ? random.nextInt() : random.nextInt(2)));
      case FLOAT -> Oracle.write(to, at, type.bytes(), floating(type, op, random));
      case COMPLEX -> {
        DataType part = type == DataType.COMPLEX64 ? DataType.FLOAT32 : DataType.FLOAT64;
        for (int i = 0; i < 2; i++) {
          long bits =
              this == EXACT && op == ReduceOp.PRODUCT
                  ? Oracle.encode(part, random.nextBoolean() ? 1 : -1)
                  : floating(part, op, random);
          Oracle.write(to, at + i * part.bytes(), part.bytes(), bits);
        }
      }
      case PAIR -> {
        DataType value = type.valueType();
        Oracle.write(to, at, 8, random.nextLong()); // padding has any bits
        long bits = value.kind() == Kind.FLOAT ? edges(value, random) : integer(value, op, random);
        Oracle.write(to, at, value.bytes(), random.nextInt(3) == 0 ? bits & 1 : bits);
        Oracle.write(to, at + DataType.PAIR_INDEX_OFFSET, 8, random.nextInt(-3, 4));
      }
    }
  }

  private static long integer(DataType type, ReduceOp op, SplittableRandom random) {
    long smallest = type.kind() == Kind.SIGNED ? 1L << (8 * type.bytes() - 1) : 0;
    return switch (random.nextInt(8)) {
      case 0 -> smallest;
      case 1 -> smallest - 1; // the largest
      case 2 -> 0;
      case 3 -> 1;
      case 4 -> random.nextInt(-9, 10);
      default ->
          op == ReduceOp.PRODUCT ? random.nextLong() | 1 : random.nextLong(); // not all products 0
    };
  }

  private long floating(DataType type, ReduceOp op, SplittableRandom random) {
    boolean compared = op == ReduceOp.MIN || op == ReduceOp.MAX;
    return switch (this) {
      case ANY -> edges(type, random);
      case ORDINARY -> {
        double size = 0.5 + random.nextDouble();
        yield Oracle.encode(type, random.nextBoolean() ? size : -size);
      }
      case EXACT -> {
        if (compared) {
          yield edges(type, random);
        }
        yield switch (random.nextInt(40)) {
          case 0 -> special(type, random);
          default ->
              Oracle.encode(
                  type,
                  op == ReduceOp.PRODUCT
                      ? Math.scalb(random.nextBoolean() ? 1.0 : -1.0, random.nextInt(-1, 2))
                      : random.nextInt(-16, 17) / 2.0);
        };
      }
    };
  }

  /// NaN with any bits, infinities, −0.0.
  private static long special(DataType type, SplittableRandom random) {
    int bits = 8 * type.bytes();
    long sign = random.nextBoolean() ? 1L << (bits - 1) : 0;
    return switch (random.nextInt(3)) {
      case 0 -> sign | ((1L << (bits - 1)) - 1); // a NaN with all bits
      case 1 -> sign | Oracle.encode(type, Double.POSITIVE_INFINITY);
      default -> 1L << (bits - 1);
    };
  }

  private static long edges(DataType type, SplittableRandom random) {
    return switch (random.nextInt(8)) {
      case 0 -> special(type, random);
      case 1 -> 0;
      case 2 -> random.nextInt(4); // the smallest ones
      case 3, 4 -> Oracle.encode(type, random.nextInt(-64, 65) / 8.0);
      default -> random.nextLong();
    };
  }
}
