package org.comm4j.tck;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;

/// A transport that does something wrong to some payloads on their way out.
class BrokenWire implements Transport {
  final Transport inner;
  private long payloads;

  BrokenWire(Transport inner) {
    this.inner = inner;
  }

  /// Whether it is this payload's turn: one of so many that have content.
  boolean isTurn(MemorySegment payload, int each) {
    return payload.byteSize() > 0 && isTurn(each);
  }

  boolean isTurn(int each) {
    return ++payloads % each == 0;
  }

  static MemorySegment copy(MemorySegment segment) {
    return MemorySegment.ofArray(segment.toArray(JAVA_BYTE));
  }

  /// Takes payloads and never sends some of them.
  static final class Dropping extends BrokenWire {
    Dropping(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return isTurn(payload, 20) || inner.offer(peer, header, payload);
    }
  }

  /// Sends some payloads twice.
  static final class Duplicating extends BrokenWire {
    Duplicating(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (!inner.offer(peer, header, payload)) {
        return false;
      }
      if (isTurn(payload, 20)) {
        inner.offer(peer, header, payload);
      }
      return true;
    }
  }

  /// Changes a byte of some payloads.
  static final class Corrupting extends BrokenWire {
    Corrupting(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (!isTurn(payload, 20)) {
        return inner.offer(peer, header, payload);
      }
      MemorySegment changed = copy(payload);
      long last = changed.byteSize() - 1;
      changed.set(JAVA_BYTE, last, (byte) (changed.get(JAVA_BYTE, last) ^ 4));
      return inner.offer(peer, header, changed);
    }
  }

  /// Zeroes the end of long payloads.
  static final class Truncating extends BrokenWire {
    Truncating(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (payload.byteSize() < 1000) {
        return inner.offer(peer, header, payload);
      }
      MemorySegment changed = copy(payload);
      changed.asSlice(900).fill((byte) 0);
      return inner.offer(peer, header, changed);
    }
  }

  private record Held(int peer, long[] header, MemorySegment payload) {}

  /// Holds some payloads back, so that the next one of the pair overtakes them.
  static final class Reordering extends BrokenWire {
    private final Queue<Held> held = new ArrayDeque<>();

    Reordering(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (held.isEmpty() && isTurn(payload, 10)) {
        held.add(new Held(peer, header.clone(), copy(payload)));
        return true;
      }
      if (!inner.offer(peer, header, payload)) {
        return false;
      }
      release(peer);
      return true;
    }

    private void release(int peer) {
      held.removeIf(
          each -> each.peer() == peer && inner.offer(peer, each.header(), each.payload()));
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      if (!held.isEmpty() && isTurn(50)) {
        held.removeIf(each -> inner.offer(each.peer(), each.header(), each.payload()));
      }
      return super.poll(handler, limit);
    }
  }

  /// Sends a payload with the next one or the next poll, so that a close loses it.
  static final class Lagging extends BrokenWire {
    private final Queue<Held> held = new ArrayDeque<>();

    Lagging(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (!send()) {
        return false;
      }
      held.add(new Held(peer, header.clone(), copy(payload)));
      return true;
    }

    private boolean send() {
      Held last = held.peek();
      if (last != null && !inner.offer(last.peer(), last.header(), last.payload())) {
        return false;
      }
      held.clear();
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      send();
      return super.poll(handler, limit);
    }
  }

  /// Takes interrupts of its sleepers for itself.
  static final class SoundAsleep extends BrokenWire {
    SoundAsleep(Transport inner) {
      super(inner);
    }

    @Override
    public void park(long nanos) {
      super.park(nanos);
      Thread.interrupted();
    }
  }

  /// Takes what has come while it parks, as if nobody polled meanwhile.
  static final class Staging extends BrokenWire {
    private final Queue<Held> staged = new ConcurrentLinkedQueue<>();

    Staging(Transport inner) {
      super(inner);
    }

    @Override
    public void park(long nanos) {
      super.park(nanos);
      inner.poll(
          (peer, header, payload) -> {
            Held arrived = new Held(peer, header.clone(), copy(payload));
            Thread.yield(); // now a poll finds what has come behind it
            staged.add(arrived);
          },
          1);
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      int delivered = 0;
      while (delivered < limit && !staged.isEmpty()) {
        Held next = staged.remove();
        handler.onPayload(next.peer(), next.header(), next.payload());
        delivered++;
      }
      return delivered + super.poll(handler, limit - delivered);
    }
  }

