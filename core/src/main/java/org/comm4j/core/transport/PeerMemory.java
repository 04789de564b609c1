package org.comm4j.core.transport;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One window of memory per rank, which its owner writes and all ranks of the session, or of its
/// host, can read. The engine lays it out: flags, staging areas, allocated buffers. All windows
/// have the same size, zeroed at first. Access is by the memory model of
/// [java.lang.invoke.VarHandle]: a release store of the owner is seen by an acquire load of a peer.
public interface PeerMemory {
  /// How much at the beginning of each window, or all of one that is smaller, has memory behind it
  /// before a peer can see it: peers look there whatever its owner has done yet, and a look at what
  /// has none takes some, or is a fault where there is none left.
  int READY_BYTES = 384 << 10;

  /// The size of each window in bytes, at least 1 MiB; the same on all ranks.
  long windowBytes();

  /// What a user may do who needs larger windows, as the end of a sentence.
  default String remedy() {
    return "close buffers";
  }

  /// Whether collectives may go through windows. Where they may not, messages carry all data, and
  /// windows hold nothing but regions. The same on all ranks.
  default boolean carriesCollectives() {
    return true;
  }

  /// Which ranks read each other's windows: those for which this is equal. The same on all ranks.
  default int host(int rank) {
    return 0;
  }

  /// The whole window of this rank, or of one that shares its memory ([#host]): native, at a
  /// multiple of 64 in memory, valid until this rank's transport is closed. From then on access to
  /// its own window and to peers' is an [IllegalStateException]; a peer that lives keeps those of
  /// ranks that have closed. Peers' windows must not be written.
  MemorySegment window(int rank);

  /// Makes sure that a part of this rank's own window behind [#READY_BYTES] has memory behind it,
  /// before it is first touched. Idempotent, local.
  ///
  /// @throws org.comm4j.api.TransportFailedException if there is no space; names the place, the
  ///   size and the remedy
  void reserve(long offset, long bytes);

  /// A part of this rank's own window, reserved, as a mapping of its own, so that it can be closed
  /// while the window lives. It ends with the transport at the latest; to close it then does
  /// nothing.
  Extent map(long offset, long bytes);

  /// A part of a peer's window that this rank reads, which it can end while the window lives: what
  /// was viewed of it is another one's memory then. Where a transport can't it ends with the
  /// window.
  ///
  /// @param rank that shares this one's memory
  default Extent view(int rank, long offset, long bytes) {
    return Extent.lasting(window(rank).asSlice(offset, bytes));
  }

  /// Copies into this rank's own window what peers will read and this rank won't. A transport may
  /// do it past this processor's caches.
  ///
  /// @param own this rank's window
  default void copyIn(
      MemorySegment source, long sourceOffset, MemorySegment own, long offset, long bytes) {
    MemorySegment.copy(source, sourceOffset, own, offset, bytes);
  }

  /// What who lends a segment does until peers have read it.
  enum Lender {
    /// Waits, and lends nothing else meanwhile, or the next part of a call.
    WAITS,
    /// Goes on, and tells them if the segment was closed before.
    TELLS,
    /// Goes on, and may close it: where they could not notice that, it is to be copied.
    GOES_ON
  }

  /// How many segments a rank can lend at a time, numbered from 0.
  int LOANS = 256;

  /// Lets the ranks that share this one's memory read a segment of the caller's where it is, if
  /// they can and that takes less time than a copy for them: they have it as memory of their own
  /// ([#lent]), or copy from it ([#copyLent]). What is lent is seen by who sees a flag in the
  /// window that was stored afterwards. It has to stay as it is until the peers are done with it;
  /// the transport keeps it alive until it is taken back ([#endLoan]).
  ///
  /// @param loan its number; what was lent under it before is taken back
  /// @param memory whatever its scope: a transport refuses what peers could not read safely
  /// @param bytes how much of it each of them will read
  /// @param readers how many will
  /// @param lender what its owner does until they have
  /// @return false if it is to be copied: nothing is lent then
  default boolean lend(int loan, MemorySegment memory, long bytes, int readers, Lender lender) {
    return false;
  }

  /// Takes back what this rank has lent under a number, if anything.
  default void endLoan(int loan) {}

  /// Whether what peers lend is no memory of this process: it can only be copied. The same on all
  /// ranks.
  default boolean copiesLoans() {
    return false;
  }

  /// What a peer has lent under a number; null if it has taken that back, or if [#copiesLoans].
  default @Nullable MemorySegment lent(int rank, int loan) {
    return null;
  }

  /// Copies from what a peer has lent, if [#copiesLoans].
  ///
  /// @param offset in the segment that it has lent
  /// @param target of this rank's, which this thread may write
  /// @return false if it is not there any more, since the peer has ended or freed it: what was
  ///   copied is of no use then
  default boolean copyLent(
      int rank, int loan, long offset, MemorySegment target, long targetOffset, long bytes) {
    return false;
  }

  /// Wakes a rank that shares this one's memory and may be in [Transport#park], after a flag that
  /// it may wait for was stored.
  void wake(int rank);

  /// A part of a window.
  interface Extent extends AutoCloseable {
    /// Valid until the close; access afterwards is an [IllegalStateException].
    MemorySegment segment();

    @Override
    void close();

    /// {@return a part that lasts as long as its window: its close ends nothing}
    static Extent lasting(MemorySegment part) {
      return new Extent() {
        @Override
        public MemorySegment segment() {
          return part;
        }

        @Override
        public void close() {}
      };
    }
  }
}
