package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Locale;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.OwnFolder;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// An interrupt would close files that Aeron maps, or has it end what it does; it is no failure of
/// the backend's, and is not lost.
class InterruptTest {
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofSeconds(60)).build();

  @AfterEach
  void forget() {
    var _ = Thread.interrupted();
  }

  @ParameterizedTest
  @EnumSource
  void open_interrupted_saysSo(Options.DriverKind kind) {
    try (ExternalDriver driver = ExternalDriver.start();
        var sessions = InMemorySessions.group(2)) {
      CommConfig config =
          kind == Options.DriverKind.EXTERNAL
              ? driver.config(CONFIG)
              : CONFIG.toBuilder()
                  .option("COMM_AERON_DRIVER", kind.name().toLowerCase(Locale.ROOT))
                  .build();
      Thread.currentThread().interrupt();
      Throwable thrown =
          catchThrowable(() -> new Rendezvous(sessions.session(0), config).open().close());
      assertThat(thrown).isInstanceOf(InterruptedCallException.class);
      assertThat(Thread.currentThread().isInterrupted()).as("left as it was").isTrue();
    }
  }

  /// Where the files of the driver are made an interrupt comes just then.
  @Test
  void open_interruptedMeanwhile_saysSo() {
    try (var sessions = InMemorySessions.group(1)) {
      var rendezvous =
          new Rendezvous(
              sessions.session(0),
              CONFIG,
              context -> {
                Thread.currentThread().interrupt();
                return context;
              },
              System::nanoTime,
              Linger.USUAL);
      Throwable thrown = catchThrowable(() -> rendezvous.open().close());
      assertThat(thrown).isInstanceOf(InterruptedCallException.class);
      assertThat(Thread.currentThread().isInterrupted()).as("left as it was").isTrue();
    }
  }

  @Test
  void offer_noWayAnyMore_saysSoAndKeepsTheInterrupt() {
    Dimensions dimensions = Dimensions.of(Options.of(CONFIG), 2, 1500);
    Driver driver =
        Driver.embedded(
            OwnFolder.root(), dimensions, 2, CONFIG.liveness(), UnaryOperator.identity());
    Peer peer;
    try (driver) {
      Route route = new Route("aeron:ipc", 1, "aeron:ipc", 2, 1408, true, "there", "here");
      peer = new Peer(driver, 1, route, Seal.none(), Seal.none(), 1, () -> false, System::nanoTime);
    }
    Thread.currentThread().interrupt();
    Throwable thrown =
        catchThrowable(() -> peer.offer(new long[Transport.HEADER_LONGS], MemorySegment.NULL));
    assertThat(thrown)
        .isInstanceOf(TransportFailedException.class)
        .hasMessageContaining("no way to rank 1");
    assertThat(Thread.currentThread().isInterrupted()).as("left as it was").isTrue();
  }
}
