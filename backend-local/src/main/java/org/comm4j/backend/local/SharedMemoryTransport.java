package org.comm4j.backend.local;

import static org.comm4j.backend.local.BlockLayout.SLEEPING_AT;
import static org.comm4j.backend.local.RingWriter.LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.PayloadHandler;
import org.jspecify.annotations.Nullable;

/// Messages and windows in memory that all ranks see: threads of one JVM or processes of one host,
/// depending on where the [RankMemory] comes from.
///
/// Each ordered pair of ranks that talks has a ring ([RingWriter]) in the sender's block. A rank
/// polls the rings of those who have ever offered it something: their next slots are in its own
/// cache while nothing comes, so that an idle ring costs a nanosecond or two, and what comes is
/// found with one transfer of a cache line.
///
/// **Sleeping.** A rank that is about to sleep says so in its block (1), and whoever has stored
/// something for it looks there afterwards; fences lie between store and look on both sides
/// ([SleepFence]), so that one of them sees the other. Since this class can't know for which flags
/// in the windows the engine waits, [#park] only announces the sleep at first and returns; the
/// engine looks at everything once more and parks again, and only that call sleeps. Several threads
/// may be about to sleep: each must have looked since the word was set, and once it was cleared,
/// for whichever of them, all have to look again. Who wakes a sleeper clears the word, so that a
/// burst makes one system call. There is no spinning here: the engine parks when it has looked
/// often enough that the 20 µs of a wake-up don't matter.
///
/// **Threads.** One thread at a time offers, polls, or maps; others may park meanwhile.
final class SharedMemoryTransport implements HostTransport {
  static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

  private static final int AWAKE = 0;
  private static final int ASLEEP = 1;

  /// How long a sleep lasts at most, so that a thread that is interrupted while it sleeps in the
  /// kernel is not kept.
  static final long MAX_SLEEP_NANOS = 80_000_000;

  private static final long UNMAP_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private final int rank;
  private final BlockLayout layout;
  private final RankMemory memory;
  private final WindowOption option;
  private final Doorbell doorbell;
  private final SleepFence fence;
  private final long maxSleepNanos;
  private final MemorySegment[] blocks;
  private final MemorySegment[] windows;
  private final MemorySegment[] sleepWords;
  private final @Nullable RingWriter[] writers;
  private final long[] connected;
  private final Set<Extent> extents = new HashSet<>();
  private final StreamingCopy copy = new StreamingCopy(StreamingLoop.ofThisMachine());
  private final Object lock = new Object();
  private final Object parkLock = new Object();

  private volatile RingReader[] readers = {};
  private int turn;
  private final List<Thread> announced = new ArrayList<>(); // that look, or have looked
  private volatile boolean woken;
  private volatile boolean closed;

  /// @param memory closed with this transport
  /// @param option what sets the size of the windows
  /// @param doorbell of the same kind on all ranks
  /// @param fence of the same kind on all ranks
  /// @param maxSleepNanos usually [#MAX_SLEEP_NANOS]
  SharedMemoryTransport(
      int rank,
      BlockLayout layout,
      RankMemory memory,
      WindowOption option,
      Doorbell doorbell,
      SleepFence fence,
      long maxSleepNanos) {
    this.rank = rank;
    this.layout = layout;
    this.memory = memory;
    this.option = option;
    this.doorbell = doorbell;
    this.fence = fence;
    this.maxSleepNanos = maxSleepNanos;
    int size = layout.ranks();
    blocks = new MemorySegment[size];
    windows = new MemorySegment[size];
    sleepWords = new MemorySegment[size];
    for (int peer = 0; peer < size; peer++) {
      blocks[peer] = memory.block(peer);
      windows[peer] = blocks[peer].asSlice(layout.windowAt(), layout.windowBytes());
      sleepWords[peer] = blocks[peer].asSlice(SLEEPING_AT, Integer.BYTES);
    }
    writers = new @Nullable RingWriter[size];
    connected = new long[layout.connectedWords()];
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return layout.ranks();
  }

