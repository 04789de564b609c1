package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Locale;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.PortRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Which UDP ports ranks take: each one of its own, also where they have one media driver, which
/// would let them share one.
class PortsTest {
  private static final InetAddress HERE = InetAddress.getLoopbackAddress();
  private static final Duration LIVENESS = Duration.ofSeconds(10);
  private static final Dimensions DIMENSIONS = Dimensions.of(OptionsTest.NONE, 2, 1408);

  /// On Linux, where all of 127.0.0.0/8 is this host's, at an address that nobody else uses: of the
  /// usual one a port that was free a moment ago is soon somebody's.
  private static InetAddress ownAddress() throws Exception {
    long process = ProcessHandle.current().pid();
    return OS.LINUX.isCurrentOs()
        ? InetAddress.getByAddress(new byte[] {127, (byte) (process >> 8), (byte) process, 4})
        : HERE;
  }

  private static int freePort(InetAddress address) throws Exception {
    try (var socket = new DatagramSocket(new InetSocketAddress(address, 0))) {
      return socket.getLocalPort();
    }
  }

  @Test
  void reserve_portOfAnotherRankOfTheDriver_isNotTaken() throws Exception {
    InetAddress here = ownAddress();
    int port = freePort(here);
    try (ExternalDriver external = ExternalDriver.start();
        Driver first = Driver.external(external.directory(), LIVENESS);
        Driver second = Driver.external(external.directory(), LIVENESS)) {
      PortRange range = new PortRange(port, port);
      assertThat(Rendezvous.reserve(first, here, range, 0, 2, DIMENSIONS)).isEqualTo(port);
      assertThatThrownBy(() -> Rendezvous.reserve(second, here, range, 1, 2, DIMENSIONS))
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContainingAll(
              "no UDP port of %s is free".formatted(here.getHostAddress()), range.toString())
          .hasMessageContaining("COMM_AERON_PORTS");
    }
  }

  /// Aeron reads no others.
  @ParameterizedTest
  @ValueSource(strings = {"fa", "ar-EG", "bn", "mr"})
  void reserve_localeHasDigitsOfItsOwn_takesAPort(String locale) throws Exception {
    Locale before = Locale.getDefault();
    Locale.setDefault(Locale.forLanguageTag(locale));
    try (ExternalDriver external = ExternalDriver.start();
        Driver driver = Driver.external(external.directory(), LIVENESS)) {
      assertThat(Rendezvous.reserve(driver, HERE, PortRange.ANY, 0, 1, DIMENSIONS)).isPositive();
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void reserve_driverCantDoIt_saysWhyFirst() throws Exception {
    InetAddress here = ownAddress();
    var windowAboveTheBuffer = new Dimensions(1408, 1 << 16, 1 << 30, 1 << 16);
    try (ExternalDriver external = ExternalDriver.start();
        Driver driver = Driver.external(external.directory(), LIVENESS)) {
      assertThatThrownBy(
              () -> Rendezvous.reserve(driver, here, PortRange.ANY, 0, 1, windowAboveTheBuffer))
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining(
              "the media driver can't receive on %s: ".formatted(here.getHostAddress()))
          .hasMessageContaining("if it is that somebody had its port")
          .hasMessageNotContaining("is free");
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
