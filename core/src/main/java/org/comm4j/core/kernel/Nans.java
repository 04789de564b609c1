package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.comm4j.api.DataType;
import org.comm4j.core.kernel.Carrier.Tile;

/// Makes NaNs canonical: which bits a NaN gets depends on the processor and on what the compiler
/// does.
///
/// A test per element would keep a loop from being vectorised, so the bits are looked at as
/// integers first: one difference per element, negative for a NaN, all joined by `or`. NaNs are
/// rare.
final class Nans {
  /// The most that is looked at in one go, in bytes.
  private static final int PIECE = 64 << 10;

  private Nans() {}

  /// Looks at elements anywhere in memory, by vectors as far as these go. The rest is looked at in
  /// a tile, whose class the compiler knows, and written back if there was a NaN.
  static void makeCanonical(DataType type, MemorySegment data, long offset, long count) {
    Carrier carrier = Carrier.of(type);
    if (carrier != Carrier.FLOAT && carrier != Carrier.DOUBLE) {
      return;
    }
    long bytes = type.bytes(count);
    VectorFold vectors = Kernels.canonicalNans(carrier);
    for (long at = 0; at < bytes; at += PIECE) {
      int piece = (int) Math.min(PIECE, bytes - at);
      long place = offset + at;
      int done = vectors == null ? 0 : vectors.fold(data, place, data, place, data, place, piece);
      if (done < piece) {
        makeCanonicalByTiles(carrier, data, place + done, piece - done);
      }
    }
  }

  private static void makeCanonicalByTiles(
      Carrier carrier, MemorySegment data, long offset, int bytes) {
    Tile tile = Tiles.mine().x(carrier);
    for (int at = 0; at < bytes; at += Tiles.BYTES) {
      int part = Math.min(Tiles.BYTES, bytes - at);
      int count = part / carrier.bytes();
      MemorySegment.copy(data, offset + at, tile.segment(), 0, part);
      if (makeCanonical(carrier, tile.array(), tile.segment(), 0, 0, count)) {
        MemorySegment.copy(tile.segment(), 0, data, offset + at, part);
      }
    }
  }

  /// Looks at some elements of an array; only floats and doubles have NaNs.
  ///
  /// @param array of the carrier's primitive
  /// @param segment the array, perhaps from another index on
  /// @param offset where in the segment the first element is, in bytes
  /// @param from where in the array the first element is
  /// @param to behind the last one
  /// @return whether there was a NaN
  static boolean makeCanonical(
      Carrier carrier, Object array, MemorySegment segment, long offset, int from, int to) {
    if (!hasNan(carrier, segment, offset, to - from)) {
      return false;
    }
    if (carrier == Carrier.FLOAT) {
      makeCanonical((float[]) array, from, to);
    } else {
      makeCanonical((double[]) array, from, to);
    }
    return true;
  }

  private static boolean hasNan(Carrier carrier, MemorySegment segment, long offset, int count) {
    return switch (carrier) {
      case FLOAT -> hasFloatNan(segment, offset, count);
      case DOUBLE -> hasDoubleNan(segment, offset, count);
      case BYTE, SHORT, INT, LONG -> false;
    };
  }

  /// Copies the first elements of a tile, NaNs made canonical. Into native memory bits go as they
  /// are looked at, which saves a pass; where there is a NaN the tile is mended and copied again.
  ///
  /// @param count of the carrier's primitive
  static void storeCanonical(
      Carrier carrier, Tile tile, MemorySegment target, long offset, int count) {
    boolean looksWhileCopying =
        target.isNative() && (carrier == Carrier.FLOAT || carrier == Carrier.DOUBLE);
    if (looksWhileCopying && !copyFindsNan(carrier, tile.segment(), target, offset, count)) {
      return;
    }
    makeCanonical(carrier, tile.array(), tile.segment(), 0, 0, count);
    MemorySegment.copy(tile.segment(), 0, target, offset, (long) count * carrier.bytes());
  }

  private static boolean copyFindsNan(
      Carrier carrier, MemorySegment tile, MemorySegment target, long offset, int count) {
    return carrier == Carrier.FLOAT
        ? copyFindsFloatNan(tile, target, offset, count)
        : copyFindsDoubleNan(tile, target, offset, count);
  }

  private static boolean copyFindsFloatNan(
      MemorySegment tile, MemorySegment target, long offset, int count) {
    var _ = tile.address() ^ target.address(); // tells the compiler their classes
    int joined = 0;
    for (int i = 0; i < count; i++) {
      int bits = tile.get(ValueLayout.JAVA_INT_UNALIGNED, 4L * i);
      target.set(ValueLayout.JAVA_INT_UNALIGNED, offset + 4L * i, bits);
      joined |= floatNan(bits);
    }
    return joined < 0;
  }

  private static boolean copyFindsDoubleNan(
      MemorySegment tile, MemorySegment target, long offset, int count) {
    var _ = tile.address() ^ target.address(); // as above
    long joined = 0;
    for (int i = 0; i < count; i++) {
      long bits = tile.get(ValueLayout.JAVA_LONG_UNALIGNED, 8L * i);
      target.set(ValueLayout.JAVA_LONG_UNALIGNED, offset + 8L * i, bits);
      joined |= doubleNan(bits);
    }
    return joined < 0;
  }

  /// Negative for the bits of a NaN.
  private static int floatNan(int bits) {
    return 0x7f800000 - (bits & 0x7fffffff);
  }

  private static long doubleNan(long bits) {
    return 0x7ff0000000000000L - (bits & 0x7fffffffffffffffL);
  }

  /// {@return whether there is a NaN in some part of a `float[]`} Its bits are read where they are:
  /// floats that are turned into integers one by one keep the loop from being vectorised too.
  static boolean hasFloatNan(MemorySegment floats, long offset, int count) {
    var _ = floats.address(); // tells the compiler its class
    int joined = 0;
    for (int i = 0; i < count; i++) {
      int bits = floats.get(ValueLayout.JAVA_INT_UNALIGNED, offset + 4L * i);
      joined |= floatNan(bits);
    }
    return joined < 0;
  }

  private static boolean hasDoubleNan(MemorySegment doubles, long offset, int count) {
    var _ = doubles.address(); // as above
    long joined = 0;
    for (int i = 0; i < count; i++) {
      long bits = doubles.get(ValueLayout.JAVA_LONG_UNALIGNED, offset + 8L * i);
      joined |= doubleNan(bits);
    }
    return joined < 0;
  }

  /// {@return whether there is a NaN among FLOAT16s} Bit by bit as above, but four at a time and
  /// with a sum, from which nothing is carried from one to the other.
  static boolean hasHalfNan(MemorySegment halves, int quads) {
    var _ = halves.address(); // as above
    long joined = 0;
    for (int i = 0; i < quads; i++) {
      long bits = halves.get(ValueLayout.JAVA_LONG_UNALIGNED, 8L * i);
      joined |= (bits & 0x7fff_7fff_7fff_7fffL) + 0x03ff_03ff_03ff_03ffL;
    }
    return (joined & 0x8000_8000_8000_8000L) != 0;
  }

  private static void makeCanonical(float[] values, int from, int to) {
    for (int i = from; i < to; i++) {
      if (Float.isNaN(values[i])) {
        values[i] = Float.NaN;
      }
    }
  }

  private static void makeCanonical(double[] values, int from, int to) {
    for (int i = from; i < to; i++) {
      if (Double.isNaN(values[i])) {
        values[i] = Double.NaN;
      }
    }
  }
}
