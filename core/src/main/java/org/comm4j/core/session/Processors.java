package org.comm4j.core.session;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.util.stream.Collectors.toUnmodifiableSet;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.comm4j.api.spi.Session;

/// The processors of a host that ranks may run on, by the kernel's numbers.
public final class Processors {
  private static final Path STATUS = Path.of("/proc/thread-self/status");
  private static final Path ONLINE = Path.of("/sys/devices/system/cpu/online");
  private static final int MOST_RANKS = 1024; // that are looked at; hosts have no more processors
  private static final String LIST = "Cpus_allowed_list:";

  private Processors() {}

  /// {@return whether more ranks run on this rank's host than it has processors for them, so that
  /// they take turns} Launchers bind ranks, each to a processor of its own; then what one rank sees
  /// says nothing about the others. So it is asked of each place to which ranks are bound, and of
  /// all together.
  ///
  /// @param session whose members know their processors
  public static boolean areFewerThanRanks(Session session) {
    Session.Member self = session.member(session.rank());
    List<Set<Integer>> ofRanks = new ArrayList<>();
    for (int rank = 0; rank < session.size() && ofRanks.size() < MOST_RANKS; rank++) {
      Session.Member member = session.member(rank);
      if (member.host().id().equals(self.host().id())) {
        ofRanks.add(member.processors());
      }
    }
    return areFewerThanRanks(
        Runtime.getRuntime().availableProcessors(), self.processors(), ofRanks);
  }

  /// @param available to this JVM: all of its own, unless a quota or a flag leaves it fewer
  /// @param own those of this rank
  /// @param ofRanks those of each rank on this host
  static boolean areFewerThanRanks(int available, Set<Integer> own, List<Set<Integer>> ofRanks) {
    if (available != own.size() || ofRanks.stream().anyMatch(Set::isEmpty)) {
      return ofRanks.size() > available;
    }
    Map<BitSet, Integer> bound = new HashMap<>();
    BitSet all = new BitSet();
    for (Set<Integer> its : ofRanks) {
      BitSet place = BitSet.valueOf(bits(its));
      all.or(place);
      bound.merge(place, 1, Integer::sum);
    }
    return ofRanks.size() > all.cardinality()
        || bound.keySet().stream()
            .anyMatch(place -> ranksWithin(place, bound) > place.cardinality());
  }

  private static int ranksWithin(BitSet place, Map<BitSet, Integer> bound) {
    int ranks = 0;
    for (Map.Entry<BitSet, Integer> each : bound.entrySet()) {
      BitSet outside = (BitSet) each.getKey().clone();
      outside.andNot(place);
      ranks += outside.isEmpty() ? each.getValue() : 0;
    }
    return ranks;
  }

  /// {@return the processors that are switched on and that the calling thread may run on; empty
  /// where the kernel does not tell}
  public static Set<Integer> ofThisThread() {
    return ofThread(STATUS, ONLINE);
  }

  /// @param status of the thread, as the kernel writes it
  /// @param online where the kernel lists the processors that are switched on
  static Set<Integer> ofThread(Path status, Path online) {
    // a thread's name is in it too, cut somewhere: not always UTF-8
    try (Stream<String> lines = Files.lines(status, ISO_8859_1)) {
      BitSet allowed =
          lines
              .filter(line -> line.startsWith(LIST))
              .findFirst()
              .map(line -> bits(line.substring(LIST.length()).strip()))
              .orElseGet(BitSet::new);
      if (Files.isReadable(online)) {
        allowed.and(bits(Files.readString(online).strip()));
      }
      return of(allowed);
    } catch (IOException | UncheckedIOException | IllegalArgumentException e) {
      return Set.of();
    }
  }

  /// {@return the numbers of a list}
  ///
  /// @param list as the kernel writes it, for example `0-3,8`
  /// @throws IllegalArgumentException if it is not valid
  public static Set<Integer> parse(String list) {
    return of(bits(list));
  }

  private static BitSet bits(String list) {
    BitSet bits = new BitSet();
    for (String range : list.split(",", -1)) {
      String[] ends = range.split("-", 2);
      bits.set(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]) + 1);
    }
    return bits;
  }

  static Set<Integer> of(BitSet bits) {
    return bits.stream().boxed().collect(toUnmodifiableSet());
  }

  /// {@return a set as bits, 64 in each word}
  ///
  /// @param processors their numbers
  public static long[] bits(Set<Integer> processors) {
    BitSet bits = new BitSet();
    processors.forEach(bits::set);
    return bits.toLongArray();
  }
}
