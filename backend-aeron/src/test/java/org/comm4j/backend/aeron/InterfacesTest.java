package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Secret;
import org.junit.jupiter.api.Test;

/// On Debian and Ubuntu a host's own name means a loopback address first.
class InterfacesTest {
  private static final InetAddress OWN_NAME = InetAddress.ofLiteral("127.0.1.1");
  private static final InetAddress OTHERS = InetAddress.ofLiteral("192.0.2.1"); // nobody's
  private static final List<InetAddress> BOTH = List.of(OWN_NAME, OTHERS);

  private static InetAddress meeting(List<InetAddress> all, CommConfig.Builder config) {
    return Interfaces.meeting("alpha", all, config.rank(0).worldSize(3).build());
  }

  private static CommConfig.Builder withSecret() {
    return CommConfig.builder().secret(Secret.of("0123456789abcdef"));
  }

  @Test
  void meeting_nameMeansThisHostToo_isWhereOthersCome() {
    assertThat(meeting(BOTH, withSecret())).isEqualTo(OTHERS);
    assertThat(meeting(BOTH, withSecret().localRank(0).localWorldSize(2))).isEqualTo(OTHERS);
  }

  /// As containers do that share the network of their host.
  @Test
  void meeting_ranksCanOnlyHaveMetOverLoopback_isThere() {
    assertThat(meeting(List.of(OWN_NAME), withSecret())).isEqualTo(OWN_NAME);
    assertThat(meeting(BOTH, CommConfig.builder())).isEqualTo(OWN_NAME); // nothing is proved
  }
}
