package org.comm4j.cli;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.Topology;

/// What each rank of [ShowTopology] runs: rank 0 prints.
final class TopologyProgram {
  private static final int SHOWN_ID_LETTERS = 8;

  private TopologyProgram() {}

  /// Joins, and prints where the ranks are.
  ///
  /// @param arguments the format, then settings
  public static void main(String[] arguments) {
    Sentences.forUncaught();
    try (Communicator communicator = Communicators.open(Environment.config(arguments, 1))) {
      if (communicator.rank() == 0) {
        var format = Listing.Format.valueOf(arguments[0]);
        print(communicator, format, new PrintWriter(System.out, true, StandardCharsets.UTF_8));
      }
      communicator.barrier();
    }
  }

  private static void print(Communicator communicator, Listing.Format format, PrintWriter out) {
    Topology topology = communicator.topology();
    Listing listing = new Listing("host", "id", "leader", "ranks");
    for (Topology.Host host : topology.hosts()) {
      listing.row(host.name(), shown(host.id(), format), host.leader(), host.ranks());
    }
    listing.print(format, out);
    if (format != Listing.Format.TABLE) {
      return;
    }
    out.println();
    out.printf(
        "%d rank%s on backend %s, %s%n",
        communicator.size(),
        communicator.size() == 1 ? "" : "s",
        communicator.backend(),
        topology.isHomogeneous() ? "as many on each host" : "not as many on each host");
    topology
        .scheduler()
        .filter(scheduler -> !scheduler.equals(CommConfig.NO_LAUNCHER))
        .ifPresent(scheduler -> out.println("started by " + scheduler));
    new TreeMap<>(topology.libraries())
        .forEach((library, version) -> out.println(library + " " + version));
    for (int rank = 0; rank < topology.peerAccess().size(); rank++) {
      List<Boolean> reached = topology.peerAccess().get(rank);
      List<Integer> ranks =
          IntStream.range(0, reached.size()).filter(reached::get).boxed().toList();
      out.println("rank %d's device reaches those of ranks %s".formatted(rank, ranks));
    }
  }

  /// Enough for people to tell hosts apart, containers and users of one machine too, whose ids
  /// begin alike; programs get all of it.
  private static String shown(String id, Listing.Format format) {
    return format == Listing.Format.TABLE && id.length() > 2 * SHOWN_ID_LETTERS
        ? "%s…%08x".formatted(id.substring(0, SHOWN_ID_LETTERS), id.hashCode())
        : id;
  }
}
