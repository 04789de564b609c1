package org.comm4j.backend.aeron;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.HostAddresses;
import org.comm4j.core.session.MembersSession;
import org.jspecify.annotations.Nullable;

/// Where a rank receives: an address of this host that the others reach.
final class Interfaces {
  private static final int IP4_UDP_BYTES = 28;
  private static final int IP6_UDP_BYTES = 48;

  private Interfaces() {}

  /// The one that the user names; loopback if all ranks are here; else the one by which this rank
  /// has met the others. Its name may mean several, of which some are not reached, or others by
  /// now.
  static InetAddress choose(Session session, Options options) {
    if (!options.address().isEmpty()) {
      return own(options.address());
    }
    if (MembersSession.ranksOfThisHost(session).size() == session.size()) {
      return InetAddress.getLoopbackAddress();
    }
    return HostAddresses.ownIn(session)
        .filter(each -> !each.isAnyLocalAddress())
        .orElseThrow(() ->
            new TransportFailedException(
                "the ranks run on several hosts, and this one does not know which of its addresses the others reach; set COMM_AERON_ADDRESS to an address of this host that they reach",
                null));
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
