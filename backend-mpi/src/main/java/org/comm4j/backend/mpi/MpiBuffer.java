package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.TransportFailedException;

/// Memory of the library's (`MPI_Alloc_mem`), which it may have prepared for its network. What is
/// not little begins at a page, so on all ranks alike: where source and target lie a few bytes
/// apart in their pages some processors copy several times as slowly (`docs/performance.md`).
final class MpiBuffer implements CommBuffer {
  private static final long PAGE_BYTES = 4096; // nothing is ever in the first one

  private final MpiJob job;
  private final Arena arena;
  private final MemorySegment whole;
  private final MemorySegment segment;
  private final CommData data;
  private volatile boolean closed; // set with the lock, which who closes holds while it waits

  /// @param whole what the library gave; it lives until it is given back
  /// @param segment the part of it that is used, as long as the arena lives
  private MpiBuffer(
      MpiJob job, Arena arena, MemorySegment whole, MemorySegment segment, DataType type) {
    this.job = job;
    this.arena = arena;
    this.whole = whole;
    this.segment = segment;
    this.data = CommData.of(type, segment);
  }

  static MpiBuffer allocate(MpiJob job, DataType type, long count) {
    long bytes = type.bytes(count);
    boolean isLittle = bytes < PAGE_BYTES;
    long spare = isLittle || bytes > Long.MAX_VALUE - PAGE_BYTES ? 0 : PAGE_BYTES - 1;
    MemorySegment address;
    try (Arena temporary = Arena.ofConfined()) {
      MemorySegment result = temporary.allocate(ADDRESS);
      int code = Mpi.allocMem(Math.max(bytes + spare, 1), Functions.constants().infoNull, result);
      address = result.get(ADDRESS, 0);
      // MPICH 4.0 adds the length of a header to what malloc gives, also when that is nothing
      if (code != Constants.SUCCESS || address.address() < PAGE_BYTES) {
        throw new TransportFailedException(
            "allocate: %d bytes do not fit in the memory that the MPI library can get (MPI_Alloc_mem returned %d); close buffers, or raise what limits it"
                .formatted(bytes, code),
            null);
      }
    }
    Arena arena = Arena.ofShared();
    MemorySegment whole = address.reinterpret(bytes + spare);
    MemorySegment segment =
        address.reinterpret(bytes + spare, arena, null).asSlice(-address.address() & spare, bytes);
    segment.fill((byte) 0);
    return new MpiBuffer(job, arena, whole, segment, type);
  }

  @Override
  public CommData data() {
    if (closed) {
      throw new IllegalStateException("buffer " + data + " is closed");
    }
    return data;
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    giveBack();
    closed = true;
  }

  /// What the library may still write to stays for as long as the process lives.
  private void giveBack() {
    job.closeUnused(arena, segment, "buffer", data);
    if (!CallMemory.isLost(whole)) {
      int ignored = Mpi.freeMem(whole);
    }
  }

  boolean isClosed() {
    return closed;
  }

  /// Ends it with its communicator: the user has no access any more. Memory that a call of another
  /// communicator uses is given back after that.
  synchronized void end() {
    if (!closed) {
      closed = true;
      if (!free()) {
        job.freeLater(this);
      }
    }
  }

  /// Gives the memory of a closed buffer back.
  ///
  /// @return false if that has to be tried again later
  synchronized boolean free() {
    try {
      giveBack();
      return true;
    } catch (IllegalStateException _) {
      return false;
    }
  }
}
