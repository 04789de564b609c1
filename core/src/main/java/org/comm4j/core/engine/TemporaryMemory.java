package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.IdentityHashMap;

/// Temporary memory of calls, re-used: a fresh page costs more than what is done with it. Blocks
/// are powers of two, but for those that are too large to be kept; what is kept for later is
/// bounded, apart for small and for large blocks, and counts as direct memory of the JVM's. A large
/// one beyond that is freed when it is given back: calls make so little garbage that no collection
/// would come to do it. Guarded by whoever uses it.
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
  private final IdentityHashMap<MemorySegment, Arena> passing = new IdentityHashMap<>(); // not kept
  private final long[] uses = new long[LARGEST_SHIFT + 1]; // when large blocks were taken last
  private long taken; // how many large ones were
  private long smallBytes; // kept
  private long largeBytes; // kept, or taken to be kept again

  /// Has none at first.
  public TemporaryMemory() {}

  /// A block of at least so many bytes, of unknown content.
  public MemorySegment take(long bytes) {
    if (bytes == 0) {
      return Buffers.NOTHING;
    }
    if (bytes > MOST_LARGE_BYTES) {
      return takePassing(bytes);
    }
    int shift = shift(bytes);
    if (shift >= LARGE_SHIFT) {
      return takeLarge(shift);
    }
    MemorySegment block = blocks(shift).pollLast();
    if (block == null) {
      return Arena.ofAuto().allocate(1L << shift, 64);
    }
    smallBytes -= block.byteSize();
    return block;
  }

  private MemorySegment takeLarge(int shift) {
    long before = uses[shift];
    uses[shift] = ++taken;
    long bytes = 1L << shift;
    MemorySegment block = blocks(shift).pollLast();
    if (block != null) {
      return block;
    }
    dropUnused(before, MOST_LARGE_BYTES - bytes);
    if (largeBytes + bytes > MOST_LARGE_BYTES) {
      return takePassing(bytes);
    }
    block = Arena.ofAuto().allocate(bytes, 64);
    largeBytes += bytes;
    return block;
  }

  /// Leaves blocks of sizes that nobody has taken for long to the collector, while more is kept.
  private void dropUnused(long since, long most) {
    for (int shift = LARGEST_SHIFT; shift >= LARGE_SHIFT; shift--) {
      while (uses[shift] < since && largeBytes > most && !blocks(shift).isEmpty()) {
        largeBytes -= blocks(shift).removeLast().byteSize();
      }
    }
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

  /// Takes a block back that [#take] gave.
  public void giveBack(MemorySegment block) {
    long bytes = block.byteSize();
    if (bytes == 0) {
      return;
    }
    Arena arena = passing.remove(block);
    if (arena != null) {
      arena.close();
    } else if (bytes >= 1L << LARGE_SHIFT) {
      blocks(shift(bytes)).addLast(block);
    } else if (smallBytes + bytes <= MOST_SMALL_BYTES) {
      smallBytes += bytes;
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
