package org.comm4j.cli;

import java.net.BindException;
import java.net.InetAddress;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.Secret;
import org.comm4j.api.spi.Session.Member;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.PortRange;
import org.comm4j.core.session.SessionServer;

/// The session of ranks that are processes. `comm-cli` hosts it, so that no rank is special.
final class HostedSession implements AutoCloseable {
  /// A rank that ended without a goodbye.
  ///
  /// @param leftBefore which had said goodbye by then
  record Loss(int rank, List<Integer> leftBefore) {
    Loss {
      leftBefore = List.copyOf(leftBefore);
    }
  }

  /// The variables that tell ranks of any host where they meet.
  static final Set<String> PLACE =
      Set.of("COMM_MASTER_ADDR", "COMM_MASTER_PORT", "COMM_SESSION", DefaultSessionFactory.HOSTED);

  /// The option that says from which ports the one is taken where ranks meet, as `40000-40009`.
  static final String PORTS = "COMM_SESSION_PORTS";

  private final Optional<String> secret;
  private final String name;
  private final String job;
  private final SessionServer server;
  private final CompletableFuture<Loss> firstLoss = new CompletableFuture<>();
  private volatile List<ProcessHandle> members = List.of();

  /// @param secret that was made for these ranks and reaches them in their environment
  private HostedSession(
      InetAddress address, int ranks, CommConfig config, Optional<String> secret) {
    this.secret = secret;
    this.name = address.getHostAddress();
    byte[] random = new byte[8];
    ThreadLocalRandom.current().nextBytes(random);
    job = "run-" + HexFormat.of().formatHex(random);
    Authenticator authenticator =
        Authenticator.of(
            secret.map(made -> config.toBuilder().secret(Secret.of(made)).build()).orElse(config));
    server = start(address, ranks, authenticator, ports(config));
  }

  /// @throws IllegalArgumentException if they are no range
  static void checkPorts(CommConfig config) {
    ports(config);
  }

  private static PortRange ports(CommConfig config) {
    String range = config.options().get(PORTS);
    return range == null ? PortRange.ANY : PortRange.of(PORTS, range);
  }

  private SessionServer start(
      InetAddress address, int ranks, Authenticator authenticator, PortRange ports) {
    BindException last = null;
    for (int port : ports.ports()) {
      try {
        return SessionServer.start(address, port, job, ranks, authenticator, new Watch());
      } catch (JoinException e) {
        if (ports.isAny() || !(e.getCause() instanceof BindException cause)) {
          throw e;
        }
        last = cause;
      }
    }
    throw new JoinException(
        Reason.ADDRESS,
        "no port of %s is free at %s; give another range with %s (of the last one: %s)"
            .formatted(
                ports, address.getHostAddress(), PORTS, last == null ? "" : last.getMessage()),
        last);
  }

  /// What becomes of the ranks.
  private final class Watch implements SessionServer.Listener {
    private final List<Integer> left = new ArrayList<>();

    @Override
    public void formed(String sessionId, List<Member> all) {
      members = all.stream().flatMap(each -> ProcessHandle.of(each.pid()).stream()).toList();
    }

    @Override
    public void failed(int rank, String evidence) {
      firstLoss.complete(new Loss(rank, left));
    }

    @Override
    public void left(int rank) {
      left.add(rank);
    }
  }

  /// For ranks of this host. Where the user gives them no secret they get one, as every user of the
  /// host reaches the place where they meet.
  ///
  /// @param config of all ranks
  static HostedSession start(int ranks, CommConfig config) {
    boolean isGiven = config.secret().isPresent() || config.secretFile().isPresent();
    byte[] random = new byte[32];
    new SecureRandom().nextBytes(random);
    return new HostedSession(
        InetAddress.getLoopbackAddress(),
        ranks,
        config,
        isGiven ? Optional.empty() : Optional.of(HexFormat.of().formatHex(random)));
  }

  /// @param address where it listens, which other hosts may reach
  static HostedSession start(InetAddress address, int ranks, CommConfig config) {
    return new HostedSession(address, ranks, config, Optional.empty());
  }

  /// Where the ranks meet, by the variables that tell them.
  Map<String, String> place() {
    Map<String, String> place = new TreeMap<>();
    place.put("COMM_MASTER_ADDR", name);
    place.put("COMM_MASTER_PORT", Integer.toString(server.port()));
    place.put("COMM_SESSION", job);
    place.put(DefaultSessionFactory.HOSTED, "launcher");
    secret.ifPresent(made -> place.put("COMM_SECRET", made));
    return place;
  }

  /// Tells the others that a rank's process has ended.
  ///
  /// @param how for example `ended with exit code 1`
  void ended(int rank, String how) {
    server.ended(rank, how);
  }

  /// The first rank that ended without a goodbye, as soon as one has: the others fail because of
  /// it, whatever its own exit code is.
  CompletableFuture<Loss> firstLoss() {
    return firstLoss;
  }

  /// The same, if one has.
  Optional<Loss> loss() {
    return firstLoss.isDone() ? Optional.of(firstLoss.join()) : Optional.empty();
  }

  /// The processes that formed the group last; none before all have joined.
  List<ProcessHandle> members() {
    return members;
  }

  @Override
  public void close() {
    server.close();
  }
}
