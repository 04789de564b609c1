package org.comm4j.cli;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.HostAddresses;
import org.comm4j.core.session.LocalHost;
import org.jspecify.annotations.Nullable;

/// The hosts of a launch, each with a launcher that starts the ranks there.
///
/// The launchers form a session of their own, in which each has the number of its host: there they
/// say how many ranks they start, where those meet (node 0 hosts that session too), and whether one
/// has failed, upon which all end theirs. A launch on one host needs no such session.
final class Nodes implements AutoCloseable {
  private static final String LAUNCHERS = "comm-cli-run";
  private static final int MOST_NAME = 256; // characters of a session's name
  private static final Pattern MISSING =
      Pattern.compile(
          "ranks? (.*) of \\d+ did not join within (.*?) \\(joined: (.*?)\\); see what.*?(?:; refused: (.*))?$");
  private static final String RANKS = "ranks";
  private static final String ENDED = "ended";
  private static final long NOTICE_MS = 1000; // hosts that are started together meet sooner
  private static final Duration AS_LONG_AS_RANKS_RUN = Duration.ofDays(36_500);

  private final @Nullable Session launchers;
  private final @Nullable HostedSession hosted;
  private final Map<String, String> meetingPlace;
  private final int firstRank;
  private final int worldSize;
  private final CompletableFuture<String> failureElsewhere = new CompletableFuture<>();

  private Nodes(
      @Nullable Session launchers,
      @Nullable HostedSession hosted,
      Map<String, String> meetingPlace,
      int firstRank,
      int worldSize) {
    this.launchers = launchers;
    this.hosted = hosted;
    this.meetingPlace = Map.copyOf(meetingPlace);
    this.firstRank = firstRank;
    this.worldSize = worldSize;
  }

  /// This host alone.
  static Nodes alone(int ranks, CommConfig config) {
    HostedSession hosted = HostedSession.start(ranks, config);
    return new Nodes(null, hosted, hosted.place(), 0, ranks);
  }

  /// Waits for the launchers of all hosts.
  ///
  /// @param ranks how many this one starts; the others may start more or fewer
  /// @param config of all ranks
  /// @param notice gets a sentence if the others let this one wait
  static Nodes meet(Cluster cluster, int ranks, CommConfig config, Consumer<String> notice) {
    CompletableFuture<?> wait =
        new CompletableFuture<>().completeOnTimeout("", NOTICE_MS, TimeUnit.MILLISECONDS);
    var _ = wait.thenRun(() -> notice.accept(waiting(cluster, config)));
    try {
      return meet(cluster, ranks, config);
    } finally {
      wait.cancel(false);
    }
  }

  private static String waiting(Cluster cluster, CommConfig config) {
    int others = cluster.nodes() - 1;
    return "%s waits at --master %s, port %d, for the other %s, %d s at most (--join-timeout); start the same command there"
        .formatted(
            cluster.node().isPresent() ? "node " + cluster.node().getAsInt() : "this host",
            cluster.host(),
            cluster.port(),
            others == 1 ? "host" : "%d of %d hosts".formatted(others, cluster.nodes()),
            config.joinTimeout().toSeconds());
  }

  private static Nodes meet(Cluster cluster, int ranks, CommConfig config) {
    InetAddress address = address(cluster.host()); // once: later the name may mean another
    Session launchers = join(cluster, address, config);
    HostedSession hosted = null;
    try {
      int firstRank = 0;
      int worldSize = 0;
      byte[] own = ByteBuffer.allocate(Integer.BYTES).putInt(ranks).array();
      List<byte[]> all = launchers.exchange(RANKS, own, config.joinTimeout());
      for (int node = 0; node < all.size(); node++) {
        int there = ByteBuffer.wrap(all.get(node)).getInt();
        firstRank += node < launchers.rank() ? there : 0;
        worldSize += there;
      }
      Map<String, String> place;
      if (launchers.rank() == 0) {
        hosted = HostedSession.start(address, worldSize, config);
        place = hosted.place();
        launchers.put(RANKS, encode(place));
      } else {
        place = decode(launchers.get(RANKS, config.joinTimeout()));
      }
      var nodes = new Nodes(launchers, hosted, place, firstRank, worldSize);
      launchers.onNews(nodes::hear);
      nodes.hear();
      return nodes;
    } catch (RuntimeException e) {
      if (hosted != null) {
        hosted.close();
      }
      launchers.close();
      throw e;
    }
  }

  /// What launchers call where they meet. Of a long name its beginning: the ranks compare it all.
  private static String meeting(Cluster cluster) {
    String name = cluster.name().map(given -> LAUNCHERS + "/" + given).orElse(LAUNCHERS);
    return name.substring(0, Math.min(name.length(), MOST_NAME));
  }

