package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.comm4j.core.engine.TemporaryMemory;

/// Where copies are that the library works with: one store of blocks for what it reads and another
/// for what it writes. What it reads, peers read: their processors keep the lines, and to store to
/// such a line costs ten times as much as to another one between processors that are far apart. The
/// copies past the caches ([org.comm4j.core.kernel.StreamingCopy]) avoid that, the library's own
/// stores don't. Thread-safe: the communicators of a job have it in common.
final class StagingMemory {
  private final TemporaryMemory read = new TemporaryMemory();
  private final TemporaryMemory written = new TemporaryMemory();

  /// A block of at least so many bytes that the library only reads.
  MemorySegment takeForReading(long bytes) {
    synchronized (read) {
      return read.take(bytes);
    }
  }

  /// A block of at least so many bytes that the library writes.
  MemorySegment take(long bytes) {
    synchronized (written) {
      return written.take(bytes);
    }
  }

  /// Takes blocks of [#takeForReading] back.
  void giveBackRead(List<MemorySegment> blocks) {
    giveBack(blocks, read);
  }

  /// Takes blocks of [#take] back.
  void giveBackWritten(List<MemorySegment> blocks) {
    giveBack(blocks, written);
  }

  private static void giveBack(List<MemorySegment> blocks, TemporaryMemory memory) {
    if (!blocks.isEmpty()) {
      synchronized (memory) {
        blocks.forEach(memory::giveBack);
      }
      blocks.clear();
    }
  }
}
