package org.comm4j.core.kernel;

/// The 8- and 16-bit floats as bits, to and from `float`. Widening is exact; narrowing rounds to
/// nearest, ties to even. What is too large becomes infinity, in E4M3, which has none, ±448; a NaN
/// becomes the canonical NaN of its type.
final class Conversions {
  /// The canonical NaNs.
  static final short FLOAT16_NAN = 0x7e00;

  static final short BFLOAT16_NAN = 0x7fc0;
  static final byte E4M3_NAN = 0x7f;
  static final byte E5M2_NAN = 0x7e;
  static final int FLOAT32_NAN = 0x7fc00000;

  private static final int E4M3_MAX = 0x7e;
  private static final int E5M2_INFINITY = 0x7c;
  private static final int FLOAT32_BIAS = 127;
  private static final int FLOAT32_MANTISSA = 23;

  private static final float[] FROM_E4M3 = new float[256];
  private static final float[] FROM_E5M2 = new float[256];

  static {
    for (int bits = 0; bits < 256; bits++) {
      FROM_E4M3[bits] =
          (bits & 0x7f) == E4M3_NAN ? Float.NaN : (bits < 0x80 ? 1 : -1) * magnitude(bits & 0x7f);
      // E5M2 is the upper half of binary16
      FROM_E5M2[bits] =
          (bits & 0x7f) > E5M2_INFINITY ? Float.NaN : Float.float16ToFloat((short) (bits << 8));
    }
  }

  private Conversions() {}

  private static float magnitude(int e4m3) {
    int exponent = e4m3 >> 3;
    int mantissa = e4m3 & 7;
    return exponent == 0
        ? Math.scalb((float) mantissa, -9)
        : Math.scalb((float) (8 + mantissa), exponent - 10);
  }

  /// Float to bfloat16.
  static short toBfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    int rounded = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
    int nan = (0x7f800000 - (bits & 0x7fffffff)) >> 31;
    return (short) ((rounded & ~nan) | (BFLOAT16_NAN & nan));
  }

  /// The 8-bit float E4M3 to float.
  static float fromE4m3(byte bits) {
    return FROM_E4M3[bits & 0xff];
  }

  /// Float to the 8-bit float E4M3; what is too large, infinity too, becomes ±448.
  static byte toE4m3(float value) {
    return Float.isNaN(value) ? E4M3_NAN : narrow(value, 3, 7, E4M3_MAX);
  }

  /// The 8-bit float E5M2 to float.
  static float fromE5m2(byte bits) {
    return FROM_E5M2[bits & 0xff];
  }

  /// Float to the 8-bit float E5M2.
  static byte toE5m2(float value) {
    return Float.isNaN(value) ? E5M2_NAN : narrow(value, 2, 15, E5M2_INFINITY);
  }

  /// A float that, rounded to an 8- or 16-bit float, gives what the double itself would: rounded to
  /// the nearest float first, it might be a tie then. So a double between two floats becomes the
  /// one whose last bit is set.
  static float toFloatByOdd(double value) {
    float nearest = (float) value;
    if (nearest == value || Double.isNaN(value)) {
      return nearest;
    }
    int bits = Float.floatToRawIntBits(nearest);
    boolean isBeyond = Math.abs((double) nearest) > Math.abs(value);
    return Float.intBitsToFloat((isBeyond ? bits - 1 : bits) | 1);
  }

  /// Rounds to a sign, an exponent with this bias and so many mantissa bits, at most to `max`.
  private static byte narrow(float value, int mantissa, int bias, int max) {
    int bits = Float.floatToRawIntBits(value);
    int magnitude = bits & 0x7fffffff;
    int smallestNormal = (FLOAT32_BIAS + 1 - bias) << FLOAT32_MANTISSA;
    int rounded;
    if (magnitude < smallestNormal) {
      // The sum with a power of two whose last place is the smallest subnormal rounds as wanted.
      int magic = (FLOAT32_BIAS + 1 - bias - mantissa + FLOAT32_MANTISSA) << FLOAT32_MANTISSA;
      float sum = Float.intBitsToFloat(magnitude) + Float.intBitsToFloat(magic);
      rounded = Float.floatToRawIntBits(sum) - magic;
    } else {
      int drop = FLOAT32_MANTISSA - mantissa;
      int odd = (magnitude >>> drop) & 1;
      rounded =
          ((magnitude + (1 << (drop - 1)) - 1 + odd) >>> drop)
              - ((FLOAT32_BIAS - bias) << mantissa);
    }
    return (byte) (Math.min(rounded, max) | ((bits >>> 24) & 0x80));
  }
}
