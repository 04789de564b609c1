package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;

/// Makes NaNs canonical: which bits a NaN gets depends on the processor and on what the compiler
/// does.
///
/// A test per element would keep a loop from being vectorised, so the bits are looked at as
/// integers first: one difference per element, negative for a NaN, all joined by `or`. NaNs are
/// rare.
final class Nans {
  private Nans() {}

  /// Looks at the first elements of the `x` tile; only floats and doubles have NaNs.
  static void makeCanonical(Tiles tiles, Carrier carrier, int count) {
    if (carrier == Carrier.FLOAT) {
      Carrier.Tile bits = tiles.y(Carrier.INT);
      MemorySegment.copy(tiles.x(carrier).segment(), 0, bits.segment(), 0, 4L * count);
      if (hasNan((int[]) bits.array(), count)) {
        makeCanonical((float[]) tiles.x(carrier).array(), count);
      }
    } else if (carrier == Carrier.DOUBLE) {
      Carrier.Tile bits = tiles.y(Carrier.LONG);
      MemorySegment.copy(tiles.x(carrier).segment(), 0, bits.segment(), 0, 8L * count);
      if (hasNan((long[]) bits.array(), count)) {
        makeCanonical((double[]) tiles.x(carrier).array(), count);
      }
    }
  }

  private static boolean hasNan(int[] bits, int count) {
    int joined = 0;
    for (int i = 0; i < count; i++) {
      joined |= 0x7f800000 - (bits[i] & 0x7fffffff);
    }
    return joined < 0;
  }

  private static boolean hasNan(long[] bits, int count) {
    long joined = 0;
    for (int i = 0; i < count; i++) {
      joined |= 0x7ff0000000000000L - (bits[i] & 0x7fffffffffffffffL);
    }
    return joined < 0;
  }

  /// {@return whether there is a NaN among floats, two in each of these} Bit by bit as above, but
  /// with a sum, from which nothing is carried from one to the other.
  static boolean hasFloatNan(long[] pairs, int count) {
    long joined = 0;
    for (int i = 0; i < count; i++) {
      joined |= (pairs[i] & 0x7fff_ffff_7fff_ffffL) + 0x007f_ffff_007f_ffffL;
    }
    return (joined & 0x8000_0000_8000_0000L) != 0;
  }

  /// {@return whether there is a NaN among FLOAT16s, four in each of these}
  static boolean hasHalfNan(long[] quads, int count) {
    long joined = 0;
    for (int i = 0; i < count; i++) {
      joined |= (quads[i] & 0x7fff_7fff_7fff_7fffL) + 0x03ff_03ff_03ff_03ffL;
    }
    return (joined & 0x8000_8000_8000_8000L) != 0;
  }

  private static void makeCanonical(float[] values, int count) {
    for (int i = 0; i < count; i++) {
      if (Float.isNaN(values[i])) {
        values[i] = Float.NaN;
      }
    }
  }

  private static void makeCanonical(double[] values, int count) {
    for (int i = 0; i < count; i++) {
      if (Double.isNaN(values[i])) {
        values[i] = Double.NaN;
      }
    }
  }
}
