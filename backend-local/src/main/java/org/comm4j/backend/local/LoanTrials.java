package org.comm4j.backend.local;

import java.util.Arrays;

/// Finds out by trying whether long data gets to its readers in less time when it is lent than when
/// it is copied. A call that is long publishes piece after piece, the one after the next only when
/// this one has been read: so from one piece to the one after the next takes what both sides take
/// for two, the readers' caches and the owner's included, which neither could measure alone.
///
/// Pieces come in runs that all go one way. Now and then one goes the other way, seldom when that
/// was worse before, sooner when a piece takes another time than it did. What else a program does
/// between two calls is in some of the times, so the median counts, and only what is clearly
/// better; where neither is, nothing is known here.
///
/// One thread at a time; of pieces of about the same length.
final class LoanTrials {
  private static final int RUN = 16;
  private static final int PASSED_OVER = 4; // of a run: the run before is in their times
  private static final int LEAST_RUNS = 4; // between two trials, and by so many sooner
  private static final int MOST_RUNS = 64;

  private final long[] startedNs = new long[RUN + 1];
  private final long[] sorted = new long[RUN - PASSED_OVER];
  private int pieces; // of this run
  private boolean lent; // this run
  private boolean trial;
  private boolean decided;
  private boolean better; // to lend, if that is decided
  private int runs; // until the next trial
  private int distance = LEAST_RUNS;
  private long usualNs; // of the last run that was no trial
  private long triedNs; // the same when the last trial was

  /// Says which way the next piece goes, which is published now.
  ///
  /// @param expected which one is taken for the better one as long as that is not known
  /// @return whether to lend it
  boolean next(long nowNs, boolean expected) {
    if (pieces == RUN) {
      startedNs[RUN] = nowNs;
      end(medianNs());
      pieces = 0;
    }
    if (pieces == 0) {
      begin(decided ? better : expected);
    }
    startedNs[pieces++] = nowNs;
    return lent;
  }

  private void begin(boolean usual) {
    trial = usualNs != 0 && runs == 0;
    lent = trial != usual;
  }

  private void end(long ns) {
    if (!trial) {
      runs = Math.max(0, runs - 1);
      if (isClearlyLess(ns, triedNs) || isClearlyLess(triedNs, ns)) {
        runs = Math.min(runs, distance / LEAST_RUNS);
      }
      usualNs = ns;
      return;
    }
    boolean isBetter = isClearlyLess(ns, usualNs);
    decided = isBetter || isClearlyLess(usualNs, ns);
    better = lent == isBetter;
    distance = isBetter ? LEAST_RUNS : Math.min(MOST_RUNS, 2 * distance);
    runs = distance;
    triedNs = isBetter ? ns : usualNs;
  }

  /// A fifth at least.
  private static boolean isClearlyLess(long ns, long otherNs) {
    return ns + ns / 4 < otherNs;
  }

  /// Of two pieces.
  private long medianNs() {
    for (int i = 0; i < sorted.length; i++) {
      int piece = PASSED_OVER + i;
      sorted[i] = startedNs[piece + 1] - startedNs[piece - 1];
    }
    Arrays.sort(sorted);
    return Math.max(1, sorted[sorted.length / 2]);
  }
}
