package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntToLongFunction;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.Scopes;
import org.jspecify.annotations.Nullable;

/// The memory of one call as the library sees it: the user's own where it is aligned and either
/// native, and the thread that needs it may touch it, or an array that can be lent; else a copy in
/// temporary memory. Guarded by the call's group.
final class CallMemory {
  /// Of calls that have failed while the library may still write to it: it stays reachable for
  /// ever. An arena that its owner closes is beyond that; `docs/tuning.md` says so.
  private static final Queue<Object> LOST = new ConcurrentLinkedQueue<>();

  private final StagingMemory memory;
  private final StreamingCopy staging;
  private final @Nullable ArrayPins pins;
  private final List<MemorySegment> asked = new ArrayList<>(0); // of the pins, and what they said
  private final List<@Nullable MemorySegment> answers = new ArrayList<>(0);
  private final List<MemorySegment> blocks = new ArrayList<>(2);
  private final List<MemorySegment> inputs = new ArrayList<>(1); // blocks that are only read
  private final List<MemorySegment> used = new ArrayList<>(2);
  private final List<Runnable> last = new ArrayList<>(1); // what is left when it has ended

  /// @param staging copies what the call reads, which other processors will read
  /// @param pins lends arrays, for a call that the caller's thread runs to its end in the library's
  ///   blocking functions; null where it may end on another
  CallMemory(StagingMemory memory, StreamingCopy staging, @Nullable ArrayPins pins) {
    this.memory = memory;
    this.staging = staging;
    this.pins = pins;
  }

  /// Whether the library can use this memory where it is.
  boolean isDirect(MemorySegment segment, int elementBytes) {
    return direct(segment, elementBytes) != null;
  }

  /// This memory where it is, for the library; null where that works with a copy. For the same
  /// memory always the same.
  @Nullable MemorySegment direct(MemorySegment segment, int elementBytes) {
    if (pins == null) {
      boolean isOurs = segment.isNative() && !Scopes.isConfined(segment);
      return isOurs && ArrayPins.isAligned(segment, elementBytes) ? segment : null;
    }
    int known = asked.indexOf(segment);
    if (known >= 0) {
      return answers.get(known);
    }
    MemorySegment here = pins.here(segment, elementBytes);
    asked.add(segment);
    answers.add(here);
    return here;
  }

  /// What a call reads.
  MemorySegment input(MemorySegment segment, int elementBytes) {
    used.add(segment);
    MemorySegment direct = direct(segment, elementBytes);
    if (direct != null) {
      return direct;
    }
    if (segment.byteSize() == 0) {
      return MemorySegment.NULL;
    }
    MemorySegment copy = memory.takeForReading(segment.byteSize());
    inputs.add(copy);
    staging.copy(segment, 0, copy, 0, segment.byteSize());
    return copy;
  }

  /// What a call writes, every byte of it.
  MemorySegment output(MemorySegment segment, int elementBytes) {
    used.add(segment);
    MemorySegment direct = direct(segment, elementBytes);
    if (direct != null) {
      return direct;
    }
    MemorySegment copy = take(segment.byteSize());
    copyAtEnd(copy, 0, segment, 0, segment.byteSize());
    return copy;
  }

  /// The user's memory that a call touches without this class's help.
  void uses(MemorySegment segment) {
    used.add(segment);
  }

  /// Memory of unknown content, at least so many bytes; for 0 bytes none at all.
  MemorySegment take(long bytes) {
    if (bytes == 0) {
      return MemorySegment.NULL;
    }
    MemorySegment block = memory.take(bytes);
    blocks.add(block);
    return block;
  }

  /// Counts or places of elements, one for each rank, as the library's functions take them.
  MemorySegment counts(int ranks, IntToLongFunction each) {
    boolean large = Functions.hasLargeCounts();
    MemorySegment array = take((long) (large ? Long.BYTES : Integer.BYTES) * ranks);
    for (int rank = 0; rank < ranks; rank++) {
      long count = each.applyAsLong(rank);
      if (large) {
        array.setAtIndex(JAVA_LONG, rank, count);
      } else {
        array.setAtIndex(JAVA_INT, rank, (int) count);
      }
    }
    return array;
  }

  /// Copies when the call has ended well.
  void copyAtEnd(MemorySegment from, long fromByte, MemorySegment to, long toByte, long bytes) {
    last.add(() -> copy(from, fromByte, to, toByte, bytes));
  }

  /// Does something when the call has ended well, after the copies that were asked for before.
  void atEnd(Runnable action) {
    last.add(action);
  }

  static void copy(MemorySegment from, long fromByte, MemorySegment to, long toByte, long bytes) {
    if (bytes > 0) {
      MemorySegment.copy(from, fromByte, to, toByte, bytes);
    }
  }

  /// Whether only the thread that made the call may touch its memory.
  boolean isConfined() {
    for (MemorySegment each : used) {
      if (Scopes.isConfined(each)) {
        return true;
      }
    }
    return false;
  }

  /// Whether the call uses a part of this memory.
  boolean touches(MemorySegment memory) {
    return used.stream().anyMatch(each -> each.asOverlappingSlice(memory).isPresent());
  }

  /// Does what is left when the call has ended well: copies, the epilogue.
  void finish() {
    last.forEach(Runnable::run);
  }

  /// Gives the temporary memory back, and arrays to the collector.
  void release() {
    if (pins != null) {
      pins.release();
    }
    memory.giveBackWritten(blocks);
    memory.giveBackRead(inputs);
    used.clear();
    last.clear();
  }

  /// Whether the library may still write to a part of this memory, for a call that was given up.
  static boolean isLost(MemorySegment memory) {
    long start = memory.address();
    long end = start + memory.byteSize();
    for (Object each : LOST) {
      if (each instanceof MemorySegment lost
          && lost.isNative()
          && lost.address() < end
          && start < lost.address() + lost.byteSize()) {
        return true;
      }
    }
    return false;
  }

  /// Keeps requests that nobody waits for.
  static void keep(Requests requests, MemorySegment... memory) {
    LOST.add(requests);
    LOST.addAll(List.of(memory));
  }

  /// Keeps memory reachable for as long as the process lives.
  static void keep(MemorySegment memory) {
    LOST.add(memory);
  }

  /// The same of some, which the list has no more.
  static void keep(List<MemorySegment> memory) {
    LOST.addAll(memory);
    memory.clear();
  }

  /// Keeps the memory reachable for as long as the process lives: requests that use it have not
  /// ended.
  void lose(Requests requests) {
    keep(requests);
    lose();
  }

  /// The same of a blocking function of the library that has failed; arrays stay where they are.
  void lose() {
    if (pins != null) {
      pins.keep();
    }
    LOST.addAll(blocks);
    LOST.addAll(inputs);
    LOST.addAll(used);
    blocks.clear();
    inputs.clear();
    used.clear();
    last.clear();
  }
}
