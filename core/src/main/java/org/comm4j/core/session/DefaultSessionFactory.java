package org.comm4j.core.session;

import java.net.BindException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.comm4j.api.CommConfig;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.SessionFactory;

/// Joins the session that the configuration names. Where ranks meet:
///
/// | configuration | meeting place |
/// |---|---|
/// | `COMM_MASTER_ADDR` and `COMM_MASTER_PORT` | there, over TCP |
/// | `COMM_SESSION` alone, all ranks on this host | a file in `COMM_SESSION_DIR`, or in `/dev/shm/comm4j-<uid>` |
/// | none of them, one rank | nowhere |
///
/// Over TCP a launcher that hosts the session listens before it starts the ranks, and says so with
/// the option [#HOSTED]`=launcher`: then all ranks connect. Without it rank 0 listens; if it finds
/// the port taken it joins what listens there, if that is a session (a launcher that has not said
/// so), fails at once if it is not, and tries again while nobody listens there. The others may
/// start before the host does. Any rank may come before the name of the place is known: as long as
/// it waits for others it asks again. Of a name's addresses rank 0 listens at one that it has and
/// that others reach ([HostAddresses]); the others try all.
///
/// A process may join, close and join again; it counts how often it has met others at a host, and
/// only ranks with the same count form a group.
///
/// Thread-safe.
public final class DefaultSessionFactory implements SessionFactory {
  /// The option by which a launcher says that it hosts the session: `launcher`.
  public static final String HOSTED = "COMM_SESSION_HOSTED";

  /// The option that names the directory for sessions over files.
  public static final String DIRECTORY = "COMM_SESSION_DIR";

  /// Below it a port that is not taken may be forbidden to users.
  private static final int FIRST_PORT_OF_ALL = 1024;

  private static final long HELLO_NS = TimeUnit.SECONDS.toNanos(5);

  /// How long a rank tries at least, whose patience the name service has used up.
  private static final long LEAST_PATIENCE_NS = HELLO_NS;

  /// How long a stranger on our port may keep silent before it is one.
  private static final long STRANGER_NS = TimeUnit.MILLISECONDS.toNanos(800);

  /// Between two tries to listen where the port is taken but nobody listens.
  private static final long LISTEN_AGAIN_NS = TimeUnit.MILLISECONDS.toNanos(20);

  /// What no host is called: nobody will know it later.
  private static final Pattern NUMERIC = Pattern.compile("[0-9.]+|.*:.*");

  private final Names names;
  private final LongSupplier nanoTime;

  /// Knows the addresses of hosts.
  interface Names {
    List<InetAddress> addresses(String host) throws UnknownHostException;
  }

  /// For [java.util.ServiceLoader].
  public DefaultSessionFactory() {
    this(host -> List.of(InetAddress.getAllByName(host)), System::nanoTime);
  }

  DefaultSessionFactory(Names names, LongSupplier nanoTime) {
    this.names = names;
    this.nanoTime = nanoTime;
  }

  @Override
  public Session join(CommConfig config, List<String> usableBackends) {
    if (config.rank().isEmpty() || config.worldSize().isEmpty()) {
      throw new JoinException(
          Reason.CONFIGURATION,
          "neither rank nor world size are known; start the ranks with comm-cli run, or set COMM_RANK"
              + " and COMM_WORLD_SIZE");
    }
    String address = config.masterAddress().orElse("");
    if (!address.isEmpty()) {
      return joinOverTcp(config, address, usableBackends);
    }
    if (config.worldSize().getAsInt() == 1) {
      return InMemorySessions.alone(usableBackends);
    }
    if (config.session().isPresent()) {
      return joinOverFile(config, usableBackends);
    }
    throw noPlace(config.worldSize().getAsInt());
  }

  private static JoinException noPlace(int size) {
    return new JoinException(
        Reason.ADDRESS,
        "no place for %d ranks to meet; set COMM_MASTER_ADDR and COMM_MASTER_PORT, or, with all ranks"
                .formatted(size)
            + " on one host, COMM_SESSION");
  }

  /// {@return where the ranks of a launch meet, as a part of a sentence} For listings: reads the
  /// secret and asks for the name once, but reaches nobody.
  ///
  /// @param config of one of several ranks
  /// @throws JoinException if they can't, as far as that tells
  public static String outlook(CommConfig config) {
    String address = config.masterAddress().orElse("");
    if (address.isEmpty()) {
      int size = config.worldSize().orElse(1);
      String name = config.session().orElseThrow(() -> noPlace(size));
      checkAreHere(config, size);
      FileSession.checkCanBeIn(directory(config));
      return "in a file of this host, by the name '%s'".formatted(name);
    }
    String place = "at %s:%d".formatted(address, config.masterPort().orElseThrow());
    Authenticator authenticator = Authenticator.of(config);
    try {
      List<InetAddress> all = List.of(InetAddress.getAllByName(address));
      authenticator.checkPermits(
          HostAddresses.toMeet(address, all, config, authenticator).getFirst());
      return place;
    } catch (UnknownHostException e) {
      if (NUMERIC.matcher(address).matches()) {
        throw noAddress(address, e);
      }
      return place + ", a name that is not known here now";
    }
  }

