package org.comm4j.core.session;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/// Connections of which nobody knows yet whether they are ranks': few at a time, each for 5 s. For
/// one thread.
///
/// When all places are taken, the address that has most of them loses one. So who connects without
/// end pushes out nobody at another address. Which one it loses is a matter of chance: a rank at
/// the same address then gets in, at the latest when it tries again, where the oldest would always
/// be gone before it has answered, and the newest would wait for 5 s.
///
/// Whoever reads the log sees one line a minute about an address at most, and about few of them.
final class PendingConnections {
  static final int PLACES = 64;

  private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(5);
  private static final long SILENCE_NS = TimeUnit.MINUTES.toNanos(1);
  private static final int MOST_TOLD_OF = 64;
  private static final int IPV6_BYTES = 16;
  private static final int IPV6_NETWORK_BYTES = 8;

  private final SequencedMap<Connection, Place> places = new LinkedHashMap<>(); // oldest first
  private final Map<String, Told> told = new HashMap<>(); // by source
  private final RandomGenerator random;
  private final Consumer<String> log;

  private record Place(String source, long sinceNs) {}

  /// What was said of a source.
  private static final class Told {
    private long lineNs;
    private int since;
  }

  /// @param random decides who loses its place
  /// @param log takes a line for whoever runs this
  PendingConnections(RandomGenerator random, Consumer<String> log) {
    this.random = random;
    this.log = log;
  }

  /// Whose places are counted together: an address, of IPv6 a network of 64 bits, which one host
  /// may have to itself.
  static String source(InetAddress address) {
    byte[] bytes = address.getAddress();
    if (bytes.length != IPV6_BYTES) {
      return address.getHostAddress();
    }
    try {
      byte[] network = Arrays.copyOf(Arrays.copyOf(bytes, IPV6_NETWORK_BYTES), IPV6_BYTES);
      return InetAddress.getByAddress(network).getHostAddress() + "/64";
    } catch (UnknownHostException e) {
      throw new AssertionError(e); // it has 16 bytes
    }
  }

  /// Gives a connection a place, at the cost of another one where none is free.
  void add(Connection connection, String source, long nowNs) {
    if (places.size() >= PLACES) {
      end(
          chosen(source),
          "all %d places for connections that have not joined were taken, most of them from there"
              .formatted(PLACES),
          nowNs);
    }
    places.put(connection, new Place(source, nowNs));
  }

  /// One of those whose source has the most places, once the newcomer has one.
  private Connection chosen(String newcomer) {
    Map<String, Integer> counts = new HashMap<>();
    counts.put(newcomer, 1);
    places.values().forEach(place -> counts.merge(place.source(), 1, Integer::sum));
    int most = Collections.max(counts.values());
    List<Connection> candidates =
        places.entrySet().stream()
            .filter(each -> most == counts.getOrDefault(each.getValue().source(), 0))
            .map(Map.Entry::getKey)
            .toList();
    return candidates.get(random.nextInt(candidates.size()));
  }

  /// Ends those that have been here for too long.
  void endOld(long nowNs) {
    while (!places.isEmpty() && nowNs - places.firstEntry().getValue().sinceNs() > PATIENCE_NS) {
      Connection oldest = places.firstEntry().getKey();
      if (oldest.isFinishing()) { // it was told why
        remove(oldest);
        oldest.close();
      } else {
        end(oldest, "it did not join within 5 s", nowNs);
      }
    }
  }

  private void end(Connection connection, String why, long nowNs) {
    tell(connection, why, nowNs);
    remove(connection);
    connection.close();
  }

  /// Says of a connection that is here, and of no other, why it is ended, unless enough has been
  /// said of its source.
  void tell(Connection connection, String why, long nowNs) {
    Place place = places.get(connection);
    if (place == null) {
      return;
    }
    Told said = told.get(place.source());
    if (said != null && nowNs - said.lineNs < SILENCE_NS) {
      said.since++;
      return;
    }
    if (said == null && !makeRoom(nowNs)) {
      return;
    }
    log.accept(
        "a connection from %s has been ended: %s; %s"
            .formatted(
                place.source(),
                why,
                said == null || said.since == 0
                    ? "others from there are told of after a minute"
                    : "as were %d others from there since the last such line"
                        .formatted(said.since)));
    Told now = new Told();
    now.lineNs = nowNs;
    told.put(place.source(), now);
  }

  /// @return false if too many have been told of in the last minute
  private boolean makeRoom(long nowNs) {
    if (told.size() >= MOST_TOLD_OF) {
      Iterator<Told> all = told.values().iterator();
      while (all.hasNext()) {
        if (nowNs - all.next().lineNs >= SILENCE_NS) {
          all.remove();
        }
      }
    }
    return told.size() < MOST_TOLD_OF;
  }

  void remove(Connection connection) {
    places.remove(connection);
  }

  Set<Connection> connections() {
    return places.keySet();
  }
}
