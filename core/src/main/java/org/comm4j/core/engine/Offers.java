package org.comm4j.core.engine;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.BitSet;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Scopes;
import org.jspecify.annotations.Nullable;

/// Messages that their receivers may read where they lie: in this rank's window, or lent. Guarded
/// by the engine's lock.
///
/// A place is a number for a frame: in a window the offset plus 1, of a loan its complement, and 0
/// for none.
final class Offers {
  private static final VarHandle FLAG = JAVA_LONG.varHandle();

  /// Asking the receiver to read and hearing that it has takes as long as copying some kilobytes
  /// twice.
  private static final long LEAST_BYTES = 8 << 10;

  /// What the kernel copies, one message after the other, goes faster through a ring up to here,
  /// where one end writes what the other reads.
  private static final long LEAST_COPIED_BYTES = 48 << 10;

  private static final int FIRST_LOAN = WindowLayout.AREAS * WindowLayout.LANES; // behind lanes'
  private static final int LOANS = PeerMemory.LOANS - FIRST_LOAN;

  private final Windows windows;
  private final PeerMemory memory;
  private final int rank;
  private final BitSet loans = new BitSet(LOANS);

  Offers(Windows windows, int rank) {
    this.windows = windows;
    this.memory = windows.memory();
    this.rank = rank;
  }

  /// Whether a message may be better offered than sent.
  boolean mayBeFor(int reader, MemorySegment data) {
    return data.byteSize() >= LEAST_BYTES
        && windows.layout().hasLanes()
        && memory.host(rank) == memory.host(reader)
        && (!memory.copiesLoans()
            || data.byteSize() >= LEAST_COPIED_BYTES
            || windows.bufferOf(data) != null);
  }

  /// Lets a message be read until [#takeBack].
  ///
  /// @param awaited whether the thread that sends it waits until it is read
  /// @return its place; 0 if it has to be sent
  long offer(int reader, MemorySegment data, boolean awaited) {
    if (!mayBeFor(reader, data)) {
      return 0;
    }
    WindowBuffer buffer = windows.bufferOf(data);
    if (buffer != null) {
      return buffer.windowOffset(data) + 1;
    }
    int loan = loans.nextClearBit(0);
    var lender = awaited ? PeerMemory.Lender.WAITS : PeerMemory.Lender.TELLS;
    if (loan >= LOANS || !memory.lend(FIRST_LOAN + loan, data, data.byteSize(), 1, lender)) {
      return 0;
    }
    loans.set(loan);
    return ~(long) loan;
  }

  /// Whether peers can't be sure that what they have read there was the message: its owner may have
  /// closed it meanwhile, which neither they nor a thread of this rank would have seen.
  ///
  /// @param awaited whether the thread that sends it waits until it is read
  boolean mayGoUnseen(long place, MemorySegment data, boolean awaited) {
    return isOnlyCopied(place) && !awaited && Scopes.canBeClosed(data);
  }

  /// Ends an offer that has been read.
  void takeBack(long place) {
    if (place < 0) {
      loans.clear((int) ~place);
      memory.endLoan(FIRST_LOAN + (int) ~place);
    }
  }

  /// Ends an offer that somebody may be reading: what a peer has read of this rank's counts from
  /// now on only if it is confirmed.
  void withdraw(long place) {
    FLAG.setRelease(memory.window(rank), WindowLayout.WITHDRAWN_AT, 1L);
    VarHandle.fullFence(); // before anything that the user writes there
    takeBack(place);
  }

  /// Whether a rank, after what was read of its memory until now, has ever withdrawn an offer.
  boolean hasWithdrawn(int owner) {
    VarHandle.acquireFence();
    return (long) FLAG.getAcquire(memory.window(owner), WindowLayout.WITHDRAWN_AT) != 0;
  }

  /// The same of this rank.
  boolean hasWithdrawn() {
    return hasWithdrawn(rank);
  }

  /// Whether what is at a peer's place can only be copied ([#copy]).
  boolean isOnlyCopied(long place) {
    return place < 0 && memory.copiesLoans();
  }

  /// Copies a part of what a peer has offered.
  ///
  /// @return false if it is not there any more
  boolean copy(
      int owner, long place, long from, MemorySegment target, long targetOffset, long bytes) {
    return memory.copyLent(owner, FIRST_LOAN + (int) ~place, from, target, targetOffset, bytes);
  }

  /// What a peer has offered; null if it has taken that back, and has perhaps lent something else
  /// since. Not if it [#isOnlyCopied].
  @Nullable MemorySegment offered(int owner, long place, long bytes) {
    if (place > 0) {
      return memory.window(owner).asSlice(place - 1, bytes);
    }
    MemorySegment lent = memory.lent(owner, FIRST_LOAN + (int) ~place);
    return lent == null || !lent.scope().isAlive() || lent.byteSize() != bytes ? null : lent;
  }
}