  private static Session join(Cluster cluster, InetAddress address, CommConfig config) {
    CommConfig.Builder place =
        config.toBuilder()
            .worldSize(cluster.nodes())
            .localWorldSize(1) // the others are elsewhere
            .masterAddress(LocalHost.has(address) ? address.getHostAddress() : cluster.host())
            .masterPort(cluster.port())
            .session(meeting(cluster));
    if (cluster.node().isPresent()) {
      return joinAs(cluster.node().getAsInt(), cluster, address, place);
    }
    JoinException taken = null;
    for (int node = LocalHost.has(address) ? 0 : 1; node < cluster.nodes(); node++) {
      try {
        return join(cluster, place, node);
      } catch (JoinException e) {
        if (e.reason() != Reason.DUPLICATE_RANK) {
          throw e;
        }
        taken = e;
      }
    }
    throw new JoinException(
        Reason.DUPLICATE_RANK,
        "all %d hosts of the launch at %s port %d have come already; give another launch its own port, and start each host once"
            .formatted(cluster.nodes(), cluster.host(), cluster.port()),
        taken);
  }

  /// Joins with a number that the user has given this host, who may have given it another one too.
  private static Session joinAs(
      int node, Cluster cluster, InetAddress address, CommConfig.Builder place) {
    if (node == 0 && !LocalHost.has(address)) {
      throw new IllegalArgumentException(
          "--node-rank: 0, but --master %s is no address of this host (expected: 0 on the host that has it, another of 0..%d here)"
              .formatted(cluster.host(), cluster.nodes() - 1));
    }
    try {
      return join(cluster, place, node);
    } catch (JoinException e) {
      if (e.reason() != Reason.DUPLICATE_RANK) {
        throw e;
      }
      throw new JoinException(
          e.reason(),
          "--node-rank: %d, but another host (%s) came with it to --master %s, port %d (expected: one of 0..%d that no other host has); give each host its own, or leave --node-rank out on all, and start each once"
              .formatted(
                  node,
                  part(e, "has joined already: (.*);").orElseGet(() -> Sentences.of(e)),
                  cluster.host(),
                  cluster.port(),
                  cluster.nodes() - 1),
          e);
    }
  }

  private static Session join(Cluster cluster, CommConfig.Builder place, int node) {
    try {
      return new DefaultSessionFactory().join(place.rank(node).build(), List.of());
    } catch (JoinException e) {
      if (e.reason() == Reason.DUPLICATE_RANK) {
        throw e;
      }
      if (e.reason() == Reason.WORLD_SIZE) { // in the session's words: of ranks and their variables
        throw new JoinException(
            e.reason(),
            "--nnodes: %d, but another host at --master %s, port %d, was given another number; start the launch on all hosts with the same --nnodes, and another launch with its own port"
                .formatted(cluster.nodes(), cluster.host(), cluster.port()),
            e);
      }
      if (e.reason() == Reason.MISSING_RANKS) {
        throw new JoinException(e.reason(), missing(e, cluster), e);
      }
      Optional<String> waited = part(e, "(within [^;]*);");
      if (e.reason() == Reason.ADDRESS && waited.isEmpty()) {
        throw new JoinException(e.reason(), ofOptions(e), e); // of this host: a secret, a port
      }
      if (e.reason() == Reason.ADDRESS && node != 0) {
        throw new JoinException(
            e.reason(),
            "%s no host came with 0 to --master %s, port %d, %s; start the same command on the host that has this address, give each host its own --node-rank of 0..%d, or none of them one, or correct --master"
                .formatted(
                    cluster.node().isPresent() ? "--node-rank: %d, but".formatted(node) : "",
                    cluster.host(),
                    cluster.port(),
                    waited.orElseThrow(),
                    cluster.nodes() - 1)
                .strip(),
            e);
      }
      throw new JoinException(
          e.reason(),
          "the hosts have not met at --master (a rank is the number of a host here): "
              + ofOptions(e),
          e);
    }
  }

  /// What the session says of its variables, of which no host here has one, and of its name.
  private static String ofOptions(JoinException e) {
    return Sentences.of(e)
        .replace("another COMM_MASTER_PORT", "another port for --master")
        .replace("its own COMM_MASTER_PORT", "its own port for --master, or its own COMM_SESSION")
        .replace("COMM_MASTER_ADDR and COMM_MASTER_PORT", "--master")
        .replace("COMM_MASTER_ADDR", "--master")
        .replace("'" + LAUNCHERS + "/", "'");
  }

  /// Which hosts have not come, of what the session says of ranks.
  private static String missing(JoinException e, Cluster cluster) {
    Matcher said = MISSING.matcher(Sentences.of(e));
    if (!said.find()) {
      return Sentences.of(e);
    }
    boolean isOne = !said.group(1).contains(",");
    return "%s %s of %d %s not come to --master %s, port %d, within %s (come: %s)%s; start the same command on %s, with this --master and --nnodes, see that it is reached from there, or give the hosts longer with --join-timeout"
        .formatted(
            isOne ? "node" : "nodes",
            said.group(1),
            cluster.nodes(),
            isOne ? "has" : "have",
            cluster.host(),
            cluster.port(),
            said.group(2),
            said.group(3),
            said.group(4) == null ? "" : "; refused: " + said.group(4),
            isOne ? "that host" : "those hosts");
  }

