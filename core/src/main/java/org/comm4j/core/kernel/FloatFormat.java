package org.comm4j.core.kernel;

import org.comm4j.api.DataType;

/// A float type as sign and magnitude: what it takes to order its values by their bits.
///
/// @param bits how wide it is, sign included
/// @param largest the magnitude above which all are NaN
/// @param nan the canonical NaN
record FloatFormat(int bits, long largest, long nan) {
  static FloatFormat of(DataType type) {
    return switch (type) {
      case FLOAT64 -> new FloatFormat(64, 0x7ff0000000000000L, 0x7ff8000000000000L);
      case FLOAT32 -> new FloatFormat(32, 0x7f800000, Conversions.FLOAT32_NAN);
      case FLOAT16 -> new FloatFormat(16, 0x7c00, Conversions.FLOAT16_NAN);
      case BFLOAT16 -> new FloatFormat(16, 0x7f80, Conversions.BFLOAT16_NAN);
      case FLOAT8_E4M3 -> new FloatFormat(8, 0x7e, Conversions.E4M3_NAN);
      case FLOAT8_E5M2 -> new FloatFormat(8, 0x7c, Conversions.E5M2_NAN);
      default -> throw new IllegalArgumentException("type: " + type + " (expected: a float)");
    };
  }

  /// The bits without the sign.
  long magnitudeMask() {
    return -1L >>> (65 - bits);
  }

  boolean isNan(long value) {
    return (value & magnitudeMask()) > largest;
  }

  /// A number that orders as the value does, −0.0 below +0.0, NaN aside.
  ///
  /// @param value the bits, sign-extended
  long key(long value) {
    return value ^ ((value >> 63) & magnitudeMask());
  }

  /// The smaller value, or NaN if one of them is.
  long min(long a, long b) {
    return isNan(a) || isNan(b) ? nan : key(a) <= key(b) ? a : b;
  }

  /// The larger value, or NaN if one of them is.
  long max(long a, long b) {
    return isNan(a) || isNan(b) ? nan : key(a) >= key(b) ? a : b;
  }
}
