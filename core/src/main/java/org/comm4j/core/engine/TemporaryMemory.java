package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.IdentityHashMap;

/// Temporary memory of calls, re-used: a fresh page costs more than what is done with it. Blocks
/// are powers of two, but for those that are too large to be kept; what is kept for later is
/// bounded. What is beyond that is freed when it is given back: calls make so little garbage that
/// no collection would come to do it. Guarded by whoever uses it.
public final class TemporaryMemory {
  private static final int SMALLEST_SHIFT = 12;
  private static final int LARGEST_SHIFT = 26;

  /// Two 32 MiB calls one behind the other.
  private static final long MOST_KEPT_BYTES = 1L << LARGEST_SHIFT;

  /// Closing an arena waits for all threads of the JVM: for less, that takes longer than anything
  /// else about the block.
  private static final long LEAST_FREED_BYTES = 1 << 20;

  private final ArrayDeque<?>[] free = new ArrayDeque<?>[LARGEST_SHIFT + 1];
  private final IdentityHashMap<MemorySegment, Arena> passing =
      new IdentityHashMap<>(); // taken, not to keep
  private long keptBytes; // given back
  private long takenBytes; // of the others

  /// Has none at first.
  public TemporaryMemory() {}

  /// A block of at least so many bytes, of unknown content.
  public MemorySegment take(long bytes) {
    if (bytes == 0) {
      return Buffers.NOTHING;
    }
    if (bytes > MOST_KEPT_BYTES) {
      return takePassing(bytes);
    }
    int shift = shift(bytes);
    ArrayDeque<MemorySegment> blocks = blocks(shift);
    MemorySegment block = blocks.pollLast();
    if (block != null) {
      keptBytes -= block.byteSize();
    } else if (!makeRoom(shift) && 1L << shift >= LEAST_FREED_BYTES) {
      return takePassing(1L << shift);
    } else {
      block = Arena.ofAuto().allocate(1L << shift, 64);
    }
    takenBytes += block.byteSize();
    return block;
  }

  private MemorySegment takePassing(long bytes) {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment block = arena.allocate(bytes, 64);
      passing.put(block, arena);
      return block;
    } catch (Throwable e) {
      arena.close();
      throw e;
    }
  }

  /// Makes room for one more block to keep, at the cost of larger ones: many calls have little.
  ///
  /// @return whether there is some
  private boolean makeRoom(int shift) {
    long most = MOST_KEPT_BYTES - takenBytes - (1L << shift);
    for (int larger = LARGEST_SHIFT; larger > shift; larger--) {
      ArrayDeque<MemorySegment> blocks = blocks(larger);
      while (keptBytes > most && !blocks.isEmpty()) {
        keptBytes -= blocks.removeLast().byteSize();
      }
    }
    return keptBytes <= most;
  }

  /// Takes a block back that [#take] gave.
  public void giveBack(MemorySegment block) {
    long bytes = block.byteSize();
    if (bytes == 0) {
      return;
    }
    Arena arena = passing.remove(block);
    if (arena != null) {
      arena.close();
      return;
    }
    takenBytes -= bytes;
    if (keptBytes + bytes <= MOST_KEPT_BYTES) {
      keptBytes += bytes;
      blocks(shift(bytes)).addLast(block);
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
