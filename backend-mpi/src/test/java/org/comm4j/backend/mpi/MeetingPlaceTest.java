package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.comm4j.api.JoinException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class MeetingPlaceTest {
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();
  private static final byte[] TOKEN = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] OTHER = "fedcba9876543210".getBytes(StandardCharsets.US_ASCII);

  @Test
  void seen_itsOwnBeacons_haveTheirBits() {
    try (Beacon beacon = Beacon.light(TOKEN, 0, List.of(LOOPBACK, LOOPBACK, LOOPBACK))) {
      assertThat(beacon.places()).hasSize(3).doesNotHaveDuplicates();
      assertThat(Beacon.seen(beacon.places(), TOKEN)).isEqualTo(0b111);
    }
  }

  /// A network of the same name on another host, a closed port, and one who is silent.
  @Test
  void seen_others_haveNone() throws Exception {
    try (Beacon right = Beacon.light(TOKEN, 0, List.of(LOOPBACK));
        Beacon wrong = Beacon.light(OTHER, 0, List.of(LOOPBACK));
        ServerSocket mute = new ServerSocket(0, 16, LOOPBACK)) {
      InetSocketAddress closed;
      try (Beacon gone = Beacon.light(TOKEN, 0, List.of(LOOPBACK))) {
        closed = gone.places().getFirst();
      }
      List<InetSocketAddress> places =
          List.of(
              wrong.places().getFirst(),
              closed,
              right.places().getFirst(),
              new InetSocketAddress(LOOPBACK, mute.getLocalPort()));
      assertThat(Beacon.seen(places, TOKEN)).isEqualTo(0b100);
    }
  }

  /// Its port is the session's next.
  @Test
  void close_whoComesThen_findsNobody() {
    for (int round = 0; round < 200; round++) {
      Beacon beacon = Beacon.light(TOKEN, 0, List.of(LOOPBACK));
      beacon.close();
      assertThat(Beacon.seen(beacon.places(), TOKEN)).as("round %d", round).isZero();
    }
  }

  @Test
  void places_otherHostsReadThem_withoutTheInterfacesOfThisOne() throws Exception {
    byte[] bytes = InetAddress.getByName("fd00::7").getAddress();
    InetAddress here = Inet6Address.getByAddress("", bytes, 4711);
    assertThat(here.getHostAddress()).endsWith("%4711");
    var places = List.of(new InetSocketAddress(here, 80), new InetSocketAddress(LOOPBACK, 65_535));
    assertThat(MeetingPlace.decode(MeetingPlace.encode(places)))
        .containsExactly(new InetSocketAddress("fd00::7", 80), places.get(1));
    assertThat(MeetingPlace.decode(MeetingPlace.encode(List.of()))).isEmpty();
  }

  /// They would wait for each other in different calls.
  @Test
  void checkAlike_someHaveWhatOthersLack_namesIt() {
    byte[] none = {0, 0};
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> MeetingPlace.checkAlike(List.of(none, none, new byte[] {1, 0})))
        .withMessageContaining("COMM_SECRET_FILE or COMM_SECRET is set on rank 2 but not on rank 0")
        .satisfies(e -> assertThat(e.reason()).isEqualTo(JoinException.Reason.CONFIGURATION));
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> MeetingPlace.checkAlike(List.of(new byte[] {0, 1}, none)))
        .withMessageContaining("COMM_MASTER_ADDR is set on rank 0 but not on rank 1");
    MeetingPlace.checkAlike(List.of(none, none));
  }

  @Test
  void unreached_namesWhoReachesWhat() throws Exception {
    List<InetSocketAddress> places =
        List.of(
            new InetSocketAddress(InetAddress.getByName("10.0.0.1"), 1000),
            new InetSocketAddress(InetAddress.getByName("192.168.0.1"), 2000));
    JoinException failure = MeetingPlace.unreached(places, 0, List.of(-1L, -1L, 0b10L, 0L));
    assertThat(failure.reason()).isEqualTo(JoinException.Reason.ADDRESS);
    assertThat(failure)
        .hasMessageContaining("no address of rank 0's (10.0.0.1, 192.168.0.1)")
        .hasMessageContaining("rank 2 reaches [192.168.0.1]; rank 3 reaches none")
        .hasMessageContaining("set COMM_MASTER_ADDR and COMM_MASTER_PORT");
    assertThat(MeetingPlace.unreached(List.of(), 2000, List.of(-1L, 0L)))
        .hasMessageContaining("it has none but loopback's where COMM_MASTER_PORT, 2000, is free");
  }

  /// A firewall may let nothing else pass.
  @Test
  void light_portIsGiven_isThereOrNowhere() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 16, LOOPBACK)) {
      int port = taken.getLocalPort();
      InetAddress other = InetAddress.getByName("127.0.0.2");
      try (Beacon beacon = Beacon.light(TOKEN, port, List.of(LOOPBACK, other))) {
        assertThat(beacon.places()).containsExactly(new InetSocketAddress(other, port));
      }
    }
  }
}
