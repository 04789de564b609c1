package org.comm4j.backend.aeron;

import io.aeron.driver.MediaDriver;
import io.aeron.exceptions.RegistrationException;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.session.OpenFiles;
import org.comm4j.core.session.OwnFolder;
import org.comm4j.core.session.PortRange;

/// How the ranks of a session learn where the others receive.
final class Rendezvous {
  private static final int TRIES = 20;
  private static final String STARTED = "started in ";

  private final Session session;
  private final CommConfig config;
  private final UnaryOperator<MediaDriver.Context> changes;
  private final LongSupplier nanoTime;
  private final Linger linger;

  Rendezvous(Session session, CommConfig config) {
    this(session, config, UnaryOperator.identity(), System::nanoTime, Linger.USUAL);
  }

  /// @param changes to the driver's settings
  /// @param nanoTime the rank's clock; its driver goes by the system's
  /// @param linger of its transport, when that closes
  Rendezvous(
      Session session,
      CommConfig config,
      UnaryOperator<MediaDriver.Context> changes,
      LongSupplier nanoTime,
      Linger linger) {
    this.session = session;
    this.config = config;
    this.changes = changes;
    this.nanoTime = nanoTime;
    this.linger = linger;
  }

  AeronTransport open() {
    Options options = Options.of(config);
    InetAddress host = Interfaces.choose(session, options);
    Dimensions dimensions = Dimensions.of(options, session.size(), Interfaces.datagramBytes(host));
    byte[] secret = new byte[Address.SECRET_BYTES];
    new SecureRandom().nextBytes(secret);
    Driver driver = driver(options, dimensions);
    AeronTransport transport = null;
    try {
      List<Integer> here = MembersSession.ranksOfThisHost(session);
      int index = here.indexOf(session.rank());
      int port =
          Driver.uninterrupted(
              () -> reserve(driver, host, options.ports(), index, here.size(), dimensions));
      Address own =
          Address.of(
              host,
              port,
              secret,
              dimensions,
              options.sharesDriver() ? nameOf(driver) : "",
              options.isSealed());
      List<Address> all =
          new ArrayList<>(
              driver
                  .during(() -> session.exchange("aeron", own.toBytes(), config.joinTimeout()))
                  .stream()
                  .map(Address::of)
                  .toList());
      all.set(session.rank(), own); // who is on the way may have changed what comes back of it
      List<Peer> peers = Driver.uninterrupted(() -> peers(driver, all, dimensions));
      transport = new AeronTransport(session.rank(), driver, peers, nanoTime, linger);
      session.barrier("aeron/listening", config.joinTimeout()); // what comes earlier is thrown away
      return transport;
    } catch (Throwable e) {
      if (transport == null) {
        driver.close();
      } else {
        transport.close(); // its thread may be at work in the driver
      }
      throw e instanceof RuntimeException known
          ? known
          : Faults.failed("aeron can't be opened", e, driver.directory());
    }
  }

  /// The media driver that is asked for.
  private Driver driver(Options options, Dimensions dimensions) {
    List<Integer> here = MembersSession.ranksOfThisHost(session);
    return switch (options.driver()) {
      case EMBEDDED -> embedded(dimensions, rootOfOwn(here));
      case EXTERNAL ->
          Driver.uninterrupted(
              () -> Driver.external(DriverDirectory.of(options), config.liveness()));
      case SHARED ->
          here.size() == 1 ? embedded(dimensions, rootOfOwn(here)) : shared(dimensions, here);
    };
  }

  /// Where the drivers of a host's ranks have their files: in memory, if all find that there is
  /// space for all, as nobody has started one before all have looked.
  private Path rootOfOwn(List<Integer> here) {
    Path root = DriverFolder.rootOfOwn(here.size());
    if (here.size() == 1) {
      return root;
    }
    Session host = MembersSession.of(session, "aeron/place-" + here.getFirst(), here);
    byte[] isElsewhere = {(byte) (root.equals(OwnFolder.root()) ? 0 : 1)};
    boolean anyElsewhere =
        host.exchange("root", isElsewhere, config.joinTimeout()).stream()
            .anyMatch(each -> each[0] != 0);
    return anyElsewhere ? OwnFolder.temporary() : root;
  }

  private Driver embedded(Dimensions dimensions, Path root) {
    return Driver.uninterrupted(
        () -> Driver.embedded(root, dimensions, session.size(), config.liveness(), changes));
  }

