package org.comm4j.core.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.comm4j.core.schedule.Arrow;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Cost;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.ScheduleText;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Step;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Plans cost what their descriptions say.
class CostTest {
  /// 4-byte elements; for kinds with a part per rank the count is of a part.
  @ParameterizedTest
  @CsvSource({
    // algorithm, ranks, count: latency, messages, sent bytes
    "BARRIER, dissemination, 8, 0, 3, 3, 0",
    "BARRIER, dissemination, 9, 0, 4, 4, 0",
    "BROADCAST, binomial, 8, 100, 3, 3, 1200",
    "BROADCAST, scatter-ring, 8, 80, 10, 10, 560",
    "REDUCE, linear, 8, 100, 7, 1, 400",
    "REDUCE, binomial, 8, 100, 3, 1, 400",
    "REDUCE, pairwise, 8, 80, 8, 8, 320",
    "ALL_REDUCE, gather-fold, 8, 10, 3, 3, 280",
    "ALL_REDUCE, recursive-doubling, 8, 100, 3, 3, 1200",
    "ALL_REDUCE, recursive-doubling, 9, 100, 5, 4, 1600",
    "ALL_REDUCE, direct, 8, 80, 2, 14, 560",
    "ALL_REDUCE, rabenseifner, 8, 80, 6, 6, 560",
    "ALL_REDUCE, pairwise, 8, 80, 14, 14, 560",
    "ALL_REDUCE, ring, 8, 80, 14, 14, 560",
    "GATHER, linear, 8, 10, 1, 1, 40",
    "GATHER, binomial, 8, 10, 3, 1, 160",
    "ALL_GATHER, bruck, 7, 10, 3, 3, 240",
    "ALL_GATHER, recursive-doubling, 8, 10, 3, 3, 280",
    "ALL_GATHER, ring, 8, 10, 7, 7, 280",
    "SCATTER, linear, 8, 10, 1, 7, 280",
    "SCATTER, binomial, 8, 10, 3, 3, 280",
    "REDUCE_SCATTER, recursive-halving, 8, 10, 3, 3, 280",
    "REDUCE_SCATTER, direct, 8, 10, 1, 7, 280",
    "REDUCE_SCATTER, pairwise, 8, 10, 7, 7, 280",
    "REDUCE_SCATTER, ring, 8, 10, 7, 7, 280",
    "ALL_TO_ALL, bruck, 8, 10, 3, 3, 480",
    "ALL_TO_ALL, direct, 8, 10, 1, 7, 280",
    "ALL_TO_ALL, pairwise, 8, 10, 7, 7, 280",
    "SCAN, recursive-doubling, 8, 100, 3, 3, 1200",
    "SCAN, chain, 8, 100, 7, 1, 400",
    "EXCLUSIVE_SCAN, recursive-doubling, 8, 100, 4, 4, 1600",
    // 10 pieces of 64 KiB: p - 2 + 10
    "SCAN, chain, 8, 163840, 16, 10, 655360",
  })
  void cost_messages_isAsDescribed(
      CollectiveKind kind,
      String name,
      int size,
      long count,
      int latency,
      long messages,
      long bytes) {
    assertThat(cost(kind, name, Calls.of(kind, size, count)))
        .isEqualTo(new Cost(latency, messages, bytes, 0, 0));
  }

  @ParameterizedTest
  @CsvSource({
    // algorithm, ranks, count: latency, read bytes, stages
    "BARRIER, pull, 8, 0, 1, 0, 1",
    "BROADCAST, pull, 8, 100, 1, 400, 1",
    "REDUCE, one-stage, 8, 100, 1, 2800, 1",
    "REDUCE, two-stage, 8, 80, 2, 560, 2",
    "ALL_REDUCE, one-stage, 8, 100, 1, 2800, 1",
    "ALL_REDUCE, two-stage, 8, 80, 2, 560, 2",
    "GATHER, pull, 8, 10, 1, 280, 1",
    "ALL_GATHER, pull, 8, 10, 1, 280, 1",
    "SCATTER, pull, 8, 10, 1, 40, 1",
    "REDUCE_SCATTER, pull, 8, 10, 1, 280, 1",
    "ALL_TO_ALL, pull, 8, 10, 1, 280, 1",
    "SCAN, pull, 8, 100, 1, 2800, 1",
    "EXCLUSIVE_SCAN, pull, 8, 100, 1, 2800, 1",
  })
  void cost_peerMemory_isAsDescribed(
      CollectiveKind kind,
      String name,
      int size,
      long count,
      int latency,
      long readBytes,
      int stages) {
    assertThat(cost(kind, name, Calls.of(kind, size, count).withWindow(1 << 20)))
        .isEqualTo(new Cost(latency, 0, 0, readBytes, stages));
  }

  @Test
  void cost_widened_countsTheWireType() {
    Calls calls = Calls.of(CollectiveKind.ALL_REDUCE, 8, 80).withWidened(true);
    // Raw 2-byte values there and back, against 4-byte partials there and finished values back; the
    // first round of a ring is raw too.
    assertThat(cost(CollectiveKind.ALL_REDUCE, "pairwise", calls).sentBytes()).isEqualTo(280);
    assertThat(cost(CollectiveKind.ALL_REDUCE, "ring", calls).sentBytes())
        .isEqualTo(20 + 6 * 40 + 140);
  }

  @Test
  void cost_deadlock_isRefused() {
    Shape shape = Calls.of(CollectiveKind.BARRIER, 2, 0).shape(0);
    assertThatThrownBy(() ->
            Cost.of(
                shape,
                rank ->
                    Schedule.of(0, 0, List.of(Round.of(new Step.Send(1 - rank, Shapes.input(0)))))))
        .hasMessage("rank 0 waits for ever in round 0");
  }

  @Test
  void text_broadcast_showsRanksRoundsAndSteps() {
    Algorithm binomial = Algorithms.find(CollectiveKind.BROADCAST, "binomial").orElseThrow();
    Shape shape = Calls.of(CollectiveKind.BROADCAST, 3, 4).shape(0);
    assertThat(ScheduleText.of(3, rank -> binomial.plan(shape, rank)))
        .isEqualTo(
            """
            rank 0
              round 0: send input[0..4) to 2
              round 1: send input[0..4) to 1
            rank 1
              round 1: receive output[0..4) from 0
            rank 2
              round 0: receive output[0..4) from 0
            """);
    assertThat(ScheduleText.picture(3, rank -> binomial.plan(shape, rank)))
        .isEqualTo(
            """
            round 0: 0→2 ×4
            round 1: 0→1 ×4
            """);
  }

  @Test
  void arrows_peerMemory_goFromPublisherToReader() {
    Algorithm pull = Algorithms.find(CollectiveKind.BROADCAST, "pull").orElseThrow();
    Shape shape = Calls.of(CollectiveKind.BROADCAST, 3, 4).withWindow(64).shape(0);
    assertThat(Arrow.of(3, rank -> pull.plan(shape, rank)))
        .containsExactly(
            new Arrow(0, 0, 1, 4, Arrow.Kind.READ), new Arrow(0, 0, 2, 4, Arrow.Kind.READ));
    assertThat(ScheduleText.picture(3, rank -> pull.plan(shape, rank)))
        .isEqualTo("round 0: 0⇢1 ×4  0⇢2 ×4\n");
  }

  private static Cost cost(CollectiveKind kind, String name, Calls calls) {
    Algorithm algorithm = Algorithms.find(kind, name).orElseThrow();
    return Cost.of(calls.shape(0), rank -> algorithm.plan(calls.shape(rank), rank));
  }
}
