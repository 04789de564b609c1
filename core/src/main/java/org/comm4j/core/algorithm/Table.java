package org.comm4j.core.algorithm;

import static org.comm4j.core.schedule.CollectiveKind.ALL_GATHER;
import static org.comm4j.core.schedule.CollectiveKind.ALL_GATHER_V;
import static org.comm4j.core.schedule.CollectiveKind.ALL_REDUCE;
import static org.comm4j.core.schedule.CollectiveKind.ALL_TO_ALL;
import static org.comm4j.core.schedule.CollectiveKind.ALL_TO_ALL_V;
import static org.comm4j.core.schedule.CollectiveKind.BARRIER;
import static org.comm4j.core.schedule.CollectiveKind.BROADCAST;
import static org.comm4j.core.schedule.CollectiveKind.EXCLUSIVE_SCAN;
import static org.comm4j.core.schedule.CollectiveKind.GATHER;
import static org.comm4j.core.schedule.CollectiveKind.GATHER_V;
import static org.comm4j.core.schedule.CollectiveKind.REDUCE;
import static org.comm4j.core.schedule.CollectiveKind.REDUCE_SCATTER;
import static org.comm4j.core.schedule.CollectiveKind.REDUCE_SCATTER_V;
import static org.comm4j.core.schedule.CollectiveKind.SCAN;
import static org.comm4j.core.schedule.CollectiveKind.SCATTER;
import static org.comm4j.core.schedule.CollectiveKind.SCATTER_V;

import java.util.List;
import java.util.function.Predicate;
import org.comm4j.core.schedule.CollectiveKind;

/// The built-in choice. For each collective, the first line that fits the facts and whose algorithm
/// supports the shape; the last line always does. For ranks, and for the leaders of hosts
/// ([Leaders]), which are ranks that share no memory.
///
/// The limits were computed with a model with measured constants: a test holds that by it no choice
/// over messages is much worse than the best algorithm. Messages: a round costs α = 4 µs (UDP and
/// TCP on one host; more between hosts, which moves all limits up alike), one more message in the
/// same round 0.5 µs, a byte β = 0.33 ns (3 GB/s); so α is worth 12 KiB. Windows: a synchronisation
/// costs up to 0.5 µs, a byte read 0.025 to 0.04 ns; so it is worth 12 KiB too. n is a rank's
/// bytes, p the number of ranks. Where the left fold costs nothing it is what `fast` does as well.
final class Table {
  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;

  /// Two stages read `n(p-1)(1 - 2/p)` bytes less and synchronise once more: even at n = 8 KiB for
  /// 4 ranks, 2.3 KiB for 8, 18 KiB for 3: about so many bytes over all ranks.
  private static final long ONE_STAGE_TOTAL = 32 * KIB;

  /// Gathering everything costs `n(p-1)β` in log₂ p rounds; [#DIRECT_RANKS] pay 2α + 2nβ and 2(p-1)
  /// messages: even at n = 6.6 KiB for 4 ranks, 2 KiB for 8.
  private static final long GATHER_FOLD_TOTAL = 16 * KIB;

  /// Two ranks exchange everything in one round instead of halves in two; copying and folding all
  /// instead of half costs 0.04 ns a byte, against α.
  private static final long GATHER_FOLD_PAIR = 64 * KIB;

  /// p - 1 messages in one round cost 7.5 µs for 16 ranks, half of what 4 logarithmic rounds cost.
  private static final int DIRECT_RANKS = 16;

  /// What arrives at a rank at once, from all others, must fit the transport's and the cache's
  /// buffers.
  private static final long DIRECT_BYTES = 256 * KIB;

  /// Doubling costs log₂ p (α + nβ), Rabenseifner 2 log₂ p α + 2nβ: even at 24 KiB for 16 ranks, 16
  /// KiB for 64.
  private static final long DOUBLING_BYTES = 16 * KIB;

  /// Beyond, the rounds that Rabenseifner saves against pairwise are less than a fifth of the time,
  /// and pairwise gives the left fold.
  private static final long RABENSEIFNER_BYTES = MIB;

  /// As before, with the 2n bytes more that folding excess ranks costs.
  private static final long RABENSEIFNER_BYTES_FOLDED = 256 * KIB;

  /// More partners than this per rank are too many connections; a ring has two.
  private static final int PAIRWISE_RANKS = 64;

