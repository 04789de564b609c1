package org.comm4j.cli;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.OptionalInt;

/// How many hosts a launch has, and where their launchers meet.
///
/// @param nodes how many, at least 1
/// @param node this host's number; empty: it gets one
/// @param host name or address, of the node 0
/// @param port there, for the launchers
record Cluster(int nodes, OptionalInt node, String host, int port) {
  private static final int USUAL_PORT = 29_500; // torchrun's too

  Cluster {
    if (nodes < 1) {
      throw new IllegalArgumentException(
          "--nnodes: " + nodes + " (expected: 1 or more hosts, this one among them)");
    }
    if (node.isPresent() && (node.getAsInt() < 0 || node.getAsInt() >= nodes)) {
      throw new IllegalArgumentException(
          "--node-rank: %d (expected: 0..%d, as --nnodes is %d)"
              .formatted(node.getAsInt(), nodes - 1, nodes));
    }
  }

  /// @param master `HOST` or `HOST:PORT`
  static Cluster of(int nodes, OptionalInt node, String master) {
    try {
      URI place = new URI("comm4j://" + master);
      if (place.getHost() != null
          && ("comm4j://" + place.getAuthority()).equals(place.toString())) {
        String host = place.getHost().replaceAll("[\\[\\]]", ""); // of IPv6
        return new Cluster(nodes, node, host, place.getPort() < 0 ? USUAL_PORT : place.getPort());
      }
    } catch (URISyntaxException e) {
      // as without a host
    }
    throw new IllegalArgumentException(
        "--master: '%s' (expected: HOST or HOST:PORT, of the first host)".formatted(master));
  }
}
