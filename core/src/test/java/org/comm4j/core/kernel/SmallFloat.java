package org.comm4j.core.kernel;

import java.util.Arrays;
import org.comm4j.api.DataType;

/// An 8- or 16-bit float as the list of its finite values, rounded to by search.
final class SmallFloat {
  private static final SmallFloat FLOAT16 = new SmallFloat(5, 10, 0x7c00, 0x7e00, false);
  private static final SmallFloat BFLOAT16 = new SmallFloat(8, 7, 0x7f80, 0x7fc0, false);
  private static final SmallFloat E4M3 = new SmallFloat(4, 3, 0x7f, 0x7f, true);
  private static final SmallFloat E5M2 = new SmallFloat(5, 2, 0x7c, 0x7e, false);

  private final int signBit;
  private final int end;
  private final int nan;
  private final boolean saturates;

  /// The magnitudes below `end`; at `end` what would follow if exponents went on.
  private final double[] magnitudes;

  private SmallFloat(int exponentBits, int mantissaBits, int end, int nan, boolean saturates) {
    this.signBit = 1 << (exponentBits + mantissaBits);
    this.end = end;
    this.nan = nan;
    this.saturates = saturates;
    this.magnitudes = new double[end + 1];
    int bias = (1 << (exponentBits - 1)) - 1;
    for (int bits = 0; bits <= end; bits++) {
      int exponent = bits >> mantissaBits;
      double fraction = (bits & ((1 << mantissaBits) - 1)) / (double) (1 << mantissaBits);
      magnitudes[bits] =
          exponent == 0
              ? fraction * Math.pow(2, 1 - bias)
              : (1 + fraction) * Math.pow(2, exponent - bias);
    }
  }

  static SmallFloat of(DataType type) {
    return switch (type) {
      case FLOAT16 -> FLOAT16;
      case BFLOAT16 -> BFLOAT16;
      case FLOAT8_E4M3 -> E4M3;
      case FLOAT8_E5M2 -> E5M2;
      default -> throw new AssertionError(type);
    };
  }

  double decode(int bits) {
    int magnitude = bits & (signBit - 1);
    double value =
        magnitude < end
            ? magnitudes[magnitude]
            : magnitude == end && !saturates ? Double.POSITIVE_INFINITY : Double.NaN;
    return (bits & signBit) != 0 ? -value : value;
  }

  int encode(double value) {
    if (Double.isNaN(value)) {
      return nan;
    }
    double magnitude = Math.abs(value);
    int at = Arrays.binarySearch(magnitudes, magnitude);
    if (at < 0) {
      int above = -at - 1;
      if (above > end) {
        at = end;
      } else {
        double down = magnitude - magnitudes[above - 1];
        double up = magnitudes[above] - magnitude;
        at = down < up || (down == up && above % 2 == 1) ? above - 1 : above;
      }
    }
    int sign = value < 0 || 1 / value < 0 ? signBit : 0;
    return sign | (saturates ? Math.min(at, end - 1) : at);
  }

  int signBit() {
    return signBit;
  }

  /// The values halfway between neighbours, the one at the overflow included.
  double[] ties() {
    double[] ties = new double[end];
    Arrays.setAll(ties, i -> (magnitudes[i] + magnitudes[i + 1]) / 2);
    return ties;
  }

  int nan() {
    return nan;
  }
}
