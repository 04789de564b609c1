package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.core.kernel.Carrier.Tile;

/// How elements of a type change to the wider type in which they are combined, and back.
///
/// The compiler turns loops into vectors where what they read and write are arrays of integers and
/// their operations keep or halve or double its width, but not where floats become integers. So
/// BFLOAT16 changes in pairs, whose bytes are read and written as those of larger integers.
final class Codec {
  private static final long UPPER = 0xffff_0000L; // of 32 bits

  private Codec() {}

  /// Raw elements to FLOAT32 (floats), INT64 or UINT64 (integers).
  static void widen(DataType type, Tile raw, Tile wide, int count) {
    if (type == DataType.BFLOAT16) {
      widenBrain(raw.segment(), wide.segment(), (count + 1) / 2);
    } else if (type.kind() == Kind.FLOAT) {
      widenFloats(type, raw.array(), (float[]) wide.array(), count);
    } else {
      widenIntegers(type, raw.array(), (long[]) wide.array(), count);
    }
  }

  private static void widenBrain(MemorySegment raw, MemorySegment wide, int pairs) {
    var _ = raw.address() ^ wide.address(); // tells the compiler their classes
    for (int i = 0; i < pairs; i++) {
      long pair = raw.get(ValueLayout.JAVA_INT_UNALIGNED, 4L * i);
      wide.set(
          ValueLayout.JAVA_LONG_UNALIGNED, 8L * i, ((pair & UPPER) << 32) | ((pair << 16) & UPPER));
    }
  }

  /// BFLOAT16 from native memory, without a copy, to FLOAT32: a loop of its own for its own
  /// classes.
  static void widenNativeBrain(MemorySegment raw, long offset, Tile wide, int count) {
    int pairs = count / 2;
    MemorySegment floats = wide.segment();
    var _ = raw.address() ^ floats.address(); // as above
    for (int i = 0; i < pairs; i++) {
      long pair = raw.get(ValueLayout.JAVA_INT_UNALIGNED, offset + 4L * i);
      floats.set(
          ValueLayout.JAVA_LONG_UNALIGNED, 8L * i, ((pair & UPPER) << 32) | ((pair << 16) & UPPER));
    }
    if (count % 2 != 0) {
      int last = raw.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset + 4L * pairs);
      floats.set(ValueLayout.JAVA_INT_UNALIGNED, 8L * pairs, last << 16);
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
  static void narrow(DataType type, Tile wide, Tile raw, int count) {
    if (type == DataType.BFLOAT16) {
      narrowBrain(wide, raw, count);
    } else if (type.kind() == Kind.FLOAT) {
      narrowFloats(type, (float[]) wide.array(), raw, count);
    } else {
      narrowIntegers((long[]) wide.array(), raw.array(), count);
    }
  }

  private static void narrowBrain(Tile wide, Tile raw, int count) {
    if (!Nans.hasFloatNan(wide.segment(), 0, count)) {
      narrowBrain(wide.segment(), raw.segment(), (count + 1) / 2);
      return;
    }
    short[] halves = (short[]) raw.array();
    float[] floats = (float[]) wide.array();
    for (int i = 0; i < count; i++) {
      halves[i] = Conversions.toBfloat16(floats[i]);
    }
  }

  /// To nearest, ties to even; a float that is no NaN does not overflow.
  private static void narrowBrain(MemorySegment wide, MemorySegment raw, int pairs) {
    var _ = wide.address() ^ raw.address(); // as above
    for (int i = 0; i < pairs; i++) {
      long pair = wide.get(ValueLayout.JAVA_LONG_UNALIGNED, 8L * i);
      long rounded = pair + 0x0000_7fff_0000_7fffL + ((pair >>> 16) & 0x0000_0001_0000_0001L);
      raw.set(
          ValueLayout.JAVA_INT_UNALIGNED,
          4L * i,
          (int) (((rounded >>> 32) & UPPER) | ((rounded >>> 16) & 0xffff)));
    }
  }

  private static void narrowFloats(DataType type, float[] wide, Tile raw, int count) {
    switch (type) {
      case FLOAT16 -> {
        short[] to = (short[]) raw.array();
        for (int i = 0; i < count; i++) {
          to[i] = Float.floatToFloat16(wide[i]);
        }
        int quads = (count + 3) / 4;
        Arrays.fill(to, count, 4 * quads, (short) 0);
        if (Nans.hasHalfNan(raw.segment(), quads)) {
          for (int i = 0; i < count; i++) {
            to[i] = (to[i] & 0x7fff) > 0x7c00 ? Conversions.FLOAT16_NAN : to[i];
          }
        }
      }
      case FLOAT8_E4M3 -> {
        byte[] to = (byte[]) raw.array();
        for (int i = 0; i < count; i++) {
          to[i] = Conversions.toE4m3(wide[i]);
        }
      }
      case FLOAT8_E5M2 -> {
        byte[] to = (byte[]) raw.array();
        for (int i = 0; i < count; i++) {
          to[i] = Conversions.toE5m2(wide[i]);
        }
      }
      default -> throw new AssertionError(type);
    }
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
