package org.comm4j.tck;

import java.time.Duration;

/// Sessions over TCP that rank 0 hosts.
final class RankHostedTcpSessionTest extends SessionContract {
  @Override
  protected Group open(int size) {
    return Joining.group(Configs.tcp(size, Joining.freePort()));
  }

  @Override
  protected Group openWithVictim(int size, Duration liveness) {
    return Joining.groupWithProcess(Configs.tcp(size, Joining.freePort()).liveness(liveness));
  }
}
