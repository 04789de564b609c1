package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;

/// Into what the algorithms over peer memory cut their data. All ranks compute the same from the
/// shape.
///
/// @param pieceBytes how much a rank publishes in one stage at most, if the window has room
/// @param blockBytes how much is folded at a time
record Cut(long pieceBytes, long blockBytes) {
  /// A piece stays in the second-level cache (1 MiB on the machine that was measured, and it holds
  /// two stages) between the copy into the window and the reading, and takes some 6 µs to read at
  /// 40 GB/s, against which a stage's synchronisation of 0.1 to 0.5 µs is small. A block stays in
  /// the first level while all contributions are added to it (100 GB/s against 57 of the second
  /// level).
  static final Cut STANDARD = new Cut(256 << 10, 32 << 10);

  /// Whether the window has room for so many elements.
  static boolean windowHolds(Shape shape, long count) {
    return shape.windowBytes() >= Math.max(1, count * shape.valueBytes());
  }

  /// The elements of one stage, at least 1.
  long limit(Shape shape) {
    return Math.max(1, Math.min(pieceBytes, shape.windowBytes()) / shape.valueBytes());
  }

  /// A buffer of `count` elements in pieces of one stage each.
  Pieces pieces(Shape shape, long count) {
    return Pieces.of(count, limit(shape));
  }

  /// Room for a block of partial results, of at most `count` elements.
  Slice block(Shape shape, long count, Memory memory) {
    return memory.partials(Pieces.of(count, blockBytes / shape.accumulatorBytes()).largest());
  }
}
