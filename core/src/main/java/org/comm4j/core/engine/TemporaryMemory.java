package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;

/// Temporary memory of calls, re-used: a fresh page costs more than what is done with it. Blocks
/// are powers of two, but for those that are too large to be kept; what is kept for later is
/// bounded. Guarded by whoever uses it.
public final class TemporaryMemory {
  private static final int SMALLEST_SHIFT = 12;
  private static final long MOST_KEPT_BYTES = 64L << 20; // two 32 MiB calls one behind the other

  private final ArrayDeque<?>[] free = new ArrayDeque<?>[64];
  private long keptBytes;

  /// Has none at first.
  public TemporaryMemory() {}

  /// A block of at least so many bytes, of unknown content.
  public MemorySegment take(long bytes) {
    if (bytes == 0) {
      return Buffers.NOTHING;
    }
    int shift = shift(bytes);
    ArrayDeque<MemorySegment> blocks = blocks(shift);
    if (!blocks.isEmpty()) {
      keptBytes -= 1L << shift;
      return blocks.removeLast();
    }
    return Arena.ofAuto().allocate(bytes > MOST_KEPT_BYTES ? bytes : 1L << shift, 64);
  }

  /// Takes a block back that [#take] gave.
  public void giveBack(MemorySegment block) {
    if (block.byteSize() > 0 && keptBytes + block.byteSize() <= MOST_KEPT_BYTES) {
      keptBytes += block.byteSize();
      blocks(shift(block.byteSize())).addLast(block);
    }
  }

  private static int shift(long bytes) {
    return Math.max(SMALLEST_SHIFT, 64 - Long.numberOfLeadingZeros(bytes - 1));
  }

  @SuppressWarnings("unchecked")
  private ArrayDeque<MemorySegment> blocks(int shift) {
    ArrayDeque<?> blocks = free[shift];
    if (blocks == null) {
      blocks = new ArrayDeque<MemorySegment>();
      free[shift] = blocks;
    }
    return (ArrayDeque<MemorySegment>) blocks;
  }
}
