package org.comm4j.core.engine;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.PointToPoint.SendReceive;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What is said of calls that have waited for too long: what to do about it.
@Timeout(60)
class DeadlineTest {
  private static final CommData LARGE = CommData.of(new int[1 << 20]);

  @Test
  void send_largeToItself_saysThatItWaitsForItsReceive() {
    assertThat(timeout(new Send(LARGE, 0, 3)))
        .hasMessage(
            "rank 0 waited 2.0 s in send(INT32 × 1048576 to rank 0, tag 3) of 'world' for a receive of its own:"
                + " so much to oneself waits for that; start() the receive before");
  }

  @Test
  void send_otherSendsToo_saysThatReceivesAreMissing() {
    assertThat(timeout(new Send(LARGE, 1, 3)))
        .hasMessage(
            "rank 0 waited 2.0 s in send(INT32 × 1048576 to rank 1, tag 3) of 'world' for rank(s) [1], who are alive"
                + " but have not called the matching receive; where both send first, start() one of"
                + " the sends or use sendReceive, else raise COMM_TIMEOUT if they may take longer");
  }

  @Test
  void receive_nothingComes_saysThatSendsAreMissing() {
    assertThat(timeout(new Receive(LARGE, 1, 3)))
        .hasMessage(
            "rank 0 waited 2.0 s in receive(INT32 × 1048576 from rank 1, tag 3) of 'world' for rank(s) [1], who are"
                + " alive but have not called the matching send; where both receive first, start()"
                + " one of the receives or use sendReceive, else raise COMM_TIMEOUT if they may take"
                + " longer");
  }

  @Test
  void receive_fromItself_saysThatItsSendIsMissing() {
    assertThat(timeout(new Receive(LARGE, 0, 3)))
        .hasMessage(
            "rank 0 waited 2.0 s in receive(INT32 × 1048576 from rank 0, tag 3) of 'world' for a send of its own;"
                + " start() the receive, then send");
  }

  @Test
  void probe_nothingComes_saysThatSendsAreMissing() {
    assertThat(timeout(new Probe(1, 3)))
        .hasMessageEndingWith(
            "for rank(s) [1], who are alive but have not called the matching send; raise COMM_TIMEOUT"
                + " if they may take longer");
  }

  /// It is what others are told to use.
  @Test
  void sendReceive_nothingComes_advisesNothingElse() {
    assertThat(timeout(new SendReceive(LARGE, 1, 3, CommData.of(new int[1]), 1, 3)))
        .hasMessageContaining("who are alive but have not called the matching ")
        .hasMessageEndingWith("; raise COMM_TIMEOUT if they may take longer");
  }

  @Test
  void collective_otherDoesNotCome_saysSo() {
    assertThat(timeout(new Collective.Barrier()))
        .hasMessageEndingWith(
            "for rank(s) [1], who are alive but have not come; raise COMM_TIMEOUT if they may take"
                + " longer");
  }

  /// Starts it on rank 0, and lets the time pass; the other rank does nothing.
  private static CollectiveTimeoutException timeout(Operation operation) {
    var nowNs = new AtomicLong();
    try (var sessions = InMemorySessions.group(2)) {
      BackendCommunicator communicator =
          EngineCommunicator.open(
              "test",
              sessions.session(0),
              new Taking(),
              null,
              CommConfig.builder().timeout(Duration.ofSeconds(2)).build(),
              new Selector(Tuning.none()),
              nowNs::get);
      try {
        Pending pending = communicator.submit(operation);
        nowNs.set(2_000_000_000);
        assertThat(pending.isDone()).isTrue();
        return (CollectiveTimeoutException) requireNonNull(communicator.failure());
      } finally {
        communicator.close();
      }
    }
  }

  private static final class Taking extends OneOfTwo {
    Taking() {
      super(0);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return true;
    }
  }
}
