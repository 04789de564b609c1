package org.comm4j.backend.local;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Scopes;
import org.jspecify.annotations.Nullable;

/// Blocks of ranks that are threads of one JVM: address space that the operating system fills when
/// it is touched, so there is nothing to reserve. Each rank sees it through an arena of its own; it
/// is unmapped when the last rank has closed.
final class ThreadMemory implements RankMemory {
  private final int rank;
  private final BlockLayout layout;
  private final Shared shared;
  private final Arena arena = Arena.ofShared();

  private ThreadMemory(int rank, BlockLayout layout, Shared shared) {
    this.rank = rank;
    this.layout = layout;
    this.shared = shared;
  }

  /// One for each rank.
  ///
  /// @return empty when there is not so much address space
  static Optional<List<RankMemory>> group(BlockLayout layout, NativeCalls calls) {
    return calls
        .mapAnonymous(layout.ranks() * layout.storageBytes())
        .map(all -> {
          int ranks = layout.ranks();
          var lent = new AtomicReferenceArray<@Nullable MemorySegment>(ranks * PeerMemory.LOANS);
          var shared = new Shared(all, calls, new AtomicInteger(ranks), lent);
          var group = new ArrayList<RankMemory>();
          for (int rank = 0; rank < ranks; rank++) {
            group.add(new ThreadMemory(rank, layout, shared));
          }
          return group;
        });
  }

  @Override
  public MemorySegment block(int peer) {
    return part(peer, 0, layout.blockBytes(), arena);
  }

  /// Nothing has to be done, but what is large is better in huge pages.
  @Override
  public void reserve(long offset, long bytes) {
    long address = block(rank).address() + offset;
    long start = BlockLayout.roundUp(address, BlockLayout.HUGE_PAGE_BYTES);
    long end = (address + bytes) & -BlockLayout.HUGE_PAGE_BYTES;
    if (start < end) {
      shared.calls().adviseHuge(MemorySegment.ofAddress(start), end - start);
    }
  }

  @Override
  public MemorySegment view(int peer, long offset, long bytes, Arena owner) {
    return part(peer, offset, bytes, owner);
  }

  /// Peers are threads of this JVM: they read what any thread may.
  @Override
  public boolean lend(
      int loan,
      MemorySegment memory,
      long bytes,
      int readers,
      PeerMemory.Lender lender,
      StreamingCopy instead) {
    if (!Scopes.isSafeToRead(memory)) {
      return false;
    }
    shared.lent().setRelease(rank * PeerMemory.LOANS + loan, memory);
    return true;
  }

  @Override
  public void endLoan(int loan) {
    shared.lent().setRelease(rank * PeerMemory.LOANS + loan, null);
  }

  @Override
  public @Nullable MemorySegment lent(int peer, int loan) {
    return shared.lent().getAcquire(peer * PeerMemory.LOANS + loan);
  }

  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
      shared.release();
    }
  }

  private MemorySegment part(int peer, long offset, long bytes, Arena owner) {
    if (!arena.scope().isAlive()) {
      throw new IllegalStateException("rank %d's memory is closed".formatted(rank));
    }
    long block = peer * layout.storageBytes() + BlockLayout.blockAt(peer);
    return MemorySegment.ofAddress(shared.all().address() + block + offset)
        .reinterpret(bytes, owner, null);
  }

  /// What the ranks have in common.
  ///
  /// @param lent of each rank
  private record Shared(
      MemorySegment all,
      NativeCalls calls,
      AtomicInteger users,
      AtomicReferenceArray<@Nullable MemorySegment> lent) {
    void release() {
      if (users.decrementAndGet() == 0) {
        calls.unmap(all);
      }
    }
  }
}
