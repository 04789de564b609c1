package org.comm4j.core.kernel;

import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;

/// How elements of a type change to the wider type in which they are combined, and back.
final class Codec {
  private Codec() {}

  /// Raw elements to FLOAT32 (floats), INT64 or UINT64 (integers).
  static void widen(DataType type, Object raw, Object wide, int count) {
    if (type.kind() == Kind.FLOAT) {
      widenFloats(type, raw, (float[]) wide, count);
    } else {
      widenIntegers(type, raw, (long[]) wide, count);
    }
  }

  private static void widenFloats(DataType type, Object raw, float[] wide, int count) {
    switch (type) {
      case FLOAT16 -> {
        short[] from = (short[]) raw;
        for (int i = 0; i < count; i++) {
          wide[i] = Float.float16ToFloat(from[i]);
        }
      }
      case BFLOAT16 -> {
        short[] from = (short[]) raw;
        for (int i = 0; i < count; i++) {
          wide[i] = Float.intBitsToFloat(from[i] << 16);
        }
      }
      case FLOAT8_E4M3 -> {
        byte[] from = (byte[]) raw;
        for (int i = 0; i < count; i++) {
          wide[i] = Conversions.fromE4m3(from[i]);
        }
      }
      case FLOAT8_E5M2 -> {
        byte[] from = (byte[]) raw;
        for (int i = 0; i < count; i++) {
          wide[i] = Conversions.fromE5m2(from[i]);
        }
      }
      default -> throw new AssertionError(type);
    }
  }

  private static void widenIntegers(DataType type, Object raw, long[] wide, int count) {
    boolean signed = type.kind() == Kind.SIGNED;
    switch (raw) {
      case int[] from -> {
        long mask = signed ? -1 : 0xffff_ffffL;
        for (int i = 0; i < count; i++) {
          wide[i] = from[i] & mask;
        }
      }
      case short[] from -> {
        long mask = signed ? -1 : 0xffff;
        for (int i = 0; i < count; i++) {
          wide[i] = from[i] & mask;
        }
      }
      case byte[] from -> {
        long mask = signed ? -1 : 0xff;
        for (int i = 0; i < count; i++) {
          wide[i] = from[i] & mask;
        }
      }
      default -> throw new AssertionError(type);
    }
  }

  /// The way back: floats are rounded, integers lose their upper bits.
  static void narrow(DataType type, Object wide, Object raw, int count) {
    if (type.kind() == Kind.FLOAT) {
      narrowFloats(type, (float[]) wide, raw, count);
    } else {
      narrowIntegers((long[]) wide, raw, count);
    }
  }

  private static void narrowFloats(DataType type, float[] wide, Object raw, int count) {
    switch (type) {
      case FLOAT16 -> {
        short[] to = (short[]) raw;
        for (int i = 0; i < count; i++) {
          to[i] = Float.floatToFloat16(wide[i]);
        }
        if (hasHalfNan(to, count)) {
          for (int i = 0; i < count; i++) {
            to[i] = (to[i] & 0x7fff) > 0x7c00 ? Conversions.FLOAT16_NAN : to[i];
          }
        }
      }
      case BFLOAT16 -> {
        short[] to = (short[]) raw;
        for (int i = 0; i < count; i++) {
          to[i] = Conversions.toBfloat16(wide[i]);
        }
      }
      case FLOAT8_E4M3 -> {
        byte[] to = (byte[]) raw;
        for (int i = 0; i < count; i++) {
          to[i] = Conversions.toE4m3(wide[i]);
        }
      }
      case FLOAT8_E5M2 -> {
        byte[] to = (byte[]) raw;
        for (int i = 0; i < count; i++) {
          to[i] = Conversions.toE5m2(wide[i]);
        }
      }
      default -> throw new AssertionError(type);
    }
  }

  /// As [Nans] does: a test per element would keep the loop from being vectorised.
  private static boolean hasHalfNan(short[] halves, int count) {
    int joined = 0;
    for (int i = 0; i < count; i++) {
      joined |= 0x7c00 - (halves[i] & 0x7fff);
    }
    return joined < 0;
  }

  private static void narrowIntegers(long[] wide, Object raw, int count) {
    switch (raw) {
      case int[] to -> {
        for (int i = 0; i < count; i++) {
          to[i] = (int) wide[i];
        }
      }
      case short[] to -> {
        for (int i = 0; i < count; i++) {
          to[i] = (short) wide[i];
        }
      }
      case byte[] to -> {
        for (int i = 0; i < count; i++) {
          to[i] = (byte) wide[i];
        }
      }
      default -> throw new AssertionError(raw);
    }
  }
}
