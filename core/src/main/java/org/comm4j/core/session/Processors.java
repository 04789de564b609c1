package org.comm4j.core.session;

import static java.util.stream.Collectors.toUnmodifiableSet;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.comm4j.api.spi.Session;

/// The processors of a host that ranks may run on, by the kernel's numbers.
public final class Processors {
  private static final Path STATUS = Path.of("/proc/thread-self/status");
  private static final String LIST = "Cpus_allowed_list:";

  private Processors() {}

  /// {@return whether more ranks run on this rank's host than it has processors for them, so that
  /// they take turns} Launchers bind ranks, each to a processor of its own; then what one rank sees
  /// says nothing about the others.
  ///
  /// @param session whose members know their processors
  public static boolean areFewerThanRanks(Session session) {
    List<Set<Integer>> ofRanks =
        MembersSession.ranksOfThisHost(session).stream()
            .map(rank -> session.member(rank).processors())
            .toList();
    return areFewerThanRanks(
        Runtime.getRuntime().availableProcessors(),
        session.member(session.rank()).processors(),
        ofRanks);
  }

  /// @param available to this JVM: all of its own, unless a quota or a flag leaves it fewer
  /// @param own those of this rank
  /// @param ofRanks those of each rank on this host
  static boolean areFewerThanRanks(int available, Set<Integer> own, List<Set<Integer>> ofRanks) {
    boolean known = available == own.size() && ofRanks.stream().noneMatch(Set::isEmpty);
    long all = ofRanks.stream().flatMap(Set::stream).distinct().count();
    return ofRanks.size() > (known ? all : available);
  }

  /// {@return what the calling thread may run on; empty where the kernel does not tell}
  public static Set<Integer> ofThisThread() {
    try (Stream<String> lines = Files.lines(STATUS)) {
      return lines
          .filter(line -> line.startsWith(LIST))
          .findFirst()
          .map(line -> parse(line.substring(LIST.length()).strip()))
          .orElse(Set.of());
    } catch (IOException | IllegalArgumentException e) {
      return Set.of();
    }
  }

  /// {@return the numbers of a list}
  ///
  /// @param list as the kernel writes it, for example `0-3,8`
  /// @throws IllegalArgumentException if it is none
  public static Set<Integer> parse(String list) {
    BitSet bits = new BitSet();
    for (String range : list.split(",")) {
      String[] ends = range.split("-", 2);
      bits.set(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]) + 1);
    }
    return of(bits);
  }

  static Set<Integer> of(BitSet bits) {
    return bits.stream().boxed().collect(toUnmodifiableSet());
  }

  /// As bits, for the wire.
  static long[] bits(Set<Integer> processors) {
    BitSet bits = new BitSet();
    processors.forEach(bits::set);
    return bits.toLongArray();
  }
}
