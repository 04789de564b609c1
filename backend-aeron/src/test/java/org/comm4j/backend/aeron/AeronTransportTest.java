package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.media.SendChannelEndpoint;
import io.aeron.exceptions.AeronException;
import java.lang.foreign.MemorySegment;
import java.net.SocketException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.ProcessorTime;
import org.comm4j.tck.TransportContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class AeronTransportTest {
  /// Then a driver with a thread of its own has done what it can, too.
  private static final int REFUSALS = 100_000;

  private static final long LATE_MILLIS = 1800;

  private static final Queue<Throwable> UNCAUGHT = new ConcurrentLinkedQueue<>();

  @BeforeAll
  static void watch() {
    Thread.setDefaultUncaughtExceptionHandler((_, thrown) -> UNCAUGHT.add(thrown));
  }

  @AfterAll
  static void nothingIsLeft() {
    Thread.setDefaultUncaughtExceptionHandler(null);
    assertThat(UNCAUGHT).as("what ended a daemon thread").isEmpty();
    AeronGroups.checkNothingIsLeft();
  }

  private static List<AeronTransport> open(int size, Map<String, String> options) throws Exception {
    return new AeronGroups(CommConfig.fromEnvironment(options)).transports(size);
  }

  /// Aeron's own loops end where they find their thread interrupted.
  @Test
  void threadIsInterrupted_messagesStillArrive() throws Exception {
    List<AeronTransport> group = open(2, Map.of());
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[100]);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    int[] arrived = new int[1];
    try {
      Thread.currentThread().interrupt();
      for (int sent = 0; arrived[0] < 100 && System.nanoTime() - endNs < 0; ) {
        if (sent < 100 && group.get(0).offer(1, header, payload)) {
          sent++;
        }
        group.get(0).poll((_, _, _) -> {}, 1);
        group.get(1).poll((_, _, _) -> arrived[0]++, 10);
      }
      assertThat(arrived[0]).isEqualTo(100);
      assertThat(Thread.currentThread().isInterrupted()).as("left as it was").isTrue();
    } finally {
      var _ = Thread.interrupted();
      group.forEach(Transport::close);
    }
  }

  /// Who has sent something may compute for long: nothing waits for its daemon thread, not even
  /// what goes to the next term.
  @Test
  void offer_taken_isSentAtOnce() throws Exception {
    List<AeronTransport> group = open(2, Map.of("COMM_AERON_TERM", "64KiB"));
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[1000]);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    int sent = 0;
    int late = 0;
    try {
      while (sent < 200 && System.nanoTime() - endNs < 0) { // three terms
        if (group.get(0).offer(1, header, payload)) {
          sent++;
          late += group.get(0).isAllSent() ? 0 : 1;
        }
        group.get(1).poll((_, _, _) -> {}, 10);
      }
      assertThat(sent).isEqualTo(200);
      assertThat(late).as("taken, and still here").isZero();
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// What follows a message, so that its loss is noticed, goes out with the turn that makes it: the
  /// next one may be a nap of the daemon thread's later.
  @Test
  void poll_afterAnOffer_leavesNoProbeUnsent() throws Exception {
    List<AeronTransport> group = open(2, Map.of());
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[1000]);
    int[] arrived = new int[1];
    boolean isTaken = false;
    int late = 0;
    try {
      long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (arrived[0] == 0 && System.nanoTime() - endNs < 0) {
        isTaken = isTaken || group.get(0).offer(1, header, payload);
        group.get(1).poll((_, _, _) -> arrived[0]++, 1);
      }
      long probesEndNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(100);
      while (System.nanoTime() - probesEndNs < 0) {
        group.get(0).poll((_, _, _) -> {}, 1);
        late += group.get(0).isAllSent() ? 0 : 1;
        group.get(1).poll((_, _, _) -> {}, 1);
      }
      assertThat(arrived[0]).isEqualTo(1);
      assertThat(late).as("turns after which something was still here").isZero();
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// A rank that computes answers those that leave: its daemon thread does.
  @Test
  void close_othersDoNotPoll_loseNothing() throws Exception {
    List<AeronTransport> group = open(3, Map.of("COMM_AERON_TERM", "64KiB"));
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[1000]);
    int[] arrived = new int[1];
    int sent = 0;
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    try {
      while (sent < 200 && System.nanoTime() - endNs < 0) { // several terms, 20 messages unread
        if (sent - arrived[0] < 20 && group.get(0).offer(1, header, payload)) {
          sent++;
        }
        group.get(0).poll((_, _, _) -> {}, 1);
        group.get(1).poll((_, _, _) -> arrived[0]++, sent < 200 ? 1 : 0);
      }
      group.get(0).close();
      while (arrived[0] < 200 && System.nanoTime() - endNs < 0) { // a probe may come first
        group.get(1).poll((_, _, _) -> arrived[0]++, 1);
      }
      assertThat(arrived[0]).isEqualTo(200);
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// What is taken fits the peer's window, so it has gone out before a close that can't wait for
  /// it.
  @Test
  void close_peerPollsNothing_allThatWasTakenIsThere() throws Exception {
    List<AeronTransport> group = open(2, Map.of("COMM_AERON_TERM", "64KiB"));
    int[] arrived = new int[1];
    try {
      int sent = offerUntilFull(group.get(0), 1);
      group.get(0).close();
      while (group.get(1).poll((_, _, _) -> arrived[0]++, 100) > 0) {}
      assertThat(arrived[0]).isEqualTo(sent);
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// So it is where the driver is that of a host whose last rank closes.
  @Test
  void close_allOfAHostWhilePeerPollsNothing_allThatWasTakenIsThere() throws Exception {
    CommConfig config =
        CommConfig.fromEnvironment(
            Map.of(
                "COMM_AERON_DRIVER", "shared",
                "COMM_AERON_ADDRESS", "127.0.0.1",
                "COMM_AERON_TERM", "64KiB"));
    var sessions =
        InMemorySessions.group(3, rank -> new HostIdentity("host", rank < 2 ? "first" : "second"));
    List<AeronTransport> group = new AeronGroups(config).transports(sessions);
    int[] arrived = new int[1];
    try {
      int sent = offerUntilFull(group.get(1), 2);
      group.get(1).close();
      group.get(0).close();
      AeronGroups.checkHostDriversEnd();
      long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (arrived[0] < sent && System.nanoTime() - endNs < 0) {
        group.get(2).poll((_, _, _) -> arrived[0]++, 100);
      }
      assertThat(arrived[0]).isEqualTo(sent);
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// @return how many payloads a peer has room for, who polls nothing
  private static int offerUntilFull(AeronTransport from, int to) {
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[1000]);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    int sent = 0;
    int refused = 0;
    while (refused < REFUSALS && System.nanoTime() - endNs < 0) {
      if (from.offer(to, header, payload)) {
        sent++;
      } else if (sent > 0) {
        refused++;
      }
    }
    assertThat(refused).isEqualTo(REFUSALS);
    return sent;
  }

  /// One communicator fails, and the way to the peer is that of all others too.
  @Test
  void offer_driverCantOpenTheWay_saysSoEachTimeAndOpensItLater() throws Exception {
    AtomicBoolean isFull = new AtomicBoolean(true);
    List<AeronTransport> group =
        new AeronGroups(CommConfig.builder().build(), _ -> withoutFilesWhile(isFull)).transports(2);
    try {
      for (int time = 0; time < 3; time++) {
        assertThatThrownBy(() -> offerUntilTaken(group.get(0), 1))
            .isInstanceOf(TransportFailedException.class)
            .hasMessageContainingAll("no way to rank 1", "Too many open files", "ulimit -n");
      }
      isFull.set(false);
      offerUntilTaken(group.get(0), 1);
    } finally {
      group.forEach(Transport::close);
    }
  }

  private static UnaryOperator<MediaDriver.Context> withoutFilesWhile(AtomicBoolean isFull) {
    return context ->
        context.sendChannelEndpointSupplier((channel, status, with) -> {
          if (isFull.get()) {
            var tooMany = new SocketException("Too many open files");
            throw new AeronException(tooMany.getMessage(), tooMany);
          }
          return new SendChannelEndpoint(channel, status, with);
        });
  }

  private static void offerUntilTaken(AeronTransport from, int to) {
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[1000]);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    boolean isTaken = false;
    while (!isTaken && System.nanoTime() - endNs < 0) {
      isTaken = from.offer(to, header, payload);
    }
    assertThat(isTaken).isTrue();
  }

  /// Nobody takes what is left for a rank that has died.
  @Test
  void close_peerIsGone_isNotWaitedFor() throws Exception {
    var sessions = InMemorySessions.group(2);
    var config = CommConfig.fromEnvironment(Map.of("COMM_AERON_TERM", "64KiB"));
    List<AeronTransport> group = new AeronGroups(config).transports(sessions);
    try {
      offerUntilFull(group.get(0), 1);
      sessions.fail(1, new IllegalStateException("killed by the test"));
      group.get(0).close();
      assertThat(group.get(0).hasGivenUp()).isFalse();
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// It looks at its driver now and then, and naps in between.
  @Test
  void receive_peerIsLate_leavesMostOfAProcessorAlone() throws Exception {
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(60)).build();
    try (LocalGroup group = new AeronGroups(config).communicators(2);
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      Communicator late = group.communicator(0);
      Communicator waiting = group.communicator(1);
      var receiver = new CompletableFuture<Thread>();
      int[] got = new int[1];
      Future<?> received =
          threads.submit(() -> {
            waiting.receive(CommData.of(got), 0, 1);
            receiver.complete(Thread.currentThread());
            waiting.receive(CommData.of(got), 0, 1);
          });
      late.send(CommData.of(1), 1, 1); // loads classes
      Thread thread = receiver.get(1, TimeUnit.MINUTES);
      double share =
          ProcessorTime.share(
              thread,
              () ->
                  assertThatThrownBy(() -> received.get(LATE_MILLIS, TimeUnit.MILLISECONDS))
                      .isInstanceOf(TimeoutException.class));
      late.send(CommData.of(2), 1, 1);
      received.get();
      assertThat(got).containsExactly(2);
      assertThat(share).as("share of a processor while waiting").isLessThan(0.5);
    }
  }

  @Nested
  class AsConfiguredByDefault extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return open(size, Map.of());
    }
  }

  /// As between hosts, and with as little memory as it goes.
  @Nested
  class WithSmallDatagramsAndTerms extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return open(size, Map.of("COMM_AERON_MTU", "1408", "COMM_AERON_TERM", "64KiB"));
    }
  }
}
