package org.comm4j.core.session;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.List;
import org.comm4j.api.JoinException;

/// Where a session may be, tried one after the other. When all have been tried the name is asked
/// again: its addresses may be others by then. Confined to one thread.
final class Places {
  private final int port;
  private final Names names;
  private List<InetAddress> addresses;
  private int tried;

  /// What a name means now.
  interface Names {
    /// Throws where it means nothing, or nothing that may be used.
    List<InetAddress> addresses() throws UnknownHostException;
  }

  /// @param addresses one at least
  /// @param names asked when all of them have been tried
  Places(int port, List<InetAddress> addresses, Names names) {
    this.port = port;
    this.addresses = addresses;
    this.names = names;
  }

  /// One place that does not change.
  static Places of(InetSocketAddress place) {
    List<InetAddress> only = List.of(place.getAddress());
    return new Places(place.getPort(), only, () -> only);
  }

  /// Which is tried now.
  InetSocketAddress current() {
    return new InetSocketAddress(addresses.get(tried), port);
  }

  /// Goes on to the next one.
  void next() {
    tried++;
    if (tried == addresses.size()) {
      tried = 0;
      askAgain();
    }
  }

  private void askAgain() {
    try {
      addresses = names.addresses();
    } catch (UnknownHostException | JoinException e) {
      // what it meant before is as good
    }
  }
}
