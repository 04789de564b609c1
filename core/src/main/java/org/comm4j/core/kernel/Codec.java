package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.core.kernel.Carrier.Tile;

/// How elements of a type change to the wider type in which they are combined, and back.
///
/// The compiler turns loops into vectors where what they read and write are arrays of integers and
/// their operations keep or halve or double its width, but not where floats become integers. So
/// BFLOAT16 changes in pairs, of which arrays of larger integers are the same bytes.
final class Codec {
  private static final long UPPER = 0xffff_0000L; // of 32 bits

  private Codec() {}

  /// Raw elements to FLOAT32 (floats), INT64 or UINT64 (integers).
  ///
  /// @param tiles of this thread; those of integers are overwritten where floats are widened
  static void widen(Tiles tiles, DataType type, Tile raw, Tile wide, int count) {
    if (type == DataType.BFLOAT16) {
      widenBrain(tiles, raw, wide, count);
    } else if (type.kind() == Kind.FLOAT) {
      widenFloats(type, raw.array(), (float[]) wide.array(), count);
    } else {
      widenIntegers(type, raw.array(), (long[]) wide.array(), count);
    }
  }

  private static void widenBrain(Tiles tiles, Tile raw, Tile wide, int count) {
    Tile from = tiles.x(Carrier.INT);
    Tile to = tiles.x(Carrier.LONG);
    MemorySegment.copy(raw.segment(), 0, from.segment(), 0, 2L * count);
    widenBrain((int[]) from.array(), (long[]) to.array(), (count + 1) / 2);
    MemorySegment.copy(to.segment(), 0, wide.segment(), 0, 4L * count);
  }

  private static void widenBrain(int[] raw, long[] wide, int pairs) {
    for (int i = 0; i < pairs; i++) {
      long pair = raw[i];
      wide[i] = ((pair & UPPER) << 32) | ((pair << 16) & UPPER);
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
  ///
  /// @param tiles of this thread; those of integers are overwritten where floats are narrowed
  static void narrow(Tiles tiles, DataType type, Tile wide, Tile raw, int count) {
    if (type == DataType.BFLOAT16) {
      narrowBrain(tiles, wide, raw, count);
    } else if (type.kind() == Kind.FLOAT) {
      narrowFloats(tiles, type, (float[]) wide.array(), raw, count);
    } else {
      narrowIntegers((long[]) wide.array(), raw.array(), count);
    }
  }

  private static void narrowBrain(Tiles tiles, Tile wide, Tile raw, int count) {
    Tile from = tiles.x(Carrier.LONG);
    Tile to = tiles.x(Carrier.INT);
    long[] pairs = (long[]) from.array();
    pairs[(count - 1) / 2] = 0; // of which one element may be none
    MemorySegment.copy(wide.segment(), 0, from.segment(), 0, 4L * count);
    if (Nans.hasFloatNan(pairs, (count + 1) / 2)) {
      short[] halves = (short[]) raw.array();
      float[] floats = (float[]) wide.array();
      for (int i = 0; i < count; i++) {
        halves[i] = Conversions.toBfloat16(floats[i]);
      }
      return;
    }
    narrowBrain(pairs, (int[]) to.array(), (count + 1) / 2);
    MemorySegment.copy(to.segment(), 0, raw.segment(), 0, 2L * count);
  }

  /// To nearest, ties to even; a float that is no NaN does not overflow.
  private static void narrowBrain(long[] wide, int[] raw, int pairs) {
    for (int i = 0; i < pairs; i++) {
      long pair = wide[i];
      long rounded = pair + 0x0000_7fff_0000_7fffL + ((pair >>> 16) & 0x0000_0001_0000_0001L);
      raw[i] = (int) (((rounded >>> 32) & UPPER) | ((rounded >>> 16) & 0xffff));
    }
  }

  private static void narrowFloats(Tiles tiles, DataType type, float[] wide, Tile raw, int count) {
    switch (type) {
      case FLOAT16 -> {
        short[] to = (short[]) raw.array();
        for (int i = 0; i < count; i++) {
          to[i] = Float.floatToFloat16(wide[i]);
        }
        Tile quads = tiles.x(Carrier.LONG);
        int whole = (count + 3) / 4;
        ((long[]) quads.array())[whole - 1] = 0;
        MemorySegment.copy(raw.segment(), 0, quads.segment(), 0, 2L * count);
        if (Nans.hasHalfNan((long[]) quads.array(), whole)) {
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
