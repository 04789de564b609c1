package org.comm4j.core.schedule;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Which ranks share memory, where some do and some don't: those of one host read each other's
/// windows, those of different hosts send messages. The same on all ranks. Immutable.
///
/// Hosts are numbered in the order of their lowest ranks. They may have different numbers of ranks,
/// and these need not follow one another.
public final class Hosts {
  private final int[] hostOf;
  private final int[][] ranks;
  private final long windowBytes;
  private final int hash;

  private Hosts(int[] hostOf, int[][] ranks, long windowBytes) {
    this.hostOf = hostOf;
    this.ranks = ranks;
    this.windowBytes = windowBytes;
    this.hash = 31 * Arrays.hashCode(hostOf) + Long.hashCode(windowBytes);
  }

  /// {@return the hosts of some ranks}
  ///
  /// @param labels by rank, equal for ranks of one host
  /// @param windowBytes how much one rank can publish to its host in one stage
  public static Hosts of(int[] labels, long windowBytes) {
    Map<Integer, Integer> numbers = new HashMap<>();
    List<List<Integer>> members = new ArrayList<>();
    int[] hostOf = new int[labels.length];
    for (int rank = 0; rank < labels.length; rank++) {
      int host = numbers.computeIfAbsent(labels[rank], _ -> numbers.size());
      hostOf[rank] = host;
      if (host == members.size()) {
        members.add(new ArrayList<>());
      }
      members.get(host).add(rank);
    }
    int[][] ranks =
        members.stream()
            .map(list -> list.stream().mapToInt(Integer::intValue).toArray())
            .toArray(int[][]::new);
    return new Hosts(hostOf, ranks, windowBytes);
  }

  /// How many hosts.
  public int count() {
    return ranks.length;
  }

  /// A rank's host.
  public int of(int rank) {
    return hostOf[rank];
  }

  /// How many ranks a host has.
  public int ranks(int host) {
    return ranks[host].length;
  }

  /// One of a host's ranks, in ascending order.
  public int rank(int host, int index) {
    return ranks[host][index];
  }

  /// How many ranks the largest host has.
  public int mostRanks() {
    return Arrays.stream(ranks).mapToInt(host -> host.length).max().orElse(0);
  }

  /// How much one rank can publish to its host in one stage.
  public long windowBytes() {
    return windowBytes;
  }

  @Override
  public boolean equals(Object other) {
    return this == other
        || (other instanceof Hosts hosts
            && hash == hosts.hash
            && windowBytes == hosts.windowBytes
            && Arrays.equals(hostOf, hosts.hostOf));
  }

  @Override
  public int hashCode() {
    return hash;
  }

  /// Each host's ranks.
  @Override
  public String toString() {
    return Arrays.deepToString(ranks);
  }
}
