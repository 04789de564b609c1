package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.OwnFolder;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;

/// When a rank says that another one is silent, by a clock of the test's.
class PeerTest {
  private static final Duration LIVENESS = Duration.ofSeconds(10);
  private static final long PATIENCE_NS = DriverSettings.peersNs(LIVENESS);
  private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(100);

  private final AtomicLong clock = new AtomicLong();

  /// What was offered to nobody an hour ago says nothing of the hour.
  @Test
  void offer_refusedAgainAfterLong_failsOnlyOncePatienceHasPassed() throws Exception {
    Dimensions dimensions = Dimensions.of(OptionsTest.of(Map.of()), 2, 1500);
    try (var mute = new DatagramSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        Driver driver =
            Driver.embedded(OwnFolder.root(), dimensions, 2, LIVENESS, UnaryOperator.identity())) {
      Peer peer = peer(driver, mute.getLocalPort());
      offerUntilItFails(peer, driver);
      clock.addAndGet(TimeUnit.HOURS.toNanos(1));
      long startNs = clock.get();
      offerUntilItFails(peer, driver);
      assertThat(clock.get() - startNs).isBetween(PATIENCE_NS, PATIENCE_NS + 2 * TICK_NS);
    }
  }

  private Peer peer(Driver driver, int port) {
    String out = "aeron:udp?endpoint=127.0.0.1:" + port;
    Route route = new Route(out, 1, "aeron:udp?endpoint=127.0.0.1:0", 2, 1408, false, out, "here");
    return new Peer(
        driver, 1, route, Seal.none(), Seal.none(), PATIENCE_NS, () -> false, clock::get);
  }

  private void offerUntilItFails(Peer to, Driver driver) {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    assertThatThrownBy(
            () -> {
              while (System.nanoTime() - endNs < 0) {
                assertThat(to.offer(new long[Transport.HEADER_LONGS], MemorySegment.NULL))
                    .isFalse();
                var _ = driver.work();
                clock.addAndGet(TICK_NS);
              }
            })
        .isInstanceOf(TransportFailedException.class)
        .hasMessageContaining("has not answered");
  }
}
