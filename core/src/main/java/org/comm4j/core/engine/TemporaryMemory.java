package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.IdentityHashMap;

/// Temporary memory of calls, re-used: a fresh page costs more than what is done with it. Blocks
/// are powers of two, but for those that are too large to be kept; what is kept for later is
/// bounded, apart for small and for large blocks. A large one beyond that is freed when it is given
/// back: calls make so little garbage that no collection would come to do it. Guarded by whoever
/// uses it.
public final class TemporaryMemory {
  private static final int SMALLEST_SHIFT = 12;

  /// Closing an arena waits for all threads of the JVM: for less, that takes longer than anything
  /// else about the block.
  private static final int LARGE_SHIFT = 20;

  private static final int LARGEST_SHIFT = 26;
  private static final long MOST_SMALL_BYTES = 8L << LARGE_SHIFT;

  /// Two 32 MiB calls one behind the other.
  private static final long MOST_LARGE_BYTES = 1L << LARGEST_SHIFT;

  private final ArrayDeque<?>[] free = new ArrayDeque<?>[LARGEST_SHIFT + 1];
  private final IdentityHashMap<MemorySegment, Arena> arenas = new IdentityHashMap<>(); // of large
  private final long[] lastUses = new long[LARGEST_SHIFT + 1]; // of each size, but the latest
  private final long[] uses = new long[LARGEST_SHIFT + 1]; // the latest
  private long large; // how many were given back
  private long smallBytes; // kept
  private long largeBytes; // kept

  /// Has none at first.
  public TemporaryMemory() {}

  /// A block of at least so many bytes, of unknown content.
  public MemorySegment take(long bytes) {
    if (bytes == 0) {
      return Buffers.NOTHING;
    }
    if (bytes > MOST_LARGE_BYTES) {
      return allocateLarge(bytes);
    }
    int shift = shift(bytes);
    MemorySegment block = blocks(shift).pollLast();
    if (block == null) {
      return shift < LARGE_SHIFT
          ? Arena.ofAuto().allocate(1L << shift, 64)
          : allocateLarge(1L << shift);
    }
    if (shift < LARGE_SHIFT) {
      smallBytes -= block.byteSize();
    } else {
      largeBytes -= block.byteSize();
    }
    return block;
  }

  private MemorySegment allocateLarge(long bytes) {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment block = arena.allocate(bytes, 64);
      arenas.put(block, arena);
      return block;
    } catch (Throwable e) {
      arena.close();
      throw e;
    }
  }

  /// Takes a block back that [#take] gave.
  public void giveBack(MemorySegment block) {
    long bytes = block.byteSize();
    if (bytes == 0) {
      return;
    }
    int shift = shift(bytes);
    if (shift >= LARGE_SHIFT) {
      giveBackLarge(block, shift);
    } else if (smallBytes + bytes <= MOST_SMALL_BYTES) {
      smallBytes += bytes;
      blocks(shift).addLast(block);
    }
  }

  private void giveBackLarge(MemorySegment block, int shift) {
    if (shift <= LARGEST_SHIFT) {
      lastUses[shift] = uses[shift];
      uses[shift] = ++large;
      freeUnused(shift, MOST_LARGE_BYTES - block.byteSize());
      if (largeBytes + block.byteSize() <= MOST_LARGE_BYTES) {
        largeBytes += block.byteSize();
        blocks(shift).addLast(block);
        return;
      }
    }
    free(block);
  }

  /// Frees blocks of other sizes that nobody has used since this size was used before, until so
  /// much or less is kept.
  private void freeUnused(int shift, long most) {
    for (int other = LARGEST_SHIFT; other >= LARGE_SHIFT; other--) {
      if (other != shift && uses[other] < lastUses[shift]) {
        ArrayDeque<MemorySegment> blocks = blocks(other);
        while (largeBytes > most && !blocks.isEmpty()) {
          MemorySegment unused = blocks.removeLast();
          largeBytes -= unused.byteSize();
          free(unused);
        }
      }
    }
  }

  private void free(MemorySegment block) {
    Arena arena = arenas.remove(block);
    if (arena != null) {
      arena.close();
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
