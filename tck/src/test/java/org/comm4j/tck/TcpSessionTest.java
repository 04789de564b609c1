package org.comm4j.tck;

import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.AfterEach;

/// Sessions over TCP that a launcher hosts.
final class TcpSessionTest extends SessionContract {
  private final List<SessionServer> servers = new ArrayList<>();

  @AfterEach
  void closeServers() {
    servers.forEach(SessionServer::close);
  }

  @Override
  protected Group open(int size) {
    return Joining.group(configs(size));
  }

  @Override
  protected Group openWithVictim(int size, Duration liveness) {
    return Joining.groupWithProcess(configs(size).liveness(liveness));
  }

  private CommConfig.Builder configs(int size) {
    servers.forEach(SessionServer::close);
    var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            "job",
            size,
            Authenticator.of(Configs.secret(size, 1).build()),
            new SessionServer.Listener() {});
    servers.add(server);
    return Configs.secret(size, server.port());
  }
}