  /// Has one lock for everything.
  static final class Locking extends BrokenWire {
    private final ReentrantLock lock = new ReentrantLock();

    Locking(Transport inner) {
      super(inner);
    }

    @Override
    public void park(long nanos) {
      lock.lock();
      try {
        long endNanos = System.nanoTime() + nanos;
        while (System.nanoTime() - endNanos < 0 && !Thread.currentThread().isInterrupted()) {
          super.park(nanos);
        }
      } finally {
        lock.unlock();
      }
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      lock.lock();
      try {
        return super.poll(handler, limit);
      } finally {
        lock.unlock();
      }
    }
  }

  /// Wakes who sleeps, and nobody who is about to.
  static final class Forgetful extends BrokenWire {
    private final Semaphore bell = new Semaphore(0);

    Forgetful(Transport inner) {
      super(inner);
    }

    @Override
    public void park(long nanos) {
      try {
        if (bell.tryAcquire(nanos, TimeUnit.NANOSECONDS)) {
          bell.drainPermits();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void wakeUp() {
      if (bell.hasQueuedThreads()) {
        bell.release();
      }
    }
  }

  /// Never sleeps.
  static final class Sleepless extends BrokenWire {
    Sleepless(Transport inner) {
      super(inner);
    }

    @Override
    public void park(long nanos) {}
  }

  /// Does not give all room back.
  static final class Leaking extends BrokenWire {
    private static final int ROOM = 12;

    private final AtomicInteger taken;

    /// @param taken room, of both ends
    Leaking(Transport inner, AtomicInteger taken) {
      super(inner);
      this.taken = taken;
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (taken.get() >= ROOM || !inner.offer(peer, header, payload)) {
        return false;
      }
      taken.getAndIncrement();
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      int delivered = super.poll(handler, limit);
      for (int i = 0; i < delivered; i++) {
        if (!isTurn(1000)) {
          taken.getAndDecrement();
        }
      }
      return delivered;
    }
  }

  /// Closes when its thread is interrupted.
  static final class Lingering extends BrokenWire {
    Lingering(Transport inner) {
      super(inner);
    }

    @Override
    public void close() {
      try {
        new CountDownLatch(1).await();
      } catch (InterruptedException e) {
        super.close();
      }
    }
  }

  /// Takes the end of a peer for an end of everything.
  static final class Startled extends BrokenWire {
    private final AtomicBoolean isOneDead;

    Startled(Transport inner, AtomicBoolean isOneDead) {
      super(inner);
      this.isOneDead = isOneDead;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      if (isOneDead.get()) {
        throw new TransportFailedException("the connection with rank 0 has ended", null);
      }
      return super.poll(handler, limit);
    }
  }

  /// Leaves a file when it closes.
  static final class Littering extends BrokenWire {
    private final Path folder;

    Littering(Transport inner, Path folder) {
      super(inner);
      this.folder = folder;
    }

    @Override
    public void close() {
      super.close();
      try {
        Files.createTempFile(folder, "left", "");
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /// Keeps payloads instead of copying them, until the next poll.
  static final class Keeping extends BrokenWire {
    private final Queue<Held> held = new ArrayDeque<>();

    Keeping(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      held.add(new Held(peer, header.clone(), payload));
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      while (!held.isEmpty()
          && inner.offer(
              held.element().peer(), held.element().header(), held.element().payload())) {
        held.remove();
      }
      return super.poll(handler, limit);
    }
  }

  @Override
  public int rank() {
    return inner.rank();
  }

  @Override
  public int size() {
    return inner.size();
  }

  @Override
  public int maxPayloadBytes(int peer) {
    return inner.maxPayloadBytes(peer);
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    return inner.offer(peer, header, payload);
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    return inner.poll(handler, limit);
  }

  @Override
  public void park(long nanos) {
    inner.park(Math.min(nanos, 1_000_000));
  }

  @Override
  public void wakeUp() {
    inner.wakeUp();
  }

  @Override
  public void close() {
    inner.close();
  }
}
