package org.comm4j.backend.local;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.PeerMemory;
import org.jspecify.annotations.Nullable;

/// One rank's sight of all blocks, its own one among them, zeroed at first. The transport is its
/// only caller. What differs between ranks that are threads and ranks that are processes.
interface RankMemory extends AutoCloseable {
  /// A rank's whole block, valid until the close; afterwards access is an [IllegalStateException].
  MemorySegment block(int rank);

  /// Makes sure that there is memory behind a part of the own block. Idempotent.
  ///
  /// @throws org.comm4j.api.TransportFailedException if there is no space
  void reserve(long offset, long bytes);

  /// A part of a rank's block, reserved by its owner, that lives as long as `arena` and the block.
  MemorySegment view(int rank, long offset, long bytes, Arena arena);

  /// As [org.comm4j.core.transport.PeerMemory#lend].
  ///
  /// @param instead what copies it otherwise
  default boolean lend(
      int loan,
      MemorySegment memory,
      long bytes,
      int readers,
      PeerMemory.Lender lender,
      StreamingCopy instead) {
    return false;
  }

  /// As [org.comm4j.core.transport.PeerMemory#endLoan].
  default void endLoan(int loan) {}

  /// As [org.comm4j.core.transport.PeerMemory#lent].
  default @Nullable MemorySegment lent(int rank, int loan) {
    return null;
  }

  /// As [org.comm4j.core.transport.PeerMemory#copiesLoans].
  default boolean copiesLoans() {
    return false;
  }

  /// As [org.comm4j.core.transport.PeerMemory#copyLent].
  default boolean copyLent(
      int rank, int loan, long offset, MemorySegment target, long targetOffset, long bytes) {
    return false;
  }

  /// Takes the blocks out of sight; memory is free when the last rank has closed. Idempotent.
  @Override
  void close();
}
