package org.comm4j.cli;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Topology;
import org.comm4j.guice.CommLifecycle;

/// What each rank of [ShowTopology] runs: rank 0 prints.
final class TopologyProgram {
  private static final int SHOWN_ID_LETTERS = 8;

  private TopologyProgram() {}

  /// Joins, and prints where the ranks are.
  ///
  /// @param arguments the format, then settings
  public static void main(String[] arguments) {
    Sentences.forUncaught();
    try (CommLifecycle lifecycle = Wiring.lifecycle(Environment.config(arguments, 1))) {
      Communicator communicator = lifecycle.communicator();
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
    switch (format) {
      case JSON -> out.println(Listing.JSON.toJson(all(communicator, topology, listing)));
      case CSV -> listing.print(format, out);
      case TABLE -> {
        listing.print(format, out);
        printRest(communicator, topology, out);
      }
    }
  }

  private static Map<String, Object> all(
      Communicator communicator, Topology topology, Listing hosts) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("backend", communicator.backend());
    all.put("ranks", communicator.size());
    all.put("homogeneous", topology.isHomogeneous());
    all.put("scheduler", topology.scheduler().orElse(null));
    all.put("libraries", new TreeMap<>(topology.libraries()));
    all.put("hosts", hosts.rows());
    all.put("reached", reached(topology));
    return all;
  }

  /// For each rank those whose devices its device reaches; empty where ranks have none.
  private static List<List<Integer>> reached(Topology topology) {
    return topology.peerAccess().stream()
        .map(row -> IntStream.range(0, row.size()).filter(row::get).boxed().toList())
        .toList();
  }

  private static void printRest(Communicator communicator, Topology topology, PrintWriter out) {
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
    List<List<Integer>> reached = reached(topology);
    for (int rank = 0; rank < reached.size(); rank++) {
      out.println("rank %d's device reaches those of ranks %s".formatted(rank, reached.get(rank)));
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
