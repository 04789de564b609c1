package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp.Predefined;
import org.comm4j.core.kernel.Carrier.Tile;
import org.jspecify.annotations.Nullable;

/// A predefined operator in plain Java: what is in memory is copied, tile by tile, into arrays, and
/// combined there ([Tiles] says why), unless it is in such arrays, at the same index, already.
/// Where there are vectors they take what they can, without copies; the rest, a tail at least, is
/// left to the tiles, which give the same bits.
final class TileKernel implements Kernel {
  /// The most that is combined in one go, in bytes of the accumulation type.
  private static final int PIECE = 64 << 10;

  /// The same of raw elements that are combined and finished, of which some loops first look at
  /// all.
  private static final int FINISHED_PIECE = 16 << 10;

  private final Predefined op;
  private final DataType type;
  private final DataType accumulator;
  private final Carrier raw;
  private final Carrier wide;
  private final int accumulatorShift; // every type's size is a power of two
  private final Loop loop;
  private final Vectors vectors;

  /// The same operator on vectors; null what they do not know, and all of it where there are none.
  ///
  /// @param wide on the accumulation type
  /// @param raw combines raw with raw
  /// @param mixed combines accumulated with raw
  /// @param rounding ends a reduction other than an average
  /// @param whole combines raw with raw and ends a reduction other than an average
  record Vectors(
      @Nullable VectorFold wide,
      @Nullable VectorFold raw,
      @Nullable VectorFold mixed,
      @Nullable VectorFold rounding,
      @Nullable VectorFold whole) {
    static final Vectors NONE = new Vectors(null, null, null, null, null);
  }

  /// A kernel with a loop of its own.
  TileKernel(Predefined op, DataType type, Vectors vectors) {
    this(op, type, Loops.of(op, op.accumulationType(type)), vectors);
  }

  private TileKernel(Predefined op, DataType type, Loop loop, Vectors vectors) {
    this.op = op;
    this.type = type;
    this.accumulator = op.accumulationType(type);
    this.raw = Carrier.of(type);
    this.wide = Carrier.of(accumulator);
    this.accumulatorShift = Integer.numberOfTrailingZeros(accumulator.bytes());
    this.loop = loop;
    this.vectors = vectors;
  }

  /// A kernel that combines accumulated elements as this one does.
  ///
  /// @param own what it has besides
  TileKernel sharedBy(Predefined otherOp, DataType otherType, Vectors own) {
    return new TileKernel(
        otherOp,
        otherType,
        loop,
        new Vectors(vectors.wide(), own.raw(), own.mixed(), own.rounding(), own.whole()));
  }

  Vectors vectors() {
    return vectors;
  }

  @Override
  public DataType type() {
    return type;
  }

  @Override
  public DataType accumulator() {
    return accumulator;
  }

  @Override
  public void combineInto(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count) {
    combine(accumulator, a, aOffset, accumulator, b, bOffset, out, outOffset, count);
  }

  @Override
  public void combineRaw(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count) {
    combine(
        accumulator, target, targetOffset, type, source, sourceOffset, target, targetOffset, count);
  }

  @Override
  public void combineRawInto(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count) {
    combine(type, a, aOffset, type, b, bOffset, out, outOffset, count);
  }

  /// Piece by piece, so that what one step leaves to the next is still in the cache.
  private void combine(
      DataType aType,
      MemorySegment a,
      long aOffset,
      DataType bType,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count) {
    int most = PIECE >> accumulatorShift;
    for (long at = 0; at < count; at += most) {
      int piece = (int) Math.min(most, count - at);
      long aAt = aOffset + at * aType.bytes();
      long bAt = bOffset + at * bType.bytes();
      long outAt = outOffset + at * accumulator.bytes();
      VectorFold fold = fold(aType, bType);
      int done = 0;
      if (fold != null) {
        int bytes = piece << accumulatorShift;
        done = fold.fold(a, aAt, b, bAt, out, outAt, bytes) >> accumulatorShift;
      }
      if (done == 0 && bType == accumulator && combineArrays(a, aAt, b, bAt, out, outAt, piece)) {
        continue;
      }
      if (done < piece) {
        combineTiles(aType, a, aAt, bType, b, bAt, out, outAt, done, piece);
      }
    }
  }