  /// The root takes (p-1)nβ, or by pairwise pα + 2nβ: even at n = 44 KiB for 4 ranks, 17 KiB for 8.
  private static final long LINEAR_REDUCE_TOTAL = 128 * KIB;

  /// A tree costs log₂ p (α + nβ), against pα + 2nβ: even at 60 KiB for 8 ranks, 73 KiB for 16;
  /// never worse up to 4.
  private static final long BINOMIAL_REDUCE_BYTES = 64 * KIB;

  /// A tree costs log₂ p (α + nβ), scatter and ring (log₂ p + p - 1)α + 2nβ: even at 73 KiB for 8
  /// ranks, 92 KiB for 16, 205 KiB for 64: see [#BROADCAST_BYTES_PER_RANK].
  private static final long BROADCAST_BYTES = 64 * KIB;

  private static final long BROADCAST_BYTES_PER_RANK = 4 * KIB;

  /// p - 1 messages at the root cost 0.5 µs each: 16 µs for 32 ranks, as a tree of 4 to 5 rounds.
  private static final int LINEAR_RANKS = 32;

  /// A tree forwards everything once more: pnβ, for 64 ranks 5 µs of the 8 that it saves.
  private static final long BINOMIAL_GATHER_BYTES = 256;

  /// Logarithmic rounds save (p - 1 - log₂ p)α against a ring's neighbours; one in ten of the time
  /// here for 8 ranks.
  private static final long DOUBLING_GATHER_TOTAL = 512 * KIB;

  /// Bruck copies everything once more; that is as with doubling, less the copy.
  private static final long BRUCK_GATHER_TOTAL = 64 * KIB;

  /// Bruck costs log₂ p (α + nβp/2), pairwise (p-1)(α + nβ): even at 4 KiB for 64 ranks, less the
  /// copies.
  private static final long BRUCK_BYTES = KIB;

  /// Doubling costs log₂ p (α + nβ), a chain of 64 KiB pieces p - 2 + n/64 KiB of them: even at 256
  /// KiB for 8 ranks, 360 KiB for 16, 1 MiB for 64.
  private static final long SCAN_BYTES_PER_RANK = 16 * KIB;

  /// The last rank reads n(p-1) bytes where a chain would pass n through every rank.
  private static final int PULL_SCAN_RANKS = 16;

  private static final long PULL_SCAN_BYTES = 64 * KIB;

  private static final String IN_HOSTS =
      "some ranks share memory: one of each host sends to the other hosts";

