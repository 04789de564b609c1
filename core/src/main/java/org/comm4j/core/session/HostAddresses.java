package org.comm4j.core.session;

import java.net.InetAddress;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session;

/// By which of its addresses a host is met. A name may have several; and on the host itself it
/// often means the loopback interface (on Debian and Ubuntu 127.0.1.1), where no other host comes.
public final class HostAddresses {
  private HostAddresses() {}

  /// {@return those that other hosts may reach, this host's own first; what is no name, or
  /// `localhost`, is taken as it is}
  ///
  /// @param host as the user calls it
  /// @param all addresses of it
  public static List<InetAddress> reached(String host, List<InetAddress> all) {
    return all.stream()
        .filter(each -> !isOfThisHostAlone(host, each))
        .sorted(Comparator.comparing(each -> !LocalHost.has(each)))
        .toList();
  }

  /// {@return those at which ranks may meet, one at least, in the order in which to try them; rank
  /// 0 listens at the first}
  ///
  /// @param host as the user calls it
  /// @param all addresses of it
  /// @param config of this rank
  /// @param authenticator permits some of them; where none, all are left, to be told by its check
  /// @throws JoinException if ranks of other hosts could not come there (`ADDRESS`)
  static List<InetAddress> toMeet(
      String host, List<InetAddress> all, CommConfig config, Authenticator authenticator) {
    int size = config.worldSize().orElse(1);
    int here = config.localWorldSize().orElse(0); // not known
    List<InetAddress> reached = reached(host, all);
    Stream<InetAddress> alone = all.stream().filter(each -> isOfThisHostAlone(host, each));
    if (reached.isEmpty() && here > 0 && here < size) {
      throw new JoinException(
          Reason.ADDRESS,
          "COMM_MASTER_ADDR is %s, which means %s here, and no other host reaches that; %d of %d ranks are on others: set it to an address that they reach, or correct /etc/hosts"
              .formatted(host, all.getFirst().getHostAddress(), size - here, size));
    }
    Stream<InetAddress> inOrder =
        here == size
            ? Stream.concat(alone, reached.stream())
            : Stream.concat(reached.stream(), here == 0 ? alone : Stream.empty());
    List<InetAddress> some = inOrder.toList();
    List<InetAddress> permitted = some.stream().filter(authenticator::permits).toList();
    return permitted.isEmpty() ? some : permitted;
  }

  /// {@return by which of this host's addresses its rank has met the others: that of its end of the
  /// connection to who hosts the session, or at which it listens if it does so itself; none where
  /// they have met without connections}
  ///
  /// @param session of the whole launch
  public static Optional<InetAddress> ownIn(Session session) {
    return session instanceof ReplicatedSession known ? known.ownAddress() : Optional.empty();
  }

  /// Whether a name leads to the loopback interface where it is asked for, and not elsewhere.
  static boolean isOfThisHostAlone(String host, InetAddress address) {
    return address.isLoopbackAddress() && !host.equals("localhost") && !isLiteral(host);
  }

  private static boolean isLiteral(String host) {
    try {
      var _ = InetAddress.ofLiteral(host);
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }
}