  /// Without copies, where everything is in arrays of the carrier, from the same index on.
  ///
  /// @return whether it is, else nothing was done
  private boolean combineArrays(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int count) {
    long start = out.address() + outOffset;
    if (a.isNative()
        || b.isNative()
        || out.isNative()
        || a.address() + aOffset != start
        || b.address() + bOffset != start
        || start % wide.bytes() != 0) {
      return false;
    }
    Object x = a.heapBase().orElse(null); // a read-only segment does not tell its array
    Object y = b.heapBase().orElse(null);
    Object z = out.heapBase().orElse(null);
    if (x == null || y == null || z == null) {
      return false;
    }
    if (!wide.isArray(x) || !wide.isArray(y) || !wide.isArray(z)) {
      return false;
    }
    long bytes = (long) count * accumulator.bytes();
    Objects.checkFromIndexSize(aOffset, bytes, a.byteSize());
    Objects.checkFromIndexSize(bOffset, bytes, b.byteSize());
    Objects.checkFromIndexSize(outOffset, bytes, out.byteSize());
    int first = (int) (start / wide.bytes());
    int step = carriers(step());
    for (int at = 0, end = carriers(count); at < end; at += step) {
      int from = first + at;
      int to = first + Math.min(at + step, end);
      loop.apply(x, y, z, from, to);
      Nans.makeCanonical(wide, z, out, outOffset + (long) at * wide.bytes(), from, to);
    }
    return true;
  }

  private @Nullable VectorFold fold(DataType aType, DataType bType) {
    if (bType == accumulator) {
      return aType == accumulator ? vectors.wide() : null;
    }
    return aType == accumulator ? vectors.mixed() : vectors.raw();
  }

  private void combineTiles(
      DataType aType,
      MemorySegment a,
      long aOffset,
      DataType bType,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int from,
      int to) {
    boolean isNative = bType == accumulator && aType == accumulator && a.isNative() && b.isNative();
    Tiles tiles = Tiles.mine();
    Tile x = tiles.x(wide);
    Tile y = tiles.y(wide);
    int step = step();
    for (int at = from; at < to; at += step) {
      int part = Math.min(step, to - at);
      long aAt = aOffset + (long) at * aType.bytes();
      long bAt = bOffset + (long) at * bType.bytes();
      if (!isNative || !loop.applyNative(a, aAt, b, bAt, x.array(), carriers(part))) {
        load(tiles, aType, a, aAt, x, part);
        load(tiles, bType, b, bAt, y, part);
        loop.apply(x.array(), y.array(), x.array(), 0, carriers(part));
      }
      Nans.storeCanonical(
          wide, x, out, outOffset + (long) at * accumulator.bytes(), carriers(part));
    }
  }

  @Override
  public void combineFinished(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count,
      int divisor) {
    int most = FINISHED_PIECE / type.bytes();
    for (long at = 0; at < count; at += most) {
      int piece = (int) Math.min(most, count - at);
      long offset = at * type.bytes();
      int done =
          op == Predefined.AVERAGE
              ? 0
              : finishVectors(
                  a, aOffset + offset, b, bOffset + offset, out, outOffset + offset, piece);
      finishTiles(
          a, aOffset + offset, b, bOffset + offset, out, outOffset + offset, done, piece, divisor);
    }
  }

  /// By vectors, as far as these go: in one loop where there is one, else in two by a tile.
  ///
  /// @return how many elements
  private int finishVectors(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int count) {
    VectorFold whole = vectors.whole();
    if (whole != null) {
      return whole.fold(a, aOffset, b, bOffset, out, outOffset, count * type.bytes())
          / type.bytes();
    }
    VectorFold fold = vectors.raw();
    VectorFold rounding = vectors.rounding();
    if (fold == null || rounding == null) {
      return 0;
    }
    MemorySegment tile = Tiles.mine().x(wide).segment();
    int done = 0;
    while (done < count) {
      long offset = (long) done * type.bytes();
      int bytes = Math.min(step(), count - done) << accumulatorShift;
      int folded = fold.fold(a, aOffset + offset, b, bOffset + offset, tile, 0, bytes);
      int rounded = rounding.fold(tile, 0, tile, 0, out, outOffset + offset, folded);
      done += rounded >> accumulatorShift;
      if (rounded < bytes) {
        break; // a tail, or a loop that is not fast yet
      }
    }
    return done;
  }

