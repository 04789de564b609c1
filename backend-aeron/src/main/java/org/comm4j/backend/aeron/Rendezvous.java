package org.comm4j.backend.aeron;

import io.aeron.driver.MediaDriver;
import io.aeron.exceptions.RegistrationException;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;

/// How the ranks of a session learn where the others receive.
final class Rendezvous {
  private static final int TRIES = 20;
  private static final Duration LEAST_PATIENCE = Duration.ofSeconds(5);

  private final Session session;
  private final CommConfig config;
  private final UnaryOperator<MediaDriver.Context> changes;

  Rendezvous(Session session, CommConfig config) {
    this(session, config, UnaryOperator.identity());
  }

  /// @param changes to the driver's settings
  Rendezvous(Session session, CommConfig config, UnaryOperator<MediaDriver.Context> changes) {
    this.session = session;
    this.config = config;
    this.changes = changes;
  }

  AeronTransport open() {
    Options options = Options.of(config);
    InetAddress host = Interfaces.choose(session, config, options);
    Dimensions dimensions = Dimensions.of(options, session.size(), Interfaces.datagramBytes(host));
    byte[] secret = new byte[Address.SECRET_BYTES];
    new SecureRandom().nextBytes(secret);
    Driver driver = Driver.start(dimensions, changes);
    AeronTransport transport = null;
    try {
      int port = reserve(driver, host, options.ports());
      Address own = Address.of(host, port, secret, dimensions.mtu());
      List<Address> all =
          session.exchange("aeron", own.toBytes(), config.joinTimeout()).stream()
              .map(Address::of)
              .toList();
      transport = new AeronTransport(session.rank(), all, driver, patienceNs());
      session.barrier("aeron/listening", config.joinTimeout()); // what comes earlier is thrown away
      return transport;
    } catch (RuntimeException | InternalError e) {
      if (transport == null) {
        driver.close();
      } else {
        transport.close(); // its thread may be at work in the driver
      }
      if (e instanceof RuntimeException known) {
        throw known;
      }
      throw new TransportFailedException("aeron can't be opened: " + Driver.reason(e), e);
    }
  }

  /// Long enough that the session has given up whoever does not live.
  private long patienceNs() {
    Duration patience = config.liveness().multipliedBy(2);
    return (patience.compareTo(LEAST_PATIENCE) > 0 ? patience : LEAST_PATIENCE).toNanos();
  }

  /// Takes a port and keeps it: a subscription that nobody sends to holds it.
  private static int reserve(Driver driver, InetAddress host, Options.Ports ports) {
    RegistrationException last = null;
    int offset = ThreadLocalRandom.current().nextInt(ports.last() - ports.first() + 1);
    int tries = ports.first() == 0 ? TRIES : ports.last() - ports.first() + 1;
    for (int i = 0; i < tries; i++) {
      int port =
          ports.first() == 0
              ? freePort(host)
              : ports.first() + (offset + i) % (ports.last() - ports.first() + 1);
      try {
        Address here = Address.of(host, port, new byte[Address.SECRET_BYTES], 0);
        var _ =
            driver
                .aeron()
                .addSubscription(
                    "aeron:udp?endpoint=%s:%d|session-id=%d"
                        .formatted(here.host(), port, ThreadLocalRandom.current().nextInt()),
                    ThreadLocalRandom.current().nextInt());
        return port;
      } catch (RegistrationException taken) {
        last = taken;
      }
    }
    throw new TransportFailedException(
        "no UDP port of %s is free%s; set COMM_AERON_PORTS to another range"
            .formatted(
                host.getHostAddress(),
                ports.first() == 0 ? "" : " from %d to %d".formatted(ports.first(), ports.last())),
        last);
  }

  private static int freePort(InetAddress host) {
    try (var socket = new DatagramSocket(new InetSocketAddress(host, 0))) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new TransportFailedException("no UDP port of " + host + " is free: " + e, e);
    }
  }
}
