package org.comm4j.tck.example;

import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.Transport;
import org.comm4j.core.transport.TwoLevelTransport;

/// Shared memory within hosts for a transport between them.
final class FooWithinHosts {
  private FooWithinHosts() {}

  /// @param far of all ranks, closed with what this returns, or if it fails
  static HostTransport open(
      HostTransports shared, Session session, Transport far, CommConfig config) {
    try {
      List<String> ids =
          IntStream.range(0, session.size())
              .mapToObj(rank -> session.member(rank).host().id())
              .toList();
      int[] hosts = ids.stream().mapToInt(ids::indexOf).toArray(); // by rank, the first of its host
      List<Integer> here = MembersSession.ranksOfThisHost(session);
      Session host = MembersSession.of(session, "foo/host-" + here.getFirst(), here);
      HostTransport near = shared.open(host, config, true); // collectives read its windows
      return new TwoLevelTransport(near, far, hosts);
    } catch (Throwable e) {
      far.close();
      throw e;
    }
  }
}