  private Session joinOverTcp(CommConfig config, String address, List<String> usableBackends) {
    Authenticator authenticator = Authenticator.of(config);
    int port = config.masterPort().orElseThrow(); // there with an address
    JoinRequest request = request(config, usableBackends);
    long start = nanoTime.getAsLong();
    UnaryOperator<List<InetAddress>> choice =
        all -> HostAddresses.toMeet(address, all, config, authenticator);
    List<InetAddress> places = choice.apply(lookUp(address, request.patienceMillis()));
    long patienceNs = TimeUnit.MILLISECONDS.toNanos(request.patienceMillis());
    long leftNs = patienceNs - (nanoTime.getAsLong() - start);
    JoinRequest inTime =
        request.forHost(
            request.generation(), Math.max(leftNs, Math.min(patienceNs, LEAST_PATIENCE_NS)));
    if (request.rank() == 0 && !"launcher".equals(config.options().get(HOSTED))) {
      var place = new InetSocketAddress(places.getFirst(), port);
      return joinAsHost(inTime, place, warning(config, address, place), authenticator);
    }
    return connect(
        inTime,
        new Places(port, places, () -> permitted(address, choice, authenticator), nanoTime),
        authenticator,
        HELLO_NS,
        true);
  }

  /// Asks until the name is known: in Kubernetes a pod's is some time after the pod has started,
  /// and rank 0 too asks for its own.
  private List<InetAddress> lookUp(String address, long patienceMillis) {
    long start = nanoTime.getAsLong();
    long deadline = start + TimeUnit.MILLISECONDS.toNanos(patienceMillis);
    long backOffNs = TcpSession.FIRST_BACK_OFF_NS;
    while (true) {
      UnknownHostException unknown;
      try {
        return names.addresses(address);
      } catch (UnknownHostException e) {
        unknown = e;
      }
      if (NUMERIC.matcher(address).matches()) {
        throw noAddress(address, unknown);
      }
      long now = nanoTime.getAsLong();
      if (now - deadline >= 0) {
        throw new JoinException(
            Reason.ADDRESS,
            "COMM_MASTER_ADDR is %s, an unknown host, also after %s; correct it, or see why this host does not know the name"
                .formatted(address, ReplicatedSession.seconds(now - start)),
            unknown);
      }
      pause(Math.min(backOffNs, deadline - now));
      backOffNs = Math.min(TcpSession.MAX_BACK_OFF_NS, 2 * backOffNs);
    }
  }

  private static JoinException noAddress(String address, UnknownHostException unknown) {
    return new JoinException(
        Reason.ADDRESS,
        "COMM_MASTER_ADDR is %s, which is no address here (%s); correct it"
            .formatted(address, unknown.getMessage()),
        unknown);
  }

  /// What the name means later, which is held against the secret as what it meant at first.
  private List<InetAddress> permitted(
      String address, UnaryOperator<List<InetAddress>> choice, Authenticator authenticator)
      throws UnknownHostException {
    List<InetAddress> places = choice.apply(names.addresses(address));
    authenticator.check(places.getFirst()); // if it is not permitted, none is
    return places;
  }

  private static void pause(long pauseNs) {
    try {
      TimeUnit.NANOSECONDS.sleep(pauseNs);
    } catch (InterruptedException e) {
      throw interrupted();
    }
  }

  /// What to say of the place where rank 0 listens if others do not come.
  private static String warning(CommConfig config, String address, InetSocketAddress place) {
    int worldSize = config.worldSize().orElseThrow();
    boolean areAllHere = config.localWorldSize().orElse(0) == worldSize;
    return areAllHere || !HostAddresses.isOfThisHostAlone(address, place.getAddress())
        ? ""
        : "; COMM_MASTER_ADDR is %s, which means %s here: no other host reaches that"
            .formatted(address, place.getAddress().getHostAddress());
  }

