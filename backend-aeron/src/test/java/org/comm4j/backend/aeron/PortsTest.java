package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.PortRange;
import org.junit.jupiter.api.Test;

/// Which UDP ports ranks take: each one of its own, also where they have one media driver, which
/// would let them share one.
class PortsTest {
  private static final InetAddress HERE = InetAddress.getLoopbackAddress();
  private static final Duration LIVENESS = Duration.ofSeconds(10);
  private static final Dimensions DIMENSIONS = Dimensions.of(OptionsTest.NONE, 2, 1408);

  private static int freePort() throws Exception {
    try (var socket = new DatagramSocket(new InetSocketAddress(HERE, 0))) {
      return socket.getLocalPort();
    }
  }

  @Test
  void reserve_portOfAnotherRankOfTheDriver_isNotTaken() throws Exception {
    int port = freePort();
    try (ExternalDriver external = ExternalDriver.start();
        Driver first = Driver.external(external.directory(), LIVENESS);
        Driver second = Driver.external(external.directory(), LIVENESS)) {
      PortRange range = new PortRange(port, port);
      assertThat(Rendezvous.reserve(first, HERE, range, 0, 2, DIMENSIONS)).isEqualTo(port);
      assertThatThrownBy(() -> Rendezvous.reserve(second, HERE, range, 1, 2, DIMENSIONS))
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContainingAll("no UDP port of 127.0.0.1 is free", range.toString())
          .hasMessageContaining("COMM_AERON_PORTS");
    }
  }

  /// Two that look at the same time would both find it free.
  @Test
  void candidates_ofRanksOfOneHost_areDifferentFirst() {
    PortRange range = new PortRange(40_000, 40_006);
    assertThat(Rendezvous.candidates(range, 0, 3))
        .containsExactly(40_000, 40_003, 40_006, 40_001, 40_002, 40_004, 40_005);
    assertThat(Rendezvous.candidates(range, 2, 3))
        .containsExactly(40_002, 40_005, 40_000, 40_001, 40_003, 40_004, 40_006);
    assertThat(Rendezvous.candidates(range, 8, 9)).hasSize(7).startsWith(40_000);
  }
}