  /// The first rank of the host starts it and tells the others where it is, or why it is not.
  private Driver shared(Dimensions dimensions, List<Integer> here) {
    int leader = here.getFirst();
    Session host = MembersSession.of(session, "aeron/driver-" + leader, here);
    if (session.rank() != leader) {
      String answer =
          new String(
              host.exchange("directory", new byte[0], config.joinTimeout()).getFirst(),
              StandardCharsets.UTF_8);
      if (!answer.startsWith(STARTED)) {
        throw new TransportFailedException(
            "rank %d, which runs the media driver of this host: %s".formatted(leader, answer),
            null);
      }
      Path directory = Path.of(answer.substring(STARTED.length()));
      return Driver.uninterrupted(() -> Driver.following(leader, directory, config.liveness()));
    }
    Driver driver;
    try {
      driver =
          Driver.uninterrupted(() ->
              Driver.leading(
                  leader,
                  dimensions,
                  session.size(),
                  here.size(),
                  config.liveness(),
                  () -> here.stream().allMatch(rank -> rank == leader || isGone(rank)),
                  changes));
    } catch (TransportFailedException e) {
      tell(host, String.valueOf(e.getMessage()));
      throw e;
    }
    try {
      return driver.during(() -> {
        tell(host, STARTED + driver.directory());
        return driver;
      });
    } catch (Throwable e) {
      driver.close();
      throw e;
    }
  }

  private void tell(Session host, String answer) {
    host.exchange("directory", answer.getBytes(StandardCharsets.UTF_8), config.joinTimeout());
  }

  /// The same on ranks that can use one driver's memory, and on no others.
  private String nameOf(Driver driver) {
    return session.member(session.rank()).host().id() + " " + driver.directory();
  }

  private List<Peer> peers(Driver driver, List<Address> all, Dimensions dimensions) {
    int self = session.rank();
    Seals seals = Seals.of(all, self, config);
    List<Peer> peers = new ArrayList<>();
    for (int rank = 0; rank < all.size(); rank++) {
      if (rank != self) {
        int peer = rank;
        Route route = Route.of(self, all.get(self), rank, all.get(rank), dimensions);
        peers.add(
            new Peer(
                driver,
                rank,
                route,
                route.isMemory() ? Seal.none() : seals.of(self, rank),
                route.isMemory() ? Seal.none() : seals.of(rank, self),
                DriverSettings.peersNs(config.liveness()),
                () -> isGone(peer),
                nanoTime));
      }
    }
    return peers;
  }

  private boolean isGone(int rank) {
    return session.news().isGone(rank);
  }

  /// Takes a port and keeps it: a subscription that nobody sends to holds it. A driver would let
  /// two of its ranks share one, and the buffer of its socket.
  ///
  /// @param index of this rank among the `count` of its host
  static int reserve(
      Driver driver,
      InetAddress host,
      PortRange ports,
      int index,
      int count,
      Dimensions dimensions) {
    Exception last = null;
    int lastPort = 0;
    for (int candidate : candidates(ports, index, count)) {
      int port = candidate == 0 ? freePort(host) : candidate;
      String endpoint = Address.textOf(host) + ":" + port;
      try {
        checkIsFree(host, port);
        var _ =
            driver
                .aeron()
                .addSubscription(
                    Route.receiving(endpoint, ThreadLocalRandom.current().nextInt(), dimensions),
                    ThreadLocalRandom.current().nextInt());
        return port;
      } catch (SocketException | RegistrationException taken) {
        checkMayOpenFiles(host, taken);
        last = taken;
        lastPort = port;
      }
    }
    if (last instanceof RegistrationException
        && isFree(host, lastPort)) { // the driver's own reason
      throw new TransportFailedException(
          "the media driver can't receive on %s: %s; if it is that somebody had its port meanwhile, set COMM_AERON_PORTS to another range"
              .formatted(host.getHostAddress(), last.getMessage()),
          last);
    }
    throw new TransportFailedException(
        "no UDP port of %s is free%s; set COMM_AERON_PORTS to another range"
            .formatted(
                host.getHostAddress(), ports.isAny() ? "" : ", of those in the range " + ports),
        last);
  }

  /// Without files no port is free.
  private static void checkMayOpenFiles(InetAddress host, Exception failure) {
    String remedy = OpenFiles.remedy(failure);
    if (!remedy.isEmpty()) {
      throw new TransportFailedException(
          "no socket on %s: %s%s".formatted(host.getHostAddress(), failure, remedy), failure);
    }
  }

  /// In which order a rank tries ports: first those that no other rank of its host tries first, as
  /// two that look at the same time would both find one free.
  static List<Integer> candidates(PortRange ports, int index, int count) {
    return ports.isAny()
        ? Collections.nCopies(TRIES, 0)
        : IntStream.rangeClosed(ports.first(), ports.last())
            .boxed()
            .sorted(Comparator.comparing(port -> (port - ports.first()) % count != index))
            .toList();
  }

  private static void checkIsFree(InetAddress host, int port) throws SocketException {
    new DatagramSocket(new InetSocketAddress(host, port)).close();
  }

  private static boolean isFree(InetAddress host, int port) {
    try {
      checkIsFree(host, port);
      return true;
    } catch (SocketException e) {
      return false;
    }
  }

  private static int freePort(InetAddress host) {
    try (var socket = new DatagramSocket(new InetSocketAddress(host, 0))) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new TransportFailedException(
          "no UDP port of %s is free: %s%s".formatted(host, e, OpenFiles.remedy(e)), e);
    }
  }
}
