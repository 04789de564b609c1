package org.comm4j.backend.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.comm4j.api.BackendException;

/// Who has come to the kernel that this rank is in, as its window has it, for messages: the host
/// reads that while kernels run. It asks whether the copies have ended and never waits for them, as
/// the device may be stuck. Thread-safe.
final class Arrivals {
  private static final int ENTRIES_BYTES = Window.MAX_RANKS * Window.ENTRY_BYTES; // of a block
  private static final int LINES = 2 * ENTRIES_BYTES;
  private static final int LINES_BYTES = Window.MAX_RANKS * Long.BYTES; // each rank's first line

  /// Of the host's memory, which the device reaches, for what is read.
  static final int BYTES = LINES + 2 * LINES_BYTES;

  private final CudaRank rank;
  private final CudaIpcMemory memory;
  private final Window layout;
  private final MemorySegment block;
  private boolean isReading;
  private boolean isOver;

  /// @param block [#BYTES] of the host's memory, used until [#end] is true
  Arrivals(CudaRank rank, CudaIpcMemory memory, Window layout, MemorySegment block) {
    this.rank = rank;
    this.memory = memory;
    this.layout = layout;
    this.block = block;
  }

  /// Begins to read, unless that goes on.
  ///
  /// @throws BackendException if the device does not copy
  synchronized void read() {
    if (isOver || !hasRead()) {
      return;
    }
    isReading = true;
    long window = memory.barrierIn(memory.workerId());
    for (int bank = 0; bank < 2; bank++) {
      read(window + Window.entries(bank), bank * ENTRIES_BYTES, ENTRIES_BYTES);
      for (int peer = 0; peer < memory.workers(); peer++) {
        read(window + layout.linesOf(bank, peer), lines(bank, peer), Long.BYTES);
      }
    }
  }

  private static int lines(int bank, int peer) {
    return LINES + bank * LINES_BYTES + Long.BYTES * peer;
  }

  private void read(long from, int to, int bytes) {
    rank.startCopy(from, block.address() + to, bytes);
  }

  /// {@return the ranks that have not come as far as this one; empty while that is not known}
  ///
  /// @param number of the last kernel of a call that has not ended; this rank may still be in one
  ///   before it
  synchronized Optional<List<Integer>> missing(long number) {
    if (isOver || !hasRead()) { // over, the block may be another's
      return Optional.empty();
    }
    long mine = reached(memory.workerId(), number);
    return Optional.of(
        IntStream.range(0, memory.workers())
            .filter(peer -> reached(peer, number) < mine)
            .boxed()
            .toList());
  }

  /// {@return the number of the last kernel that a rank has come to, by the signals or by the
  /// lines}
  private long reached(int peer, long number) {
    long reached = 0;
    for (int bank = 0; bank < 2; bank++) {
      long at = (long) bank * ENTRIES_BYTES + (long) peer * Window.ENTRY_BYTES;
      long byLines = flagged(block.get(JAVA_INT, lines(bank, peer) + Integer.BYTES), number);
      reached = Math.max(reached, Math.max(block.get(JAVA_LONG, at), byLines));
    }
    return reached;
  }

  /// {@return the number of the kernel, not behind another one, that has half its number for a
  /// flag; 0 if there is none}
  private static long flagged(int flag, long last) {
    int before = (int) last - flag;
    return flag == 0 || before < 0 ? 0 : last - before;
  }

  private boolean hasRead() {
    if (isReading && rank.hasCopied()) {
      isReading = false;
    }
    return !isReading;
  }

  /// Reads no more.
  ///
  /// @return false if the device still writes into the block
  synchronized boolean end() {
    isOver = true;
    try {
      return hasRead();
    } catch (BackendException e) {
      return CudaDriver.isOver(e);
    }
  }
}
