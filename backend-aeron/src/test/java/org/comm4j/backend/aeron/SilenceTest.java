package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.status.SystemCounterDescriptor;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Where UDP no longer gets through between ranks that have talked, and the session's TCP does
/// (faults F14 and F15): a call says so after twice the liveness time, and not before.
class SilenceTest {
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofSeconds(60)).liveness(Duration.ofSeconds(1)).build();

  @AfterAll
  static void nothingIsLeft() {
    AeronGroups.checkNothingIsLeft();
  }

  /// What a firewall before rank 1 begins to drop.
  enum Lost {
    WHAT_IT_IS_SENT(true, false),
    WHAT_IT_ANSWERS(false, true),
    ALL(true, true);

    private final boolean data;
    private final boolean answers;

    Lost(boolean data, boolean answers) {
      this.data = data;
      this.answers = answers;
    }

    UnaryOperator<MediaDriver.Context> from(AtomicBoolean isUp) {
      return context ->
          context.receiveChannelEndpointSupplier((channel, dispatcher, status, with) ->
              new DebugReceiveChannelEndpoint(
                  channel,
                  dispatcher,
                  status,
                  with,
                  (_, _, _) -> data && isUp.get(),
                  (_, _, _) -> answers && isUp.get()));
    }
  }

  @ParameterizedTest
  @EnumSource
  void udpStops_callsSayWhoIsSilentAndWhatToDo(Lost lost) throws Exception {
    AtomicBoolean isUp = new AtomicBoolean();
    var groups =
        new AeronGroups(CONFIG, rank -> rank == 1 ? lost.from(isUp) : UnaryOperator.identity());
    try (LocalGroup group = groups.communicators(2)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("2");
      long startNs = System.nanoTime();
      isUp.set(true); // what was acknowledged before may be enough for some calls
      assertThat(DriverFaultTest.sumsUntilFailure(group))
          .anyMatch(each ->
              each.startsWith(TransportFailedException.class.getName())
                  && each.contains(" is alive but has ")
                  && each.contains("UDP 127.0.0.1:")
                  && each.contains("COMM_AERON_PORTS"));
      assertThat(Duration.ofNanos(System.nanoTime() - startNs))
          .isGreaterThan(CONFIG.liveness().multipliedBy(2));
    }
  }

  /// As by Ctrl-Z and `fg`: who was stopped has heard nobody, and nobody has said anything.
  @Test
  @EnabledOnOs(OS.LINUX)
  void job_isStoppedForLong_goesOn() throws Exception {
    Process job =
        new ProcessBuilder(AeronGroups.JVM.command(List.of(AeronGroups.OPENED), Sums.class))
            .redirectErrorStream(true)
            .start();
    try (var out = job.inputReader();
        var in = job.outputWriter()) {
      assertThat(out.readLine()).isEqualTo("[2, 2]");
      signal("-STOP", job);
      long stopNs = System.nanoTime();
      long silenceNs = DriverSettings.peersNs(CONFIG.liveness()) + TimeUnit.SECONDS.toNanos(1);
      while (System.nanoTime() - stopNs < silenceNs) {
        LockSupport.parkNanos(silenceNs); // what is being tested is a time
      }
      signal("-CONT", job);
      in.write("go on\n");
      in.flush();
      assertThat(out.readLine()).isEqualTo("[2, 2]");
    } finally {
      job.destroyForcibly();
    }
  }

  private static void signal(String signal, Process process) throws Exception {
    assertThat(new ProcessBuilder("kill", signal, Long.toString(process.pid())).start().waitFor())
        .isZero();
  }

  /// A process that sums up, and again when it is told to.
  static final class Sums {
    private Sums() {}

    public static void main(String[] args) throws Exception {
      try (LocalGroup group = new AeronGroups(CONFIG).communicators(2)) {
        System.out.println(DriverFaultTest.sums(group));
        var _ = System.in.read();
        System.out.println(DriverFaultTest.sums(group));
      }
    }
  }

  @Test
  void peersNs_isTwiceTheLivenessTime_andAtLeastFiveSeconds() {
    assertThat(DriverSettings.peersNs(Duration.ofSeconds(1))).isEqualTo(5_000_000_000L);
    assertThat(DriverSettings.peersNs(Duration.ofSeconds(10))).isEqualTo(20_000_000_000L);
  }

  /// Rank 1 is in an operator of the program's that takes longer than a peer may be silent.
  @Test
  void poll_handlerTakesLong_rankIsNotGivenUp() throws Exception {
    Queue<MediaDriver.Context> drivers = new ConcurrentLinkedQueue<>();
    UnaryOperator<MediaDriver.Context> watched =
        context -> {
          drivers.add(context);
          return context;
        };
    List<AeronTransport> group =
        new AeronGroups(CONFIG, rank -> rank == 0 ? watched : UnaryOperator.identity())
            .transports(2);
    try {
      send(group.get(1), 0, group.get(0), () -> {});
      send(group.get(0), 1, group.get(1), () -> awaitHeartbeats(drivers.element(), 60));
      send(group.get(1), 0, group.get(0), () -> {});
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// Rank 1 is in operators of the program's that take longer together than the driver of both
  /// waits for a client, though each of them takes far less.
  @Test
  void poll_handlersTakeLong_clientIsNotGivenUp() throws Exception {
    int handlers = 6;
    long patienceNs = TimeUnit.SECONDS.toNanos(3);
    try (ExternalDriver driver =
        ExternalDriver.start(context -> context.clientLivenessTimeoutNs(patienceNs))) {
      List<AeronTransport> group = new AeronGroups(driver.config(CONFIG)).transports(2);
      try {
        send(group.get(0), 1, group.get(1), () -> {});
        long[] header = new long[Transport.HEADER_LONGS];
        MemorySegment payload = MemorySegment.ofArray(new byte[100]);
        for (int sent = 0; sent < handlers; sent++) {
          assertThat(group.get(0).offer(1, header, payload)).isTrue();
        }
        int arrived = 0;
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(40);
        while (arrived < handlers && System.nanoTime() - endNs < 0) {
          arrived += group.get(1).poll((_, _, _) -> compute(patienceNs / 4), 64);
        }
        assertThat(arrived).isEqualTo(handlers);
        send(group.get(1), 0, group.get(0), () -> {});
      } finally {
        group.forEach(Transport::close);
      }
    }
  }

  private static void compute(long nanos) {
    long startNs = System.nanoTime();
    while (System.nanoTime() - startNs < nanos) {
      Thread.onSpinWait();
    }
  }

  private static void send(AeronTransport from, int to, AeronTransport there, Runnable handler) {
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[100]);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(40);
    boolean isTaken = false;
    int arrived = 0;
    while (arrived == 0 && System.nanoTime() - endNs < 0) {
      isTaken = isTaken || from.offer(to, header, payload);
      arrived = there.poll((_, _, _) -> handler.run(), 1);
    }
    assertThat(arrived).isEqualTo(1);
  }

  /// Peers send one every 100 ms.
  private static void awaitHeartbeats(MediaDriver.Context driver, int count) {
    long before = heartbeats(driver);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (heartbeats(driver) < before + count && System.nanoTime() - endNs < 0) {
      Thread.yield();
    }
    assertThat(heartbeats(driver)).isGreaterThanOrEqualTo(before + count);
  }

  private static long heartbeats(MediaDriver.Context driver) {
    return driver.systemCounters().get(SystemCounterDescriptor.HEARTBEATS_RECEIVED).get();
  }
}