  @Override
  public int maxPayloadBytes(int peer) {
    return layout.maxPayloadBytes();
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    assert peer != rank && payload.byteSize() <= layout.maxPayloadBytes();
    RingWriter writer = writers[peer];
    if (writer == null) {
      writer = connect(peer);
    }
    if (!writer.offer(header, payload)) {
      return false;
    }
    wake(peer);
    return true;
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    acceptNew();
    RingReader[] peers = readers;
    int delivered = 0;
    for (int visits = peers.length; visits > 0 && delivered < limit; visits--) {
      // The next poll begins with the next peer, so that a busy one can't use up every limit.
      RingReader reader = peers[turn];
      turn = turn + 1 == peers.length ? 0 : turn + 1;
      if (reader.isReady()) {
        delivered += drain(reader, handler, limit - delivered);
      }
    }
    return delivered;
  }

  @Override
  public void park(long nanos) {
    synchronized (parkLock) {
      if (closed || nanos <= 0) {
        return;
      }
      if (woken) {
        woken = false;
      } else if (!announced.contains(Thread.currentThread())) {
        announce();
        return;
      } else if (!hasArrivals() && !hasNewRoom()) {
        doorbell.sleep(rank, sleepWords[rank], Math.min(nanos, maxSleepNanos));
        if ((int) INT.getVolatile(sleepWords[rank], 0L) == ASLEEP) {
          return; // the time is over; what the engine looks at now it sees, or it is woken
        }
      }
      announced.clear();
      INT.setOpaque(sleepWords[rank], 0L, AWAKE);
    }
  }

  private void announce() {
    if ((int) INT.getVolatile(sleepWords[rank], 0L) != ASLEEP) { // the others look again, too
      announced.clear();
      INT.setVolatile(sleepWords[rank], 0L, ASLEEP);
    }
    announced.add(Thread.currentThread());
    fence.beforeLookingForFlags();
  }

  @Override
  public void wakeUp() {
    woken = true;
    synchronized (lock) {
      if (!closed) {
        wake(rank);
      }
    }
  }

  @Override
  public void wake(int peer) {
    fence.beforeLookingForSleepers();
    MemorySegment word = sleepWords[peer];
    if ((int) INT.getOpaque(word, 0L) == ASLEEP && INT.compareAndSet(word, 0L, ASLEEP, AWAKE)) {
      doorbell.ring(peer, word);
    }
  }

  @Override
  public String remedy() {
    return "close buffers, or raise " + option.variable();
  }

  @Override
  public long windowBytes() {
    return layout.windowBytes();
  }

  @Override
  public MemorySegment window(int peer) {
    return windows[peer];
  }

  @Override
  public void reserve(long offset, long bytes) {
    Objects.checkFromIndexSize(offset, bytes, layout.windowBytes());
    memory.reserve(layout.windowAt() + offset, bytes);
  }

  @Override
  public void copyIn(
      MemorySegment source, long sourceOffset, MemorySegment own, long offset, long bytes) {
    copy.copy(source, sourceOffset, own, offset, bytes);
  }

  @Override
  public boolean lend(int loan, MemorySegment own, long bytes, int readers, Lender lender) {
    return memory.lend(loan, own, bytes, readers, lender, copy);
  }

  @Override
  public void endLoan(int loan) {
    memory.endLoan(loan);
  }

  @Override
  public @Nullable MemorySegment lent(int peer, int loan) {
    return memory.lent(peer, loan);
  }

  @Override
  public boolean copiesLoans() {
    return memory.copiesLoans();
  }

  @Override
  public boolean copyLent(
      int peer, int loan, long offset, MemorySegment target, long targetOffset, long bytes) {
    return memory.copyLent(peer, loan, offset, target, targetOffset, bytes);
  }

