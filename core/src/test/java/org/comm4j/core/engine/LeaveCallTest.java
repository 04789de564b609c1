package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;

/// What comes between the end of a call and that of its communicator.
class LeaveCallTest {
  private static final int BYTES = 4000;
  private static final int MORE_THAN_CREDIT = 400;
  private static final int POLLS = 2000;

  private final List<Queue<Payload>> queues =
      List.of(new ConcurrentLinkedQueue<>(), new ConcurrentLinkedQueue<>());

  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Payload(int from, long[] header, byte[] bytes) {}

  @Test
  void close_afterMessagesToALeftCall_givesTheirCreditBack() throws Exception {
    List<BackendCommunicator> all = open();
    List<BackendCommunicator> copies = duplicates(all);
    Pending look = all.get(0).submit(new PointToPoint.Receive(CommData.of(new int[1]), 1, 99));
    copies.get(0).leaveCall(new AbortedException(0, "closed", null));
    for (int i = 0; i < MORE_THAN_CREDIT; i++) {
      copies.get(1).submit(new PointToPoint.Send(CommData.of(new byte[BYTES]), 0, 5));
    }
    for (int i = 0; i < POLLS; i++) {
      assertThat(look.isDone()).isFalse();
    }
    copies.get(0).close();

    Pending sent = all.get(1).submit(new PointToPoint.Send(CommData.of(new byte[BYTES]), 0, 6));
    for (int i = 0; i < POLLS && !sent.isDone(); i++) {
      assertThat(look.isDone()).isFalse();
    }
    assertThat(sent.isDone()).as("whether a message goes unasked").isTrue();
  }

  private List<BackendCommunicator> open() {
    InMemorySessions sessions = InMemorySessions.group(2);
    CommConfig config = CommConfig.builder().build();
    return IntStream.range(0, 2)
        .mapToObj(rank ->
            EngineCommunicator.open(
                "queues", sessions.session(rank), new Queues(rank), null, config))
        .toList();
  }

  private static List<BackendCommunicator> duplicates(List<BackendCommunicator> all)
      throws Exception {
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      List<Future<BackendCommunicator>> made =
          all.stream().map(each -> threads.submit(each::duplicate)).toList();
      return List.of(made.get(0).get(), made.get(1).get());
    }
  }

  private final class Queues implements Transport {
    private final int rank;

    Queues(int rank) {
      this.rank = rank;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public int size() {
      return 2;
    }

    @Override
    public int maxPayloadBytes(int peer) {
      return 4096;
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return queues
          .get(peer)
          .add(new Payload(rank, header.clone(), payload.toArray(ValueLayout.JAVA_BYTE)));
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      int polled = 0;
      while (polled < limit) {
        Payload next = queues.get(rank).poll();
        if (next == null) {
          break;
        }
        handler.onPayload(next.from(), next.header(), MemorySegment.ofArray(next.bytes()));
        polled++;
      }
      return polled;
    }

    @Override
    public void park(long nanos) {
      LockSupport.parkNanos(Math.min(nanos, 1_000_000));
    }

    @Override
    public void wakeUp() {}

    @Override
    public void close() {}
  }
}
