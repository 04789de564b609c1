package org.comm4j.core.transport;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// One transport to the ranks of this host, whose windows are read, and another one to all others.
///
/// Both are polled in turn. As long as something arrives it waits by polling; then it sleeps in the
/// near one, whose peers wake it, and looks at the far one each time, after a millisecond at most.
public final class TwoLevelTransport implements HostTransport {
  private static final int FAR = -1;
  private static final long AWAKE_NS = TimeUnit.MICROSECONDS.toNanos(500);
  private static final long LOOK_NS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long FIRST_NAP_NS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long LONGEST_NAP_NS = TimeUnit.MILLISECONDS.toNanos(1);

  private final HostTransport near;
  private final Transport far;
  private final int[] hosts; // by rank
  private final int[] nearRanks; // by rank; FAR for those elsewhere
  private final int[] ranks; // by near rank
  private final PayloadHandler ofNear = this::onNear;
  private @Nullable PayloadHandler to;
  private boolean nearFirst;
  private long deliveredNs = System.nanoTime();
  private long napNs = FIRST_NAP_NS;

  /// @param near of the ranks of this host, in ascending order; closed with this one
  /// @param far of all ranks, though those of this host are never asked for; closed with this one
  /// @param hosts by rank, equal for those of one host; the same on all ranks
  public TwoLevelTransport(HostTransport near, Transport far, int[] hosts) {
    this.near = near;
    this.far = far;
    this.hosts = hosts.clone();
    this.nearRanks = new int[far.size()];
    Arrays.fill(nearRanks, FAR);
    int here = hosts[far.rank()];
    this.ranks = IntStream.range(0, hosts.length).filter(rank -> hosts[rank] == here).toArray();
    for (int each = 0; each < ranks.length; each++) {
      nearRanks[ranks[each]] = each;
    }
    if (near.size() != ranks.length || nearRanks[far.rank()] != near.rank()) {
      throw new IllegalArgumentException(
          "near: rank %d of %d (expected: rank %d of %s)"
              .formatted(near.rank(), near.size(), far.rank(), Arrays.toString(ranks)));
    }
  }

  @Override
  public int rank() {
    return far.rank();
  }

  @Override
  public int size() {
    return far.size();
  }

  @Override
  public int maxPayloadBytes(int peer) {
    int there = nearRanks[peer];
    return there == FAR ? far.maxPayloadBytes(peer) : near.maxPayloadBytes(there);
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    int there = nearRanks[peer];
    return there == FAR ? far.offer(peer, header, payload) : near.offer(there, header, payload);
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    to = handler;
    nearFirst = !nearFirst; // neither can use up every limit
    int delivered = nearFirst ? near.poll(ofNear, limit) : far.poll(handler, limit);
    if (delivered < limit) {
      int rest = limit - delivered;
      delivered += nearFirst ? far.poll(handler, rest) : near.poll(ofNear, rest);
    }
    if (delivered > 0) {
      deliveredNs = System.nanoTime();
      napNs = FIRST_NAP_NS;
    }
    return delivered;
  }

  private void onNear(int nearRank, long[] header, MemorySegment payload) {
    Objects.requireNonNull(to).onPayload(ranks[nearRank], header, payload);
  }

  @Override
  public void park(long nanos) {
    if (System.nanoTime() - deliveredNs < AWAKE_NS) {
      far.park(Math.min(nanos, LOOK_NS));
    } else {
      near.park(Math.min(nanos, napNs));
      napNs = Math.min(2 * napNs, LONGEST_NAP_NS);
    }
  }

  @Override
  public void wakeUp() {
    near.wakeUp();
    far.wakeUp();
  }

  // --- windows ---

  @Override
  public int host(int rank) {
    return hosts[rank];
  }

  @Override
  public String remedy() {
    return near.remedy() + "; without shared memory within hosts there is no window";
  }

  @Override
  public long windowBytes() {
    return near.windowBytes();
  }

  @Override
  public MemorySegment window(int rank) {
    return near.window(nearRanks[rank]);
  }

  @Override
  public void reserve(long offset, long bytes) {
    near.reserve(offset, bytes);
  }

  @Override
  public Extent map(long offset, long bytes) {
    return near.map(offset, bytes);
  }

  @Override
  public Extent view(int rank, long offset, long bytes) {
    return near.view(nearRanks[rank], offset, bytes);
  }

  @Override
  public void copyIn(
      MemorySegment source, long sourceOffset, MemorySegment own, long offset, long bytes) {
    near.copyIn(source, sourceOffset, own, offset, bytes);
  }

  @Override
  public boolean lend(int loan, MemorySegment memory, long bytes, int readers, Lender lender) {
    return near.lend(loan, memory, bytes, readers, lender);
  }

  @Override
  public boolean copiesLoans() {
    return near.copiesLoans();
  }

  @Override
  public void endLoan(int loan) {
    near.endLoan(loan);
  }

  @Override
  public @Nullable MemorySegment lent(int rank, int loan) {
    return near.lent(nearRanks[rank], loan);
  }

  @Override
  public boolean copyLent(
      int rank, int loan, long offset, MemorySegment target, long targetOffset, long bytes) {
    return near.copyLent(nearRanks[rank], loan, offset, target, targetOffset, bytes);
  }

  @Override
  public void wake(int rank) {
    near.wake(nearRanks[rank]);
  }

  @Override
  public void close() {
    try {
      near.close();
    } finally {
      far.close();
    }
  }
}
