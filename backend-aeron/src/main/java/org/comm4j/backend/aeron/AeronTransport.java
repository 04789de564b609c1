package org.comm4j.backend.aeron;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;

/// Payloads over Aeron: one message each, in one datagram at most.
///
/// The driver works when the engine offers, polls or parks. While it does none of them, for example
/// because the rank computes, a daemon thread keeps the driver going: it answers peers, repeats
/// what was lost, and sends what was offered last. Also while the engine is busy with what has
/// arrived, which may be for long in an operator of the program's: peers go by the driver's signs
/// of life.
final class AeronTransport implements Transport {
  private static final long KEEP_NS = TimeUnit.MILLISECONDS.toNanos(10);

  /// While peers ask for one thing after the other: for what was lost, one gap at a time.
  private static final long BUSY_KEEP_NS = TimeUnit.MICROSECONDS.toNanos(200);

  /// No nap is shorter than 50 µs, so that short ones cost more than they save.
  private static final long AWAKE_NS = TimeUnit.MICROSECONDS.toNanos(500);

  private static final long FIRST_NAP_NS = 1_000;
  private static final long LONGEST_NAP_NS = TimeUnit.MILLISECONDS.toNanos(1);

  /// How often this looks whether a peer has to be probed.
  private static final long PROBE_NS = TimeUnit.MILLISECONDS.toNanos(1);

  private static final int BURST = 1000;

  /// So many payloads may be delivered before the driver works again: it sends and answers too, and
  /// has those of other peers.
  private static final int MOST_UNWORKED = 16;

  private final int rank;
  private final int size;
  private final Driver driver;
  private final List<Peer> peers; // in the order of their ranks, without this one
  private final LongSupplier nanoTime;
  private final Linger linger;
  private final Thread keeper;
  private final ReentrantLock lock = new ReentrantLock();
  private int turn;
  private int unworked; // payloads delivered since the driver has worked; too many if none is left
  private long probedNs;
  private volatile long workedNs;
  private volatile @Nullable Thread parked;
  private volatile boolean woken;
  private volatile boolean closed;
  private boolean gaveUp; // at the end, on peers that had not taken all

