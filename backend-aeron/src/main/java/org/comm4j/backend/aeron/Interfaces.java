package org.comm4j.backend.aeron;

import java.io.IOException;
import java.net.DatagramSocket;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.HostAddresses;
import org.comm4j.core.session.MembersSession;
import org.jspecify.annotations.Nullable;

/// Where a rank receives: an address of this host that the others reach.
final class Interfaces {
  private static final int DISCARD_PORT = 9;
  private static final int IP4_UDP_BYTES = 28;
  private static final int IP6_UDP_BYTES = 48;
  private static final String REMEDY =
      "set COMM_AERON_ADDRESS to an address of this host that the others reach";

  private Interfaces() {}

  /// The one that the user names; loopback if all ranks are here; else the one from which this host
  /// reaches the place where the ranks have met.
  static InetAddress choose(Session session, CommConfig config, Options options) {
    if (!options.address().isEmpty()) {
      return own(options.address());
    }
    if (MembersSession.ranksOfThisHost(session).size() == session.size()) {
      return InetAddress.getLoopbackAddress();
    }
    String place = config.masterAddress().orElse("");
    if (place.isEmpty()) {
      throw new TransportFailedException(
          "the ranks run on several hosts, and this one does not know which of its addresses the others reach; "
              + REMEDY,
          null);
    }
    return towards(place, config);
  }

  private static InetAddress own(String text) {
    try {
      InetAddress address = InetAddress.getByName(text);
      if (of(address) != null) {
        return address;
      }
    } catch (UnknownHostException e) {
      // as if it were another host's
    }
    throw new TransportFailedException(
        "COMM_AERON_ADDRESS: '%s' (expected: an address of this host)".formatted(text), null);
  }

  private static InetAddress towards(String place, CommConfig config) {
    try (var socket = new DatagramSocket()) {
      InetAddress meeting = meeting(place, List.of(InetAddress.getAllByName(place)), config);
      socket.connect(new InetSocketAddress(meeting, DISCARD_PORT));
      InetAddress address = socket.getLocalAddress(); // the system looks it up, nothing is sent
      if (!address.isAnyLocalAddress()) {
        return address;
      }
    } catch (IOException | RuntimeException e) {
      throw new TransportFailedException(
          "no way from this host to %s: %s; %s".formatted(place, e.getMessage(), REMEDY), e);
    }
    throw new TransportFailedException(
        "no way from this host to %s; %s".formatted(place, REMEDY), null);
  }

  /// Where ranks of several hosts meet, by a name that may mean more: on the host that it names the
  /// loopback interface too, from which no datagram comes to another one.
  static InetAddress meeting(String place, List<InetAddress> all, CommConfig config) {
    return HostAddresses.toMeet(place, all, config, Authenticator.of(config)).getFirst();
  }

  /// How much of a datagram a packet holds.
  static int datagramBytes(InetAddress address) {
    NetworkInterface of = of(address);
    int headerBytes = address instanceof Inet6Address ? IP6_UDP_BYTES : IP4_UDP_BYTES;
    try {
      return of == null ? Options.LEAST_MTU : of.getMTU() - headerBytes;
    } catch (SocketException e) {
      return Options.LEAST_MTU;
    }
  }

  private static @Nullable NetworkInterface of(InetAddress address) {
    try {
      return NetworkInterface.getByInetAddress(address);
    } catch (SocketException e) {
      return null;
    }
  }
}