  private Session joinAsHost(
      JoinRequest request, InetSocketAddress place, String warning, Authenticator authenticator) {
    long deadline = nanoTime.getAsLong() + TimeUnit.MILLISECONDS.toNanos(request.patienceMillis());
    while (true) {
      JoinException taken;
      long leftNs = Math.max(deadline - nanoTime.getAsLong(), LISTEN_AGAIN_NS);
      JoinRequest inTime = request.forHost(request.generation(), leftNs);
      try {
        return host(inTime, place, authenticator);
      } catch (JoinException e) {
        if (e.reason() == Reason.MISSING_RANKS && !warning.isEmpty()) {
          throw new JoinException(e.reason(), e.getMessage() + warning);
        }
        if (!isTaken(e, place)) {
          throw e;
        }
        taken = e;
      }
      try {
        return connect(inTime, Places.of(place), authenticator, STRANGER_NS, false);
      } catch (JoinException e) {
        boolean isLast = leftNs <= LISTEN_AGAIN_NS || mayBeForbidden(place.getPort());
        if (e.reason() == Reason.PROTOCOL || (isNobody(e) && isLast)) {
          throw new JoinException(
              Reason.ADDRESS,
              "%s (%s)".formatted(taken.getMessage(), e.getMessage()),
              taken.getCause());
        }
        if (!isNobody(e)) {
          throw e;
        }
      }
      // Two that listen at the same moment may both find the port taken, and a port is taken too
      // where it is the near end of somebody's connection.
      LockSupport.parkNanos(LISTEN_AGAIN_NS);
    }
  }

  private Session host(JoinRequest request, InetSocketAddress place, Authenticator authenticator) {
    var server =
        SessionServer.startFor(
            request,
            place.getAddress(),
            place.getPort(),
            authenticator,
            nanoTime,
            ReplicatedSession::haltProcess);
    return await(server.localJoin(), server::close);
  }

  /// Whether a port may be another's. In which language the system says so is the user's matter.
  static boolean isTaken(JoinException failure, InetSocketAddress place) {
    return failure.getCause() instanceof BindException && LocalHost.has(place.getAddress());
  }

  /// Whether a port that is not taken may not be listened at by this user.
  private static boolean mayBeForbidden(int port) {
    return port < FIRST_PORT_OF_ALL && !LocalHost.isRoot();
  }

  /// Whether a join failed because nobody listens.
  private static boolean isNobody(JoinException failure) {
    return failure.getCause() instanceof ConnectException;
  }

  private Session connect(
      JoinRequest request,
      Places places,
      Authenticator authenticator,
      long helloNs,
      boolean awaitsHost) {
    TcpSession session =
        TcpSession.start(
            places,
            request,
            authenticator,
            helloNs,
            awaitsHost,
            nanoTime,
            ReplicatedSession::haltProcess);
    return await(session.joined(), session::close);
  }

  private Session joinOverFile(CommConfig config, List<String> usableBackends) {
    checkAreHere(config, config.worldSize().orElseThrow());
    FileSession session =
        FileSession.start(
            directory(config),
            request(config, usableBackends),
            nanoTime,
            ReplicatedSession::haltProcess);
    return await(session.joined(), session::close);
  }

  private static void checkAreHere(CommConfig config, int size) {
    int here = config.localWorldSize().orElse(size);
    if (here != size) {
      throw new JoinException(
          Reason.ADDRESS,
          "only %d of %d ranks are on this host, so they can't meet in a file; set COMM_MASTER_ADDR"
                  .formatted(here, size)
              + " and COMM_MASTER_PORT");
    }
  }

  /// Where ranks of this user meet in files.
  ///
  /// @throws JoinException if none is configured and this system has no usual place
  public static Path directory(CommConfig config) {
    String directory = config.options().get(DIRECTORY);
    return directory == null ? FileSession.defaultDirectory() : Path.of(directory);
  }

  private static JoinRequest request(CommConfig config, List<String> usableBackends) {
    int worldSize = config.worldSize().orElseThrow();
    if (worldSize > FrameCodec.MAX_RANKS) {
      throw new JoinException(
          Reason.CONFIGURATION,
          "COMM_WORLD_SIZE: %d (expected: at most %d, as many ranks as a session has room for); start fewer"
              .formatted(worldSize, FrameCodec.MAX_RANKS));
    }
    return new JoinRequest(
        Versions.comm4j(),
        config.session().orElse(""),
        0,
        new Session.Member(
            config.rank().orElseThrow(),
            LocalHost.identity(),
            ProcessHandle.current().pid(),
            Processors.ofThisThread(),
            usableBackends),
        worldSize,
        millis(config.joinTimeout()),
        Math.max(1, millis(config.liveness())),
        Settings.of(config));
  }

  private static long millis(Duration time) {
    Duration longest = Duration.ofDays(365);
    return time.compareTo(longest) > 0 ? longest.toMillis() : time.toMillis();
  }

  /// Waits for a join, which ends by itself.
  ///
  /// @param close ends what the join has begun, if it fails
  private static Session await(CompletableFuture<? extends Session> join, Runnable close) {
    try {
      return join.get();
    } catch (ExecutionException e) {
      close.run();
      if (e.getCause() instanceof JoinException why) {
        throw new JoinException(why.reason(), String.valueOf(why.getMessage()), why.getCause());
      }
      throw new IllegalStateException(e.getCause());
    } catch (InterruptedException e) {
      close.run();
      throw interrupted();
    }
  }

  private static InterruptedCallException interrupted() {
    Thread.currentThread().interrupt();
    return new InterruptedCallException("joining the session was interrupted");
  }
}
