package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.Topology;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session;

/// Where the ranks of a communicator are, from what they said when they joined.
public final class Topologies {
  private Topologies() {}

  /// {@return the hosts of some ranks of a session}
  ///
  /// @param members world ranks, by the communicator's
  /// @param launcher who started them, or empty
  /// @param libraries versions of what the backend runs on, by name
  public static Topology of(
      Session session, int[] members, String launcher, Map<String, String> libraries) {
    Map<HostIdentity, List<Integer>> byHost = new LinkedHashMap<>();
    for (int rank = 0; rank < members.length; rank++) {
      HostIdentity host = session.member(members[rank]).host();
      byHost.computeIfAbsent(host, _ -> new ArrayList<>()).add(rank);
    }
    List<Topology.Host> hosts =
        byHost.entrySet().stream()
            .map(host ->
                new Topology.Host(host.getKey().name(), host.getKey().id(), host.getValue()))
            .toList();
    return new Topology(
        hosts, launcher.isEmpty() ? Optional.empty() : Optional.of(launcher), libraries, List.of());
  }
}
