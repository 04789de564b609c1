package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.comm4j.core.transport.PeerMemory;
import org.jspecify.annotations.Nullable;

/// Messages that their receivers may read where they lie: in this rank's window, or lent to threads
/// of the same JVM. Guarded by the engine's lock.
///
/// A place is a number for a frame: in a window the offset plus 1, of a loan its complement, and 0
/// for none.
final class Offers {
  /// Asking the receiver to read and hearing that it has takes as long as copying some kilobytes
  /// twice.
  private static final long LEAST_BYTES = 48 << 10;

  private static final int FIRST_LOAN = WindowLayout.AREAS * WindowLayout.LANES; // behind lanes'
  private static final int LOANS = PeerMemory.LOANS - FIRST_LOAN;

  private final Windows windows;
  private final PeerMemory memory;
  private final int rank;
  private final boolean lends;
  private final BitSet loans = new BitSet(LOANS);

  Offers(Windows windows, int rank) {
    this.windows = windows;
    this.memory = windows.memory();
    this.rank = rank;
    this.lends = memory.lend(FIRST_LOAN, MemorySegment.ofArray(new byte[0]));
    if (lends) {
      memory.endLoan(FIRST_LOAN);
    }
  }

  /// Whether a message is better offered than sent.
  boolean isFor(int reader, MemorySegment data) {
    return data.byteSize() >= LEAST_BYTES
        && windows.layout().hasLanes()
        && memory.host(rank) == memory.host(reader)
        && (canLend(data) || windows.bufferOf(data) != null);
  }

  private boolean canLend(MemorySegment data) {
    return lends && loans.cardinality() < LOANS && Buffers.isSafeToLend(data);
  }

  /// Lets a message be read until [#takeBack].
  ///
  /// @return its place; 0 if it has to be sent
  long offer(int reader, MemorySegment data) {
    if (!isFor(reader, data)) {
      return 0;
    }
    WindowBuffer buffer = windows.bufferOf(data);
    if (buffer != null) {
      return buffer.windowOffset(data) + 1;
    }
    int loan = loans.nextClearBit(0);
    loans.set(loan);
    memory.lend(FIRST_LOAN + loan, data);
    return ~(long) loan;
  }

  void takeBack(long place) {
    if (place < 0) {
      loans.clear((int) ~place);
      memory.endLoan(FIRST_LOAN + (int) ~place);
    }
  }

  /// What a peer has offered; null if it has taken that back.
  @Nullable MemorySegment offered(int owner, long place, long bytes) {
    if (place > 0) {
      return memory.window(owner).asSlice(place - 1, bytes);
    }
    MemorySegment lent = memory.lent(owner, FIRST_LOAN + (int) ~place);
    return lent == null || !lent.scope().isAlive() ? null : lent;
  }
}
