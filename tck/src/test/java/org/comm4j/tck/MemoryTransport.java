package org.comm4j.tck;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Transport;

/// The plainest transport: payloads are copied into queues of this JVM. For tests of the kit.
final class MemoryTransport implements Transport, PeerMemory {
  private static final int IN_FLIGHT = 16;

  private final Hub hub;
  private final int rank;
  private final AtomicBoolean closed = new AtomicBoolean();

  private record Payload(long[] header, byte[] bytes) {}

  /// What all ranks have in common.
  private static final class Hub {
    final int size;
    final int payloadBytes;
    final List<List<ArrayBlockingQueue<Payload>>> queues;
    final List<Semaphore> bells;
    final Arena arena = Arena.ofShared();
    final AtomicInteger open;
    final List<MemorySegment> windows;

    Hub(int size, int payloadBytes, long windowBytes) {
      this.size = size;
      this.payloadBytes = payloadBytes;
      this.open = new AtomicInteger(size);
      this.queues =
          IntStream.range(0, size)
              .mapToObj(to ->
                  IntStream.range(0, size)
                      .mapToObj(from -> new ArrayBlockingQueue<Payload>(IN_FLIGHT))
                      .toList())
              .toList();
      this.bells = IntStream.range(0, size).mapToObj(_ -> new Semaphore(0)).toList();
      this.windows =
          IntStream.range(0, size)
              .mapToObj(_ -> arena.allocate(Math.max(8, windowBytes), 4096))
              .toList();
    }

    void ring(int rank) {
      Semaphore bell = bells.get(rank);
      if (bell.availablePermits() == 0) {
        bell.release();
      }
    }
  }

  private MemoryTransport(Hub hub, int rank) {
    this.hub = hub;
    this.rank = rank;
  }

  static List<MemoryTransport> group(int size, int payloadBytes, long windowBytes) {
    Hub hub = new Hub(size, payloadBytes, windowBytes);
    return IntStream.range(0, size).mapToObj(rank -> new MemoryTransport(hub, rank)).toList();
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return hub.size;
  }

  @Override
  public int maxPayloadBytes(int peer) {
    return hub.payloadBytes;
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    boolean taken =
        hub.queues
            .get(peer)
            .get(rank)
            .offer(new Payload(header.clone(), payload.toArray(JAVA_BYTE)));
    if (taken) {
      hub.ring(peer);
    }
    return taken;
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    int count = 0;
    for (int from = 0; from < hub.size && count < limit; from++) {
      Payload payload = hub.queues.get(rank).get(from).poll();
      for (; payload != null; payload = hub.queues.get(rank).get(from).poll()) {
        handler.onPayload(from, payload.header(), MemorySegment.ofArray(payload.bytes()));
        hub.ring(from); // there is room
        if (++count == limit) {
          break;
        }
      }
    }
    return count;
  }

  @Override
  public void park(long nanos) {
    try {
      if (hub.bells.get(rank).tryAcquire(Math.min(nanos, 10_000_000), TimeUnit.NANOSECONDS)) {
        hub.bells.get(rank).drainPermits();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void wakeUp() {
    hub.ring(rank);
  }

  @Override
  public void close() {
    if (!closed.getAndSet(true) && hub.open.decrementAndGet() == 0) {
      hub.arena.close(); // 16 MiB a rank and group would not fit in many machines
    }
  }

  @Override
  public long windowBytes() {
    return hub.windows.getFirst().byteSize();
  }

  @Override
  public MemorySegment window(int peer) {
    return hub.windows.get(peer);
  }

  @Override
  public void reserve(long offset, long bytes) {}

  @Override
  public Extent map(long offset, long bytes) {
    return view(rank, offset, bytes);
  }

  @Override
  public Extent view(int owner, long offset, long bytes) {
    Arena life = Arena.ofShared();
    MemorySegment part = RestrictedMemory.view(window(owner).asSlice(offset, bytes), life);
    return new Extent() {
      @Override
      public MemorySegment segment() {
        return part;
      }

      @Override
      public void close() {
        if (life.scope().isAlive()) {
          life.close();
        }
      }
    };
  }

  @Override
  public void wake(int peer) {
    hub.ring(peer);
  }
}
