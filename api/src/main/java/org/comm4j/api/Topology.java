package org.comm4j.api;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Where the ranks of a communicator are.
///
/// @param hosts every host with its ranks, in the order of the lowest rank
/// @param scheduler the launcher or batch system that started the ranks, if known
/// @param libraries versions of what the backend runs on, by name
/// @param peerAccess for devices: `peerAccess[a][b]` tells whether rank a's device reaches rank b's
///   directly; empty where ranks have no devices
public record Topology(
    List<Host> hosts,
    Optional<String> scheduler,
    Map<String, String> libraries,
    List<List<Boolean>> peerAccess) {

  /// One host.
  ///
  /// @param name its host name, as its lowest rank calls it; for people, not unique
  /// @param id what tells hosts apart: ranks with equal ids share memory
  /// @param ranks who runs there, ascending
  public record Host(String name, String id, List<Integer> ranks) {
    /// Copies the collections.
    public Host {
      ranks = List.copyOf(ranks);
    }

    /// {@return the lowest rank of the host}
    public int leader() {
      return ranks.getFirst();
    }
  }

  /// Copies the collections.
  public Topology {
    hosts = List.copyOf(hosts);
    libraries = Map.copyOf(libraries);
    peerAccess = peerAccess.stream().map(List::copyOf).toList();
  }

  /// {@return whether every host has the same number of ranks}
  public boolean isHomogeneous() {
    return hosts.stream().map(host -> host.ranks().size()).distinct().count() <= 1;
  }

  /// {@return the host a rank runs on}
  ///
  /// @param rank a rank of the communicator
  /// @throws IllegalArgumentException if no host has that rank
  public Host hostOf(int rank) {
    return hosts.stream()
        .filter(host -> host.ranks().contains(rank))
        .findFirst()
        .orElseThrow(() ->
            new IllegalArgumentException("rank: " + rank + " (expected: a rank of " + hosts + ")"));
  }
}
