package org.comm4j.cli;

import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// How many hosts a launch has, and where their launchers meet.
///
/// @param nodes how many, at least 1
/// @param node this host's number; empty: it gets one
/// @param host name or address, of the node 0
/// @param port there, for the launchers
/// @param name that the user has given the launch, the same on all hosts; tells it from another one
///   that takes the same place
record Cluster(int nodes, OptionalInt node, String host, int port, Optional<String> name) {
  private static final int LAST_PORT = 65_535;
  private static final Pattern MASTER =
      Pattern.compile("(\\[[^\\]]+]|[^:\\[\\]]+)(?::(\\d{1,5}))?");
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
  static Cluster of(int nodes, OptionalInt node, String master, Optional<String> name) {
    Matcher parts = MASTER.matcher(master);
    if (parts.matches()) {
      String host = parts.group(1).replaceAll("[\\[\\]]", ""); // of IPv6
      int port = parts.group(2) == null ? USUAL_PORT : Integer.parseInt(parts.group(2));
      if (port >= 1 && port <= LAST_PORT) {
        return new Cluster(nodes, node, host, port, name);
      }
    }
    throw new IllegalArgumentException(
        "--master: '%s' (expected: HOST or HOST:PORT, of the first host, with a port from 1 to 65535)"
            .formatted(master));
  }
}
