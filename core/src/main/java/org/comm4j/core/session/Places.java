package org.comm4j.core.session;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.comm4j.api.JoinException;

/// Where a session may be, tried one after the other. When all have been tried the name is asked
/// again, now and then: its addresses may be others by then. Confined to one thread.
final class Places {
  /// As long as the JDK keeps for itself that a name is unknown. Who asks waits for the name
  /// service, and connects to nobody meanwhile.
  private static final long ASK_AGAIN_NS = TimeUnit.SECONDS.toNanos(10);

  private final int port;
  private final Meaning meaning;
  private final LongSupplier nanoTime;
  private final Map<InetAddress, String> troubles = new HashMap<>();
  private List<InetAddress> addresses;
  private int tried;
  private long askedNs;

  /// What a name means now.
  interface Meaning {
    /// Throws where it means nothing, or nothing that may be used.
    List<InetAddress> addresses() throws UnknownHostException;
  }

  /// @param addresses one at least, of which the name has just been asked
  /// @param meaning asked when all of them have been tried
  /// @param nanoTime the session's clock
  Places(int port, List<InetAddress> addresses, Meaning meaning, LongSupplier nanoTime) {
    this.port = port;
    this.addresses = addresses;
    this.meaning = meaning;
    this.nanoTime = nanoTime;
    this.askedNs = nanoTime.getAsLong();
  }

  /// One place that does not change.
  static Places of(InetSocketAddress place) {
    List<InetAddress> only = List.of(place.getAddress());
    return new Places(place.getPort(), only, () -> only, () -> 0);
  }

  /// How many there are.
  int count() {
    return addresses.size();
  }

  /// Whether it is the first that is tried now.
  boolean isFirst() {
    return tried == 0;
  }

  /// Which is tried now.
  InetSocketAddress current() {
    return new InetSocketAddress(addresses.get(tried), port);
  }

  /// Notes why the session can't be joined here yet.
  void note(String trouble) {
    troubles.put(addresses.get(tried), trouble);
  }

  /// The same of a try that had little time, and says less than one before.
  void noteUnlessKnown(String trouble) {
    troubles.putIfAbsent(addresses.get(tried), trouble);
  }

  /// Goes on to the next one.
  void next() {
    tried++;
    if (tried == addresses.size()) {
      tried = 0;
      long now = nanoTime.getAsLong();
      if (now - askedNs >= ASK_AGAIN_NS) {
        askAgain();
        askedNs = nanoTime.getAsLong();
      }
    }
  }

  private void askAgain() {
    try {
      addresses = meaning.addresses();
      troubles.keySet().retainAll(addresses);
    } catch (UnknownHostException | JoinException e) {
      // what it meant before is as good
    }
  }

  /// What has been noted, of each place if there are several.
  String troubles() {
    if (addresses.size() == 1) {
      return trouble(addresses.getFirst());
    }
    return addresses.stream()
        .map(each -> each.getHostAddress() + ": " + trouble(each))
        .collect(Collectors.joining(", "));
  }

  private String trouble(InetAddress address) {
    return troubles.getOrDefault(address, "nobody listens");
  }

  /// All of them.
  @Override
  public String toString() {
    return addresses.stream()
        .map(InetAddress::getHostAddress)
        .collect(Collectors.joining(", ", "", " port " + port));
  }
}
