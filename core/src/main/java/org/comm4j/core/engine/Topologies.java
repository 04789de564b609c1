package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.Topology;
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
    Map<String, List<Integer>> byHost = new LinkedHashMap<>(); // by id; names may differ on a host
    for (int rank = 0; rank < members.length; rank++) {
      String id = session.member(members[rank]).host().id();
      byHost.computeIfAbsent(id, _ -> new ArrayList<>()).add(rank);
    }
    List<Topology.Host> hosts =
        byHost.entrySet().stream()
            .map(host -> {
              int first = members[host.getValue().getFirst()];
              String name = session.member(first).host().name();
              return new Topology.Host(name, host.getKey(), host.getValue());
            })
            .toList();
    return new Topology(
        hosts, launcher.isEmpty() ? Optional.empty() : Optional.of(launcher), libraries, List.of());
  }
}
