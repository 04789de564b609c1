package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
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
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.junit.jupiter.api.Test;

/// A sender gets its credit back, however a communicator ends.
class CreditTest {
  private static final int BYTES = 4000;
  private static final int MORE_THAN_CREDIT = 400 * BYTES;
  private static final int NEARLY_ALL_CREDIT = 250 * BYTES;
  private static final int HALF_OF_CREDIT = 130 * BYTES;
  private static final int POLLS = 2000;

  private final List<Queue<Payload>> queues =
      List.of(new ConcurrentLinkedQueue<>(), new ConcurrentLinkedQueue<>());
  private final List<BackendCommunicator> all = open();
  private final BackendCommunicator receiver;
  private final BackendCommunicator sender;
  private final Pending look =
      all.get(0).submit(new PointToPoint.Receive(CommData.of(new int[1]), 1, 99));

  private record Payload(int from, long[] header, byte[] bytes) {}

  CreditTest() throws Exception {
    List<BackendCommunicator> copies = duplicates(all);
    this.receiver = copies.get(0);
    this.sender = copies.get(1);
  }

  @Test
  void close_afterMessagesToALeftCall_givesTheirCreditBack() {
    receiver.leaveCall(new AbortedException(0, "closed", null));
    for (int i = 0; i < MORE_THAN_CREDIT / BYTES; i++) {
      sender.submit(new PointToPoint.Send(CommData.of(new byte[BYTES]), 0, 5));
    }
    poll();

    receiver.close();

    assertThatMessagesGoUnasked();
  }

  @Test
  void receive_ofAMessageThatDoesNotFit_givesItsCreditBack() {
    sender.submit(new PointToPoint.Send(CommData.of(new byte[NEARLY_ALL_CREDIT]), 0, 5));
    poll();

    assertThatThrownBy(() ->
            receiver
                .submit(new PointToPoint.Receive(CommData.of(new int[1]), 1, 5))
                .await(Long.MAX_VALUE))
        .isInstanceOf(MismatchedCallException.class);

    assertThatMessagesGoUnasked();
  }

  @Test
  void allToAllV_withMoreThanIsExpected_givesItsCreditBack() {
    sender.submit(allToAllV(new byte[MORE_THAN_CREDIT], Partition.of(MORE_THAN_CREDIT, 0)));
    poll();

    assertThatThrownBy(
            () -> receiver.submit(allToAllV(new byte[0], Partition.of(0, 0))).await(Long.MAX_VALUE))
        .isInstanceOf(MismatchedCallException.class);

    assertThatMessagesGoUnasked();
  }

  @Test
  void close_whileTheReceivesOwnThreadIsAway_givesItsMessagesCreditBack() throws Exception {
    try (Arena confined = Arena.ofConfined()) {
      receiver.submit(
          new PointToPoint.Receive(
              CommData.of(DataType.INT8, confined.allocate(NEARLY_ALL_CREDIT)), 1, 5));
      sender.submit(new PointToPoint.Send(CommData.of(new byte[NEARLY_ALL_CREDIT]), 0, 5));
      try (ExecutorService another = Executors.newSingleThreadExecutor()) {
        another.submit(this::poll).get();

        another.submit(receiver::close).get();
      }
    }

    assertThatMessagesGoUnasked();
  }

  private static Collective.AllToAllV allToAllV(byte[] toFirst, Partition sent) {
    return new Collective.AllToAllV(
        CommData.of(toFirst), sent, CommData.of(new byte[0]), Partition.of(0, 0));
  }

  /// Lets the receiver take what has been sent.
  private void poll() {
    for (int i = 0; i < POLLS; i++) {
      assertThat(look.isDone()).isFalse();
    }
  }

  private void assertThatMessagesGoUnasked() {
    poll();
    for (int i = 0; i < HALF_OF_CREDIT / BYTES; i++) {
      Pending sent = all.get(1).submit(new PointToPoint.Send(CommData.of(new byte[BYTES]), 0, 6));
      assertThat(sent.isDone()).as("whether message %d goes unasked", i).isTrue();
    }
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

  private final class Queues extends OneOfTwo {
    Queues(int rank) {
      super(rank);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return queues
          .get(peer)
          .add(new Payload(rank(), header.clone(), payload.toArray(ValueLayout.JAVA_BYTE)));
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      int polled = 0;
      while (polled < limit) {
        Payload next = queues.get(rank()).poll();
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
  }
}