  private void finishTiles(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int from,
      int to,
      int divisor) {
    if (from == to) {
      return;
    }
    Tiles tiles = Tiles.mine();
    Tile x = tiles.x(wide);
    Tile y = tiles.y(wide);
    int step = step();
    for (int at = from; at < to; at += step) {
      int part = Math.min(step, to - at);
      long offset = type.bytes((long) at);
      load(tiles, type, a, aOffset + offset, x, part);
      load(tiles, type, b, bOffset + offset, y, part);
      loop.apply(x.array(), y.array(), x.array(), 0, carriers(part));
      finishTile(tiles, x, out, outOffset + offset, part, divisor);
    }
  }

  @Override
  public void widen(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count) {
    if (type == accumulator) {
      Tiles.copy(source, sourceOffset, target, targetOffset, type.bytes(count));
      return;
    }
    Tiles tiles = Tiles.mine();
    Tile x = tiles.x(wide);
    int step = step();
    for (long at = 0; at < count; at += step) {
      int part = (int) Math.min(step, count - at);
      load(tiles, type, source, sourceOffset + at * type.bytes(), x, part);
      store(x, target, targetOffset + at * accumulator.bytes(), part);
    }
  }

  @Override
  public void finish(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count,
      int divisor) {
    if (op != Predefined.AVERAGE && type == accumulator) {
      Tiles.copy(source, sourceOffset, target, targetOffset, type.bytes(count));
      return;
    }
    long done = round(source, sourceOffset, target, targetOffset, count);
    if (done == count) {
      return;
    }
    Tiles tiles = Tiles.mine();
    Tile x = tiles.x(wide);
    int step = step();
    for (long at = done; at < count; at += step) {
      int part = (int) Math.min(step, count - at);
      load(tiles, accumulator, source, sourceOffset + at * accumulator.bytes(), x, part);
      finishTile(tiles, x, target, targetOffset + at * type.bytes(), part, divisor);
    }
  }

  /// Ends the reduction of the first elements of the `x` tile.
  private void finishTile(
      Tiles tiles, Tile x, MemorySegment target, long offset, int count, int divisor) {
    if (op == Predefined.AVERAGE) {
      Division.divide(accumulator, x.array(), carriers(count), divisor);
    }
    if (type == accumulator) {
      Nans.storeCanonical(wide, x, target, offset, carriers(count));
      return;
    }
    Tile result = tiles.x(raw);
    Codec.narrow(type, x, result, count); // which makes NaNs canonical too
    MemorySegment.copy(result.segment(), 0, target, offset, (long) count * type.bytes());
  }

  /// By vectors, as far as these go.
  ///
  /// @return how many elements
  private long round(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count) {
    VectorFold rounding = op == Predefined.AVERAGE ? null : vectors.rounding();
    if (rounding == null) {
      return 0;
    }
    int most = PIECE >> accumulatorShift;
    long at = 0;
    while (at < count) {
      int piece = (int) Math.min(most, count - at);
      long from = sourceOffset + at * accumulator.bytes();
      long to = targetOffset + at * type.bytes();
      int bytes = rounding.fold(source, from, source, from, target, to, piece << accumulatorShift);
      at += bytes >> accumulatorShift;
      if (bytes >> accumulatorShift < piece) {
        break;
      }
    }
    return at;
  }

  private void load(
      Tiles tiles, DataType form, MemorySegment from, long offset, Tile tile, int count) {
    if (form == accumulator) {
      MemorySegment.copy(from, offset, tile.segment(), 0, (long) count * form.bytes());
    } else if (form == DataType.BFLOAT16 && from.isNative()) {
      Codec.widenNativeBrain(from, offset, tile, count);
    } else {
      Tile narrow = tiles.x(raw);
      MemorySegment.copy(from, offset, narrow.segment(), 0, (long) count * form.bytes());
      Codec.widen(form, narrow, tile, count);
    }
  }

  private void store(Tile tile, MemorySegment to, long offset, int count) {
    MemorySegment.copy(tile.segment(), 0, to, offset, (long) count * accumulator.bytes());
  }

  /// How many elements fill a tile.
  private int step() {
    return Tiles.BYTES / accumulator.bytes();
  }

  private int carriers(int count) {
    return count * accumulator.bytes() / wide.bytes();
  }
}
