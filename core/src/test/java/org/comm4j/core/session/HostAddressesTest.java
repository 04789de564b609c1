package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Secret;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.Test;

class HostAddressesTest {
  private static final InetAddress OWN_NAME = InetAddress.ofLiteral("127.0.1.1");
  private static final InetAddress OTHERS = InetAddress.ofLiteral("192.0.2.1"); // nobody's
  private static final List<InetAddress> BOTH = List.of(OWN_NAME, OTHERS);

  private static List<InetAddress> toMeet(String host, CommConfig.Builder config) {
    CommConfig whole = config.rank(0).worldSize(3).build();
    return HostAddresses.toMeet(host, BOTH, whole, Authenticator.of(whole));
  }

  private static CommConfig.Builder withSecret() {
    return CommConfig.builder().secret(Secret.of("0123456789abcdef"));
  }

  @Test
  void reached_ofAName_isNoLoopback() {
    assertThat(HostAddresses.reached("alpha", BOTH)).containsExactly(OTHERS);
    assertThat(HostAddresses.reached("alpha", List.of(OWN_NAME))).isEmpty();
    assertThat(HostAddresses.reached("localhost", BOTH)).containsExactly(OWN_NAME, OTHERS);
    assertThat(HostAddresses.reached("127.0.1.1", List.of(OWN_NAME))).containsExactly(OWN_NAME);
  }

  /// At which rank 0 listens.
  @Test
  void reached_ofThisHostsOwn_isFirst() {
    assertThat(HostAddresses.reached("localhost", List.of(OTHERS, OWN_NAME)))
        .containsExactly(OWN_NAME, OTHERS);
  }

  @Test
  void toMeet_ranksOfOneHost_stayThere() {
    var config = withSecret().localRank(0).localWorldSize(3);
    assertThat(toMeet("alpha", config)).containsExactly(OWN_NAME, OTHERS);
  }

  @Test
  void toMeet_ranksOfSeveralHosts_goWhereAllCome() {
    var config = withSecret().localRank(0).localWorldSize(2);
    assertThat(toMeet("alpha", config)).containsExactly(OTHERS);
  }

  /// Without a secret nobody else could join.
  @Test
  void toMeet_hostsAreNotKnown_isWhereItMay() {
    assertThat(toMeet("alpha", withSecret())).containsExactly(OTHERS, OWN_NAME);
    assertThat(toMeet("alpha", CommConfig.builder())).containsExactly(OWN_NAME);
  }

  @Test
  void ownIn_rankHostsTheSession_isWhereItListens() {
    InetAddress here = InetAddress.getLoopbackAddress();
    try (var server =
            SessionServer.startFor(
                request(0), here, 0, Authenticator.NONE, System::nanoTime, _ -> {});
        Session rank = connected(new InetSocketAddress(here, server.port()))) {
      assertThat(HostAddresses.ownIn(rank)).contains(here);
      assertThat(HostAddresses.ownIn(server.localJoin().join())).contains(here);
    }
  }

  @Test
  void ownIn_sessionWithoutConnections_isNone() {
    try (Session alone = InMemorySessions.alone(List.of())) {
      assertThat(HostAddresses.ownIn(alone)).isEmpty();
    }
  }

  private static Session connected(InetSocketAddress place) {
    return TcpSession.start(
            Places.of(place),
            request(1),
            Authenticator.NONE,
            TimeUnit.SECONDS.toNanos(5),
            true,
            System::nanoTime,
            _ -> {})
        .joined()
        .orTimeout(20, TimeUnit.SECONDS)
        .join();
  }

  private static JoinRequest request(int rank) {
    var member =
        new Member(rank, LocalHost.identity(), ProcessHandle.current().pid(), Set.of(), List.of());
    return new JoinRequest("1", "job", 0, member, 2, 20_000, 10_000, "");
  }
}