  @Override
  public Extent map(long offset, long bytes) {
    synchronized (lock) {
      if (closed) {
        throw new IllegalStateException("rank %d's transport is closed".formatted(rank));
      }
      reserve(offset, bytes);
      return extent(rank, offset, bytes);
    }
  }

  @Override
  public Extent view(int peer, long offset, long bytes) {
    synchronized (lock) {
      if (closed) {
        throw new IllegalStateException("rank %d's transport is closed".formatted(rank));
      }
      return extent(peer, offset, bytes);
    }
  }

  private Extent extent(int owner, long offset, long bytes) {
    var extent = new WindowExtent(owner, offset, bytes);
    extents.add(extent);
    return extent;
  }

  @Override
  public void close() {
    synchronized (lock) {
      if (closed) {
        return;
      }
      closed = true;
      wake(rank);
    }
    if (!unmap()) {
      Thread.ofPlatform().daemon().name("comm4j-unmap-" + rank).start(this::unmapLater);
    }
  }

  /// Gives the memory back, unless a thread does I/O with a part of it, or is in a native call with
  /// it, which would crash.
  ///
  /// @return false if that has to be tried again later
  private boolean unmap() {
    synchronized (parkLock) {
      synchronized (lock) {
        try {
          List.copyOf(extents).forEach(Extent::close);
          memory.close();
          return true;
        } catch (IllegalStateException _) {
          return false;
        }
      }
    }
  }

  private void unmapLater() {
    while (!unmap()) {
      LockSupport.parkNanos(UNMAP_NS);
    }
  }

  private RingWriter connect(int peer) {
    memory.reserve(layout.ringAt(peer), layout.ringBytes());
    var writer = new RingWriter(blocks[rank], layout, peer, copy);
    LONG.getAndBitwiseOr(blocks[peer], BlockLayout.connectedAt(rank), 1L << rank);
    writers[peer] = writer;
    return writer;
  }

  private int drain(RingReader reader, PayloadHandler handler, int limit) {
    int delivered = reader.poll(handler, limit);
    while (reader.giveBack()) {
      wake(reader.peer());
      delivered += reader.poll(handler, limit - delivered);
    }
    return delivered;
  }

  private void acceptNew() {
    for (int word = 0; word < connected.length; word++) {
      long now = connectedWord(word);
      if (now != connected[word]) {
        accept(word, now & ~connected[word]);
        connected[word] = now;
      }
    }
  }

  private void accept(int word, long bits) {
    var all = new ArrayList<RingReader>(List.of(readers));
    for (long left = bits; left != 0; left &= left - 1) {
      int peer = (word << 6) + Long.numberOfTrailingZeros(left);
      all.add(new RingReader(peer, blocks[peer], layout, rank));
    }
    readers = all.toArray(RingReader[]::new);
  }

  private long connectedWord(int word) {
    return (long) LONG.getAcquire(blocks[rank], BlockLayout.connectedAt(word << 6));
  }

  /// On the thread that parks: another one may be polling, so no reader is changed here.
  private boolean hasArrivals() {
    for (int word = 0; word < connected.length; word++) {
      if (connectedWord(word) != connected[word]) {
        return true;
      }
    }
    for (RingReader reader : readers) {
      if (reader.isReady()) {
        return true;
      }
    }
    return false;
  }

  private boolean hasNewRoom() {
    for (RingWriter writer : writers) {
      if (writer != null && writer.hasNewRoom()) {
        return true;
      }
    }
    return false;
  }

  private final class WindowExtent implements Extent {
    private final Arena arena = Arena.ofShared();
    private final MemorySegment segment;

    WindowExtent(int owner, long offset, long bytes) {
      try {
        segment = memory.view(owner, layout.windowAt() + offset, bytes, arena);
      } catch (RuntimeException e) {
        arena.close();
        throw e;
      }
    }

    @Override
    public MemorySegment segment() {
      return segment;
    }

    @Override
    public void close() {
      synchronized (lock) {
        if (arena.scope().isAlive()) {
          arena.close();
          extents.remove(this);
        }
      }
    }
  }
}
