package org.comm4j.core.kernel;

import java.nio.ByteOrder;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp.Predefined;
import org.jspecify.annotations.Nullable;

/// The order of the values of pairs, as an order of long keys.
///
/// @param max whether the largest comes first, else the smallest
/// @param bits the width of the value
/// @param unsigned whether the value is an unsigned integer
/// @param format how the value is a float, if it is one
record PairOrder(boolean max, int bits, boolean unsigned, @Nullable FloatFormat format) {
  private static final boolean LITTLE_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

  static PairOrder of(Predefined op, DataType pair) {
    DataType value = pair.valueType();
    return new PairOrder(
        op == Predefined.MAX_LOC,
        8 * value.bytes(),
        value.kind() == Kind.UNSIGNED,
        value.kind() == Kind.FLOAT ? FloatFormat.of(value) : null);
  }

  /// The key of the value in the first word of a pair, whose padding counts for nothing.
  long key(long word) {
    long value = (LITTLE_ENDIAN ? word << (64 - bits) : word) >> (64 - bits);
    if (format != null) {
      return format.isNan(value) ? nanKey() : format.key(value);
    }
    return unsigned ? value ^ Long.MIN_VALUE : value;
  }

  /// NaN comes first. No number has this key: it would be a NaN's.
  private long nanKey() {
    return max ? Long.MAX_VALUE : Long.MIN_VALUE;
  }

  /// The first word of a pair with this key, padded with zeros.
  long word(long key) {
    long value = key;
    if (format != null) {
      value = key == nanKey() ? format.nan() : format.key(key);
    } else if (unsigned) {
      value = key ^ Long.MIN_VALUE;
    }
    value <<= 64 - bits;
    return LITTLE_ENDIAN ? value >>> (64 - bits) : value;
  }

  /// Whether `key` comes before `other`.
  boolean isFirst(long key, long other) {
    return max ? key > other : key < other;
  }
}
