package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.junit.jupiter.api.Test;

class HostedSessionTest {
  private static CommConfig ports(String range) {
    return CommConfig.fromEnvironment(Map.of(HostedSession.PORTS, range));
  }

  private static ServerSocket taken() throws IOException {
    return new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
  }

  @Test
  void start_range_takesAFreePortOfIt() throws Exception {
    try (ServerSocket taken = taken()) {
      int first = Math.min(taken.getLocalPort(), 65_000);
      int last = first + 100;
      try (HostedSession session = HostedSession.start(2, ports(first + "-" + last))) {
        assertThat(Integer.parseInt(session.place().get("COMM_MASTER_PORT")))
            .isBetween(first, last)
            .isNotEqualTo(taken.getLocalPort());
      }
    }
  }

  @Test
  void start_allTaken_saysWhichAndWhatToDo() throws Exception {
    try (ServerSocket taken = taken()) {
      String range = "%1$d-%1$d".formatted(taken.getLocalPort());
      assertThatThrownBy(() -> HostedSession.start(2, ports(range)))
          .isInstanceOf(JoinException.class)
          .hasMessageContainingAll("no port of " + range + " is free", "COMM_SESSION_PORTS")
          .hasMessageNotContaining("COMM_MASTER_PORT"); // which comm-cli run takes from nobody
    }
  }

  @Test
  void start_noRange_isRefused() {
    assertThatThrownBy(() -> HostedSession.start(2, ports("40000")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("COMM_SESSION_PORTS", "'40000'", "40000-40099");
  }
}