  /// What the session says, without its words for ranks; empty where it says something else.
  private static Optional<String> part(JoinException e, String wanted) {
    Matcher found = Pattern.compile(wanted).matcher(Sentences.of(e));
    return found.find() ? Optional.of(found.group(1)) : Optional.empty();
  }

  /// The one at which this host would have the others meet, else the first that it would try.
  private static InetAddress address(String host) {
    try {
      List<InetAddress> all = List.of(InetAddress.getAllByName(host));
      return HostAddresses.reached(host, all).stream()
          .findFirst()
          .orElseThrow(() ->
              new IllegalArgumentException(
                  "--master: '%s' (expected: an address that the other hosts reach; here that name is %s alone, see /etc/hosts)"
                      .formatted(host, all.getFirst().getHostAddress())));
    } catch (UnknownHostException e) {
      throw new IllegalArgumentException(
          "--master: '%s' (expected: a host that is known here)".formatted(host), e);
    }
  }

  private static byte[] encode(Map<String, String> place) {
    StringBuilder lines = new StringBuilder();
    place.forEach((name, value) -> lines.append(name).append('=').append(value).append('\n'));
    return lines.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static Map<String, String> decode(byte[] lines) {
    Map<String, String> place = new HashMap<>();
    new String(lines, StandardCharsets.UTF_8)
        .lines()
        .forEach(line -> {
          int equals = line.indexOf('=');
          String name = equals < 0 ? line : line.substring(0, equals);
          if (!HostedSession.PLACE.contains(name)) { // the ranks' environment is nobody else's
            throw new JoinException(
                Reason.PROTOCOL, "node 0 says what is no part of a place: '%s'".formatted(name));
          }
          place.put(name, line.substring(equals + 1));
        });
    return place;
  }

  /// This host's number.
  int node() {
    return launchers == null ? 0 : launchers.rank();
  }

  /// How many hosts there are.
  int count() {
    return launchers == null ? 1 : launchers.size();
  }

  /// The first rank of this host.
  int firstRank() {
    return firstRank;
  }

  /// How many ranks all hosts start.
  int worldSize() {
    return worldSize;
  }

  /// Tells ranks where they meet.
  void addTo(Map<String, String> environment) {
    environment.putAll(meetingPlace);
    environment.put("COMM_WORLD_SIZE", Integer.toString(worldSize));
    environment.put("COMM_NODE_RANK", Integer.toString(node()));
  }

  /// What happened on another host, as soon as it is known.
  CompletableFuture<String> failureElsewhere() {
    return failureElsewhere;
  }

  private void hear() {
    Session.News news = Objects.requireNonNull(launchers).news();
    String evicted = news.evicted();
    if (evicted != null && news.failures().stream().noneMatch(Session.Failure::hosted)) {
      failureElsewhere.complete("this host is out: " + evicted);
    }
    for (Session.Abort end : news.aborts()) {
      if (end.rank() != node()) {
        endedElsewhere(end);
      }
    }
    for (Session.Failure failure : news.failures()) {
      failureElsewhere.complete(
          "node %d (%s) is gone: %s"
              .formatted(
                  failure.rank(),
                  launchers.member(failure.rank()).host().name(),
                  failure.evidence()));
    }
  }

  /// @param end of a rank on another host
  private void endedElsewhere(Session.Abort end) {
    String how = new String(end.reason(), StandardCharsets.UTF_8);
    long rank = Math.abs(end.scope()) - 1;
    if (hosted != null) {
      hosted.ended((int) rank, how);
    }
    if (end.scope() < 0) {
      failureElsewhere.complete("node %d: rank %d %s".formatted(end.rank(), rank, how));
    }
  }

  /// A rank's process has ended. The other launchers hear of it as an abort whose scope is the rank
  /// plus 1, negative if that is a failure.
  ///
  /// @param how for example `ended with exit code 1`
  /// @param failed whether the ranks of other hosts must end too
  void ended(int rank, String how, boolean failed) {
    if (hosted != null) {
      hosted.ended(rank, how);
    }
    if (launchers != null) {
      launchers.abort(failed ? -rank - 1 : rank + 1, how.getBytes(StandardCharsets.UTF_8));
    }
  }

  /// The first rank that ended without a goodbye, if one has and this host knows.
  Optional<HostedSession.Loss> loss() {
    return hosted == null ? Optional.empty() : hosted.loss();
  }

  /// Waits until the ranks of all hosts have ended.
  ///
  /// @return whether all of them are fine
  boolean finish(boolean fine) {
    if (launchers == null) {
      return fine;
    }
    try {
      return launchers
          .exchange(ENDED, new byte[] {(byte) (fine ? 1 : 0)}, AS_LONG_AS_RANKS_RUN)
          .stream()
          .allMatch(there -> there[0] == 1);
    } catch (CommException e) {
      return false;
    } finally {
      hear(); // what came before the end; whoever is called back may be late
    }
  }

  @Override
  public void close() {
    if (hosted != null) {
      hosted.close();
    }
    if (launchers != null) {
      launchers.close();
    }
  }
}