  private static final List<Line> LINES =
      List.of(
          line(BARRIER, "pull", Facts::windows, "one look at every rank's window"),
          line(BARRIER, "hierarchical", Table::isHierarchical, IN_HOSTS),
          line(BARRIER, "dissemination", "log₂ p rounds of empty messages"),
          //
          line(BROADCAST, "pull", Facts::windows, "everybody reads the root's window"),
          line(BROADCAST, "hierarchical", Table::isHierarchical, IN_HOSTS),
          line(
              BROADCAST,
              "scatter-ring",
              f ->
                  f.size() > 2
                      && f.bytes() > Math.max(BROADCAST_BYTES, BROADCAST_BYTES_PER_RANK * f.size()),
              "large: every rank sends about 2n bytes, however many ranks"),
          line(BROADCAST, "binomial", "few rounds"),
          //
          line(
              REDUCE,
              "one-stage",
              f -> f.windows() && (f.size() == 2 || f.total() <= ONE_STAGE_TOTAL),
              "small, or two ranks: the root reads all windows"),
          line(REDUCE, "two-stage", Facts::windows, "large: every rank folds a chunk"),
          line(REDUCE, "hierarchical", f -> isHierarchical(f) && f.fast(), IN_HOSTS),
          line(
              REDUCE,
              "linear",
              f ->
                  f.size() == 2
                      || (f.total() <= LINEAR_REDUCE_TOTAL && (!f.fast() || f.size() <= 4)),
              "small or two ranks: the root folds what arrives"),
          line(
              REDUCE,
              "binomial",
              f -> f.fast() && (f.size() <= 4 || f.bytes() <= BINOMIAL_REDUCE_BYTES),
              "few rounds"),
          line(REDUCE, "pairwise", "large, or in rank order: every rank folds a chunk"),
          //
          line(
              ALL_REDUCE,
              "one-stage",
              f -> f.windows() && (f.size() == 2 || f.total() <= ONE_STAGE_TOTAL),
              "small, or two ranks: everybody reads all windows"),
          line(ALL_REDUCE, "two-stage", Facts::windows, "large: every rank folds a chunk"),
          line(ALL_REDUCE, "hierarchical", f -> isHierarchical(f) && f.fast(), IN_HOSTS),
          line(
              ALL_REDUCE,
              "gather-fold",
              f ->
                  f.total() <= GATHER_FOLD_TOTAL
                      || (f.size() == 2 && f.bytes() <= GATHER_FOLD_PAIR),
              "small: log₂ p rounds, everybody folds everything"),
          line(
              ALL_REDUCE,
              "direct",
              f -> f.size() > 2 && f.size() <= DIRECT_RANKS && f.bytes() <= DIRECT_BYTES,
              "few ranks: two rounds, every rank folds a chunk"),
          line(
              ALL_REDUCE,
              "recursive-doubling",
              f -> f.fast() && f.size() > DIRECT_RANKS && f.bytes() <= DOUBLING_BYTES,
              "small on many ranks: log₂ p rounds"),
          line(
              ALL_REDUCE,
              "rabenseifner",
              f ->
                  f.fast()
                      && f.size() > DIRECT_RANKS
                      && f.bytes()
                          <= (f.powerOfTwo() ? RABENSEIFNER_BYTES : RABENSEIFNER_BYTES_FOLDED),
              "medium on many ranks: 2 log₂ p rounds and as few bytes as a ring"),
          line(
              ALL_REDUCE,
              "ring",
              f -> f.fast() && f.size() > PAIRWISE_RANKS,
              "large on very many ranks: two neighbours each"),
          line(
              ALL_REDUCE, "pairwise", "two ranks, large, or in rank order: as few bytes as a ring"),
          //
          line(GATHER, "pull", Facts::windows, "the root reads all windows"),
          line(
              GATHER,
              "binomial",
              f -> f.size() > LINEAR_RANKS && f.bytes() <= BINOMIAL_GATHER_BYTES,
              "small from many ranks: log₂ p messages at the root"),
          line(GATHER, "linear", "one round"),
          line(GATHER_V, "linear", "one round, whatever sizes only the root knows"),
          //
          line(ALL_GATHER, "pull", Facts::windows, "everybody reads all windows"),
          line(
              ALL_GATHER,
              "hierarchical",
              f ->
                  isHierarchical(f)
                      && (f.hosts() <= LINEAR_RANKS || f.total() > BRUCK_GATHER_TOTAL),
              IN_HOSTS),
          line(ALL_GATHER, "ring", f -> f.size() == 3, "as few rounds as any, nothing copied"),
          line(
              ALL_GATHER,
              "recursive-doubling",
              f -> f.total() <= DOUBLING_GATHER_TOTAL,
              "not large, a power of two: log₂ p rounds"),
          line(
              ALL_GATHER,
              "bruck",
              f -> f.total() <= BRUCK_GATHER_TOTAL,
              "small: log₂ p rounds for any number of ranks"),
          line(ALL_GATHER, "ring", "large: each to its neighbour"),
          line(ALL_GATHER_V, "pull", Facts::windows, "everybody reads all windows"),
          line(ALL_GATHER_V, "ring", "each to its neighbour"),
          //
          line(SCATTER, "pull", Facts::windows, "everybody reads the root's window"),
          line(
              SCATTER,
              "binomial",
              f -> f.size() > LINEAR_RANKS && f.bytes() <= BINOMIAL_GATHER_BYTES,
              "small to many ranks: log₂ p messages at the root"),
          line(SCATTER, "linear", "one round"),
          line(SCATTER_V, "linear", "one round, whatever sizes only the root knows"),
          //
          line(REDUCE_SCATTER, "pull", Facts::windows, "every rank folds its chunk of all windows"),
          line(
              REDUCE_SCATTER,
              "direct",
              f -> f.size() > 2 && f.size() <= DIRECT_RANKS && f.total() <= DIRECT_BYTES,
              "few ranks: one round"),
          line(
              REDUCE_SCATTER,
              "recursive-halving",
              f -> f.fast() && f.size() > DIRECT_RANKS && f.total() <= RABENSEIFNER_BYTES,
              "medium on many ranks, a power of two: log₂ p rounds"),
          line(
              REDUCE_SCATTER,
              "ring",
              f -> f.fast() && f.size() > PAIRWISE_RANKS,
              "large on very many ranks: two neighbours each"),
          line(
              REDUCE_SCATTER,
              "pairwise",
              "two ranks, large, or in rank order: as few bytes as a ring"),
          line(
              REDUCE_SCATTER_V,
              "pull",
              Facts::windows,
              "every rank folds its chunk of all windows"),
          line(
              REDUCE_SCATTER_V,
              "direct",
              f -> f.size() > 2 && f.size() <= DIRECT_RANKS && f.total() <= DIRECT_BYTES,
              "few ranks: one round"),
          line(
              REDUCE_SCATTER_V,
              "ring",
              f -> f.fast() && f.size() > PAIRWISE_RANKS,
              "very many ranks: two neighbours each"),
          line(
              REDUCE_SCATTER_V,
              "pairwise",
              "two ranks, large, or in rank order: as few bytes as a ring"),
          //
          line(ALL_TO_ALL, "pull", Facts::windows, "everybody reads all windows"),
          line(
              ALL_TO_ALL,
              "direct",
              f -> f.size() <= LINEAR_RANKS && f.total() <= DIRECT_BYTES,
              "few ranks, not large: one round"),
          line(
              ALL_TO_ALL,
              "bruck",
              f -> f.size() > LINEAR_RANKS && f.bytes() <= BRUCK_BYTES,
              "small on many ranks: log₂ p rounds"),
          line(ALL_TO_ALL, "pairwise", "large: one partner at a time"),
          line(ALL_TO_ALL_V, "direct", f -> f.size() <= DIRECT_RANKS, "few ranks: one round"),
          line(ALL_TO_ALL_V, "pairwise", "many ranks: one partner at a time"),
          //
          line(
              SCAN,
              "pull",
              f -> f.windows() && (f.size() <= PULL_SCAN_RANKS || f.bytes() <= PULL_SCAN_BYTES),
              "everybody reads the windows of the ranks before it"),
          line(
              SCAN,
              "recursive-doubling",
              f -> f.fast() && f.size() > 3 && f.bytes() <= SCAN_BYTES_PER_RANK * f.size(),
              "not large: log₂ p rounds"),
          line(SCAN, "chain", "large, in rank order, or few ranks: in pieces from rank to rank"),
          line(
              EXCLUSIVE_SCAN,
              "pull",
              f -> f.windows() && (f.size() <= PULL_SCAN_RANKS || f.bytes() <= PULL_SCAN_BYTES),
              "everybody reads the windows of the ranks before it"),
          line(
              EXCLUSIVE_SCAN,
              "recursive-doubling",
              f -> f.fast() && f.size() > 3 && f.bytes() <= SCAN_BYTES_PER_RANK * f.size(),
              "not large: log₂ p rounds"),
          line(
              EXCLUSIVE_SCAN,
              "chain",
              "large, in rank order, or few ranks: in pieces from rank to rank"));

  /// One line of the table.
  record Line(
      CollectiveKind kind, Algorithm algorithm, Predicate<Facts> condition, String reason) {}

  private Table() {}

  /// A message between hosts takes ten times as long as a look at a window, and one rank of a host
  /// sends what all of them have.
  private static boolean isHierarchical(Facts facts) {
    return facts.hosts() > 0;
  }

  /// @throws IllegalStateException if no line fits; a test holds that there always is one
  static Choice choose(Facts facts) {
    CollectiveKind kind = facts.shape().kind();
    if (facts.size() == 1) {
      return new Choice(Algorithms.alone(kind), "a group of one");
    }
    for (Line line : LINES) {
      if (line.kind == kind
          && line.condition.test(facts)
          && line.algorithm.supports(facts.shape())) {
        return new Choice(line.algorithm, line.reason);
      }
    }
    throw new IllegalStateException("no algorithm for " + facts.shape());
  }

  private static Line line(CollectiveKind kind, String name, String reason) {
    return line(kind, name, _ -> true, reason);
  }

  private static Line line(
      CollectiveKind kind, String name, Predicate<Facts> condition, String reason) {
    return new Line(kind, Algorithms.find(kind, name).orElseThrow(), condition, reason);
  }
}
