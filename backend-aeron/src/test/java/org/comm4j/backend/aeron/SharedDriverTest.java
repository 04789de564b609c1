package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.status.SystemCounterDescriptor;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.Request;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.Promise;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Where the first rank of a host runs the media driver of all of them.
class SharedDriverTest {
  private static final int RANKS = 3;
  private static final CommConfig CONFIG =
      CommConfig.builder()
          .timeout(Duration.ofSeconds(60))
          .option("COMM_AERON_DRIVER", "shared")
          .build();

  private final Queue<MediaDriver.Context> drivers = new ConcurrentLinkedQueue<>();
  private final AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();

  /// The driver ends once the last rank has left.
  @AfterEach
  void nothingIsLeft() throws Exception {
    AeronGroups.checkHostDriversEnd();
    AeronGroups.checkNothingIsLeft();
  }

  private LocalGroup open(CommConfig config) {
    UnaryOperator<MediaDriver.Context> watched =
        context -> {
          drivers.add(context);
          return context.nanoClock(() -> {
            RuntimeException thrown = fault.get();
            if (thrown != null) {
              throw thrown;
            }
            return System.nanoTime();
          });
        };
    return new AeronGroups(config, _ -> watched).communicators(RANKS);
  }

  private long bytesSent() {
    return drivers.stream()
        .mapToLong(each -> each.systemCounters().get(SystemCounterDescriptor.BYTES_SENT).get())
        .sum();
  }

  @Test
  void open_startsOneDriver_andMessagesGoThroughMemory() throws Exception {
    try (LocalGroup group = open(CONFIG)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("3");
      assertThat(drivers).hasSize(1);
      assertThat(bytesSent()).as("bytes over UDP").isZero();
    }
  }

  @Test
  void open_withoutMemory_messagesGoOverUdp() throws Exception {
    CommConfig config = CONFIG.toBuilder().option("COMM_AERON_IPC", "false").build();
    try (LocalGroup group = open(config)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("3");
      assertThat(drivers).hasSize(1);
      assertThat(bytesSent()).as("bytes over UDP").isGreaterThan(100_000);
    }
  }

  @Test
  void close_rankThatRunsTheDriver_othersGoOn() throws Exception {
    try (LocalGroup group = open(CONFIG)) {
      List<Communicator> others = splitAllButFirst(group);
      group.communicator(0).close();
      assertThat(DriverFaultTest.sums(others)).containsOnly("2");
      assertThat(Path.of(drivers.element().aeronDirectoryName())).exists();
      others.forEach(Communicator::close);
    }
  }

  /// They have not told the driver, which would wait for two minutes.
  @Test
  void close_othersOfTheHostWereKilled_endsTheDriver() throws Exception {
    CommConfig config = CONFIG.toBuilder().liveness(Duration.ofMinutes(1)).build();
    var sessions = InMemorySessions.group(RANKS);
    List<AeronTransport> group = new AeronGroups(config).transports(sessions);
    try {
      group.getFirst().close();
      sessions.fail(1, new IllegalStateException("killed by the test"));
      sessions.fail(2, new IllegalStateException("killed by the test"));
      AeronGroups.checkHostDriversEnd();
    } finally {
      group.forEach(Transport::close);
    }
  }

  private static List<Communicator> splitAllButFirst(LocalGroup group) throws Exception {
    return DriverFaultTest.onEach(
            group.communicators(),
            comm -> comm.split(comm.rank() == 0 ? Communicator.NO_COLOR : 1, comm.rank()))
        .stream()
        .flatMap(each -> each.stream())
        .toList();
  }

  /// Else the JVM ends, and with it the driver, when the main thread does.
  @Test
  void close_onADaemonThread_keepsTheProcessForTheOthers() throws Exception {
    try (LocalGroup group = open(CONFIG)) {
      List<Communicator> others = splitAllButFirst(group);
      Thread.ofVirtual().start(() -> group.communicator(0).close()).join();
      assertThat(Thread.getAllStackTraces().keySet())
          .filteredOn(each -> each.getName().endsWith("-for-others"))
          .singleElement()
          .matches(each -> !each.isDaemon(), "is no daemon");
      others.forEach(Communicator::close);
    }
  }

  /// A step of an hour would be an hour of silence.
  @Test
  void open_driverAndRanks_goByAClockThatNobodySets() throws Exception {
    try (LocalGroup group = open(CONFIG)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("3");
      assertThat(drivers).allMatch(each -> each.epochClock() == SteadyClock.EPOCH);
    }
  }

  @Test
  void open_livenessOfDays_isPossible() throws Exception {
    try (LocalGroup group = open(CONFIG.toBuilder().liveness(Duration.ofDays(3)).build())) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("3");
    }
  }

  /// What an interrupted thread maps is closed at once, and never mapped again.
  @Test
  void send_firstOneOfAnInterruptedThread_arrives() throws Exception {
    try (LocalGroup group = open(CONFIG)) {
      int[] got = new int[1];
      Request receive = group.communicator(1).start(new Receive(CommData.of(got), 0, 1));
      Thread.currentThread().interrupt();
      Request send = group.communicator(0).start(new Send(CommData.of(7), 1, 1));
      while (!send.isDone()) {
        Thread.onSpinWait();
      }
      assertThat(Thread.interrupted()).as("the interrupt is kept").isTrue();
      receive.await();
      assertThat(got[0]).isEqualTo(7);
    }
  }

  @Test
  void driverFails_everyCallSaysSo() throws Exception {
    try (LocalGroup group = open(CONFIG)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("3");
      long start = System.nanoTime();
      fault.set(new IllegalStateException("the clock has stopped"));
      List<String> outcomes = DriverFaultTest.sumsUntilFailure(group);
      Promise.AT_ONCE.keep("a driver that fails", "a call", start);
      assertThat(outcomes)
          .allMatch(each -> each.contains("the media driver that rank 0 runs for this host"));
      assertThat(outcomes)
          .anyMatch(each -> each.startsWith(TransportFailedException.class.getName()));
    }
  }

  @Test
  void open_driverDoesNotStart_everyRankSaysWhy() throws Exception {
    UnaryOperator<MediaDriver.Context> broken = context -> context.errorBufferLength(1);
    var groups = new AeronGroups(CONFIG, _ -> broken);
    assertThat(groups.failures(RANKS))
        .hasSize(RANKS)
        .allMatch(each -> each.contains("the media driver does not start"));
  }
}
