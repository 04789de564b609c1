package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LoanTrialsTest {
  private static final int PIECES = 4000;

  private final LoanTrials trials = new LoanTrials();
  private long nowNs;

  /// Publishes pieces, each of which takes its time by the way it goes.
  ///
  /// @param gapNs what passes before a piece, by its number
  /// @return how many of the last three quarters were lent, in percent
  private long lent(
      int pieces, long copyNs, long loanNs, boolean expected, LongUnaryOperator gapNs) {
    int lent = 0;
    for (int piece = 0; piece < pieces; piece++) {
      nowNs += gapNs.applyAsLong(piece);
      boolean isLent = trials.next(nowNs, expected);
      nowNs += isLent ? loanNs : copyNs;
      lent += isLent && piece >= pieces / 4 ? 1 : 0;
    }
    return 100L * lent / (pieces - pieces / 4);
  }

  private static long noGap(long unused) {
    return 0;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void next_loansTakeHalf_areMade(boolean expected) {
    assertThat(lent(PIECES, 20_000, 10_000, expected, LoanTrialsTest::noGap)).isGreaterThan(90);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void next_loansTakeTwice_areSeldomTried(boolean expected) {
    assertThat(lent(PIECES, 10_000, 20_000, expected, LoanTrialsTest::noGap)).isBetween(1L, 5L);
  }

  @Test
  void next_noClearDifference_isAsExpected() {
    assertThat(lent(PIECES, 10_000, 9_000, false, LoanTrialsTest::noGap)).isLessThan(5);
    assertThat(lent(PIECES, 9_000, 10_000, true, LoanTrialsTest::noGap)).isGreaterThan(95);
  }

  /// As where a virtual machine's processors move.
  @Test
  void next_timesChange_isFoundOut() {
    assertThat(lent(PIECES, 10_000, 20_000, false, LoanTrialsTest::noGap)).isLessThan(5);
    assertThat(lent(1000, 40_000, 20_000, false, LoanTrialsTest::noGap)).isGreaterThan(80);
    assertThat(lent(1000, 10_000, 20_000, false, LoanTrialsTest::noGap)).isLessThan(30);
  }

  /// Of a call of 2 MiB each.
  @Test
  void next_programComputesBetweenCalls_thatDoesNotCount() {
    LongUnaryOperator gap = piece -> piece % 8 == 0 ? 5_000_000 : 0;
    assertThat(lent(PIECES, 20_000, 10_000, false, gap)).isGreaterThan(90);
  }

  /// Calls of one piece: then times say nothing, and what is expected is done.
  @Test
  void next_programComputesBetweenPieces_isAsExpected() {
    var random = new Random(7);
    LongUnaryOperator gap = _ -> 500_000 + random.nextInt(500_000);
    assertThat(lent(PIECES, 20_000, 10_000, true, gap)).isGreaterThan(75);
    assertThat(lent(PIECES, 20_000, 10_000, false, gap)).isLessThan(25);
  }
}
