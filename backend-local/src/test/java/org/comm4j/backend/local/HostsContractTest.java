package org.comm4j.backend.local;

import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.transport.TwoLevelTransport;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// The engine keeps the contract where ranks share memory with some and send messages to others.
class HostsContractTest extends CommunicatorContract {
  private static final long WINDOW_BYTES = 256 << 20;

  /// What goes by hosts, and what is shared within them.
  @Override
  protected String wanted() {
    return ".*(anyArguments|leftFolds|[FGLS]\\d).*";
  }

  @Override
  protected List<Integer> otherSizes() {
    return List.of(5);
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return group(size, config);
  }

  static LocalGroup group(int size, CommConfig config) {
    List<TwoLevelTransport> transports = TwoLevelTransportTest.group(size, WINDOW_BYTES);
    return ThreadGroups.open(
        size,
        rank -> {
          int host = TwoLevelTransportTest.host(rank);
          return new HostIdentity("h" + host, "id" + host);
        },
        session -> {
          TwoLevelTransport transport = transports.get(session.rank());
          return EngineCommunicator.open("hosts", session, transport, transport, config);
        });
  }
}