  /// @param driver of this rank, closed with the transport
  /// @param peers all other ranks in order
  /// @param nanoTime the clock
  /// @param linger at the end
  AeronTransport(int rank, Driver driver, List<Peer> peers, LongSupplier nanoTime, Linger linger) {
    this.rank = rank;
    this.size = peers.size() + 1;
    this.driver = driver;
    this.peers = List.copyOf(peers);
    this.nanoTime = nanoTime;
    this.linger = linger;
    this.probedNs = nanoTime.getAsLong();
    this.workedNs = probedNs;
    this.keeper = Thread.ofPlatform().daemon().name("comm4j-aeron-" + rank).unstarted(this::keep);
    keeper.start();
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public int maxPayloadBytes(int peer) {
    return peer(peer).maxPayloadBytes();
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    lock.lock();
    try {
      driver.check();
      Peer to = peer(peer);
      boolean taken = to.offer(header, payload);
      work();
      if (taken && driver.isInvoked() && !to.isSent()) {
        work(); // the last turn sent what fills the end of a term, and nothing else
      }
      unworked = 0;
      return taken;
    } finally {
      lock.unlock();
    }
  }

  private Peer peer(int peer) {
    return peers.get(peer < rank ? peer : peer - 1);
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    lock.lock();
    try {
      driver.check();
      int delivered = unworked < MOST_UNWORKED ? deliver(handler, limit) : 0;
      unworked += delivered;
      if (delivered == 0) {
        work();
        delivered = deliver(handler, limit);
        unworked = delivered == 0 ? MOST_UNWORKED : 0;
      }
      return delivered;
    } finally {
      lock.unlock();
    }
  }

  private int deliver(PayloadHandler handler, int limit) {
    int delivered = 0;
    int first = turn;
    for (int i = 0; i < peers.size() && delivered < limit; i++) {
      int next = (first + i) % peers.size();
      int more = peers.get(next).poll(handler, limit - delivered);
      if (more > 0) {
        turn = (next + 1) % peers.size(); // no peer can use up every limit
        if (!driver.isInvoked() && nanoTime.getAsLong() - workedNs > Driver.LONG_NS) {
          work(); // the handler takes long, and a client that is not moved along is given up
        }
      }
      delivered += more;
    }
    return delivered;
  }

  private int work() {
    long nowNs = nanoTime.getAsLong();
    if (nowNs - probedNs > PROBE_NS) {
      probedNs = nowNs;
      for (Peer peer : peers) {
        peer.probe(nowNs); // which the driver sends now, since the next turn may be a nap later
      }
    }
    int done = driver.work();
    workedNs = nowNs;
    return done;
  }

  @Override
  public void park(long nanos) {
    long startNs = nanoTime.getAsLong();
    parked = Thread.currentThread();
    long nap = FIRST_NAP_NS;
    try {
      while (!woken && !hasNews()) {
        long leftNs = nanos - (nanoTime.getAsLong() - startNs);
        if (leftNs <= 0 || Thread.currentThread().isInterrupted()) {
          break;
        }
        if (nanos - leftNs < AWAKE_NS) {
          Thread.yield();
        } else {
          LockSupport.parkNanos(this, Math.min(leftNs, nap));
          nap = Math.min(nap * 2, LONGEST_NAP_NS);
        }
      }
    } finally {
      parked = null;
      woken = false;
    }
  }

  /// Lets the driver work, and looks whether that was of use.
  boolean hasNews() {
    lock.lock();
    try {
      driver.check();
      return work() > 0 || any(Peer::hasNews);
    } finally {
      lock.unlock();
    }
  }

  private boolean any(Predicate<Peer> what) {
    for (Peer peer : peers) {
      if (what.test(peer)) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void wakeUp() {
    woken = true;
    Thread sleeper = parked;
    if (sleeper != null) {
      LockSupport.unpark(sleeper);
    }
  }

  /// Of the daemon thread.
  private void keep() {
    long nap = KEEP_NS;
    while (!closed && !driver.hasFailed()) {
      LockSupport.parkNanos(this, nap);
      boolean wasOfUse = false;
      if (nanoTime.getAsLong() - workedNs <= nap) {
        // the rank works it
      } else if (!lock.tryLock()) {
        wasOfUse = driver.workAlone() > 0;
      } else {
        try {
          peers.forEach(Peer::answerGoodbye);
          for (int i = 0; i < BURST && !closed && work() > 0 && !lock.hasQueuedThreads(); i++) {
            wasOfUse = true;
            Thread.onSpinWait();
          }
        } finally {
          lock.unlock();
        }
      }
      nap = wasOfUse ? BUSY_KEEP_NS : Math.min(2 * nap, KEEP_NS);
    }
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    LockSupport.unpark(keeper);
    boolean interrupted = joinKeeper();
    lock.lock();
    try (driver) {
      drain();
    } finally {
      lock.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private boolean joinKeeper() {
    boolean interrupted = false;
    while (keeper.isAlive()) {
      try {
        keeper.join();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    return interrupted;
  }

  /// Whether the driver has sent everything that was taken.
  boolean isAllSent() {
    lock.lock();
    try {
      return !any(peer -> !peer.isSent());
    } finally {
      lock.unlock();
    }
  }

  /// Whether a close has not waited any longer for peers to take what was sent.
  boolean hasGivenUp() {
    return gaveUp;
  }

  /// Sees to it that what was offered arrives: the driver ends with this process.
  private void drain() {
    long startNs = nanoTime.getAsLong();
    long sentNs = startNs; // or asked for
    long seen = 0;
    while (!driver.hasFailed()) {
      long requests = driver.requests();
      peers.forEach(Peer::sayGoodbye);
      if (work() == 0) {
        LockSupport.parkNanos(FIRST_NAP_NS);
      }
      peers.forEach(Peer::discard);
      if (requests != seen || any(peer -> !peer.isSent())) {
        seen = requests;
        sentNs = nanoTime.getAsLong();
      } else if (nanoTime.getAsLong() - sentNs > linger.repeatNs()) {
        return;
      }
      if (!any(peer -> !peer.isOver())) {
        return;
      }
      if (nanoTime.getAsLong() - startNs >= linger.mostNs()) {
        gaveUp = true;
        return;
      }
    }
  }
}
