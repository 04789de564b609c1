package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// A user-defined operator: elements are combined in their own type, by the user's function.
final class UserKernel implements Kernel {
  private final ReduceOp.UserDefined op;
  private final ReduceOp.Function function; // the operator makes one whenever it is asked
  private final DataType type;

  UserKernel(ReduceOp.UserDefined op, DataType type) {
    this.op = op;
    this.function = op.function();
    this.type = type;
  }

  @Override
  public DataType type() {
    return type;
  }

  @Override
  public DataType accumulator() {
    return type;
  }

  @Override
  public void combineRaw(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count) {
    combine(source, sourceOffset, target, targetOffset, count);
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
    combineInto(a, aOffset, b, bOffset, out, outOffset, count);
  }

  /// The function has two operands, so an output that is not `a` is made in a tile: it may be `b`.
  @Override
  public void combineInto(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      long count) {
    long bytes = type.bytes(count);
    if (count == 0) {
      return;
    }
    if (Tiles.isSame(a, aOffset, out, outOffset)) {
      apply(b.asSlice(bOffset, bytes), out.asSlice(outOffset, bytes), count);
      return;
    }
    Tiles tiles = Tiles.mine();
    MemorySegment tile = tiles.takeForOperator();
    try {
      for (long at = 0; at < bytes; at += Tiles.BYTES) {
        long part = Math.min(Tiles.BYTES, bytes - at);
        MemorySegment.copy(a, aOffset + at, tile, 0, part);
        apply(b.asSlice(bOffset + at, part), tile.asSlice(0, part), type.countIn(part));
        MemorySegment.copy(tile, 0, out, outOffset + at, part);
      }
    } finally {
      tiles.giveBackOfOperator(tile);
    }
  }

  private void apply(MemorySegment source, MemorySegment accumulator, long count) {
    try {
      function.combine(source.asReadOnly(), accumulator, type, count);
    } catch (Throwable thrown) {
      throw new OperatorFailedException(op, thrown);
    }
  }

  @Override
  public void widen(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count) {
    Tiles.copy(source, sourceOffset, target, targetOffset, type.bytes(count));
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
    combineInto(a, aOffset, b, bOffset, out, outOffset, count);
  }

  @Override
  public void finish(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long count,
      int divisor) {
    Tiles.copy(source, sourceOffset, target, targetOffset, type.bytes(count));
  }
}
