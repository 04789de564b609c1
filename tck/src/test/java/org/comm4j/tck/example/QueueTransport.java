package org.comm4j.tck.example;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;

/// The smallest transport that keeps the contract: a queue per ordered pair of ranks, for ranks
/// that are threads of one JVM.
final class QueueTransport implements Transport {
  private static final int PAYLOAD_BYTES = 4096;
  private static final int ROOM = 64; // payloads per pair of ranks

  private final int rank;
  private final List<QueueTransport> group;
  private final List<Queue<Payload>> inboxes; // by sender
  private final Semaphore news = new Semaphore(0);
  private int turn;

  private record Payload(long[] header, MemorySegment data) {}

  private QueueTransport(int rank, int size, List<QueueTransport> group) {
    this.rank = rank;
    this.group = group;
    this.inboxes =
        IntStream.range(0, size)
            .<Queue<Payload>>mapToObj(_ -> new ArrayBlockingQueue<>(ROOM))
            .toList();
  }

  static List<QueueTransport> group(int size) {
    List<QueueTransport> group = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      group.add(new QueueTransport(rank, size, group));
    }
    return group;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return inboxes.size();
  }

  @Override
  public int maxPayloadBytes(int peer) {
    return PAYLOAD_BYTES;
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    QueueTransport receiver = group.get(peer);
    if (!receiver.inboxes.get(rank).offer(new Payload(header.clone(), copy(payload)))) {
      return false; // the engine polls, and offers it again
    }
    receiver.wakeUp();
    return true;
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    int delivered = 0;
    for (int visits = size(); visits > 0 && delivered < limit; visits--) {
      turn = (turn + 1) % size(); // so that no peer can use up every limit
      Payload payload = inboxes.get(turn).poll();
      if (payload != null) {
        group.get(turn).wakeUp(); // it has room again
        handler.onPayload(turn, payload.header, payload.data);
        delivered++;
      }
    }
    return delivered;
  }

  @Override
  public void park(long nanos) {
    try {
      if (news.tryAcquire(nanos, TimeUnit.NANOSECONDS)) {
        news.drainPermits();
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt(); // the engine looks for it
    }
  }

  @Override
  public void wakeUp() {
    if (news.availablePermits() == 0) { // nobody may park for long, and permits are counted
      news.release();
    }
  }

  @Override
  public void close() {}

  private static MemorySegment copy(MemorySegment segment) {
    return MemorySegment.ofArray(segment.toArray(ValueLayout.JAVA_BYTE));
  }
}
