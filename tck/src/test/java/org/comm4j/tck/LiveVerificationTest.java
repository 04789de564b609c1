package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Operation;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.tck.LiveReport.Status;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What the verification of live ranks reports of backends that are broken on purpose.
@Timeout(120)
class LiveVerificationTest {
  private static final int SIZE = 3;
  private static final String CHECKS = ".*\\bO(3|5|15)\\b.*"; // a scan, and others

  /// No deadline ends a call before a test's own bound.
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofMinutes(10)).build();

  private static final Duration PATIENCE = Duration.ofSeconds(1);

  @Test
  void run_wrongResults_failsTheirRule() throws Exception {
    LiveReport report = report(BrokenDoors.displacementsAreOffByOne());
    assertThat(report.passed()).isFalse();
    assertThat(status(report, "O5")).isEqualTo(Status.FAILED);
    assertThat(status(report, "O3")).isEqualTo(Status.PASSED);
  }

  /// A rank that fails alone doesn't leave the others waiting to their deadline.
  @Test
  void run_oneRankThrows_endsOnAllRanksAndNamesIt() throws Exception {
    LiveReport report = report(Throwing::new);
    assertThat(report.rows())
        .filteredOn(row -> row.status() == Status.FAILED)
        .isNotEmpty()
        .allSatisfy(row -> assertThat(row.detail()).startsWith("rank 1, "))
        .anySatisfy(row -> assertThat(row.rule()).isEqualTo("O15"));
    assertThat(status(report, "O3")).isEqualTo(Status.PASSED);
  }

  @Test
  void run_checkNeverEnds_failsAndSaysWhereItIs() throws Exception {
    var said = new StringWriter();
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(1)).build();
    LiveReport report =
        report(
            BrokenDoors.receivesNeverEnd(), ".*receive_shorterMessage_leavesTheRest", config, said);
    assertThat(status(report, "P6")).isEqualTo(Status.FAILED);
    assertThat(said.toString())
        .contains("receive_shorterMessage_leavesTheRest has not ended within")
        .contains("waitForNothing");
  }

  /// Checks of a declared rule are about others too, which nobody may declare.
  @Test
  void run_declaredRules_areTheOnlyOnesThatStandAsDeclared() throws Exception {
    LiveReport report = report(Declaring::new, ".*\\b(P13|F6|X4)\\b.*");
    assertThat(rules(report, Status.DECLARED))
        .contains("P13", "F6", "X4")
        .isSubsetOf(LiveVerification.DECLARABLE);
    assertThat(rules(report, Status.NOT_RUN)).contains("F1", "F10", "G9");
  }

  /// A door that declares all that may be.
  private static final class Declaring extends Door {
    Declaring(BackendCommunicator inner) {
      super(inner, Declaring::new);
    }

    @Override
    public Capabilities capabilities() {
      return new Capabilities(
          inner.capabilities().supported(),
          LiveVerification.DECLARABLE.stream()
              .collect(Collectors.toMap(rule -> rule, _ -> "on purpose")));
    }
  }

  private static List<String> rules(LiveReport report, Status status) {
    return report.rows().stream()
        .filter(row -> row.status() == status)
        .map(LiveReport.Row::rule)
        .toList();
  }

  /// A door whose rank 1 can't do exclusive scans.
  private static final class Throwing extends Door {
    Throwing(BackendCommunicator inner) {
      super(inner, Throwing::new);
    }

    @Override
    @Nullable Operation change(Operation operation) {
      if (rank() == 1 && operation instanceof Collective.ExclusiveScan) {
        throw new TransportFailedException("out of cable", null);
      }
      return operation;
    }
  }

  private static Status status(LiveReport report, String rule) {
    return report.rows().stream()
        .filter(row -> row.rule().equals(rule))
        .findAny()
        .orElseThrow()
        .status();
  }

  /// Verifies a broken communicator, which all ranks find in the same state.
  private static LiveReport report(UnaryOperator<BackendCommunicator> door) throws Exception {
    return report(door, CHECKS);
  }

  private static LiveReport report(UnaryOperator<BackendCommunicator> door, String checks)
      throws Exception {
    return report(door, checks, CONFIG, new StringWriter());
  }

  /// @param said gets what is logged
  private static LiveReport report(
      UnaryOperator<BackendCommunicator> door, String checks, CommConfig config, StringWriter said)
      throws Exception {
    var broken = BrokenOnPurposeTest.Broken.door("on purpose", "", door);
    List<CompletableFuture<LiveReport>> ends = new ArrayList<>();
    try (LocalGroup group = broken.open(SIZE, config)) {
      for (Communicator communicator : group.communicators()) {
        ends.add(
            CompletableFuture.supplyAsync(
                () -> {
                  var log = new PrintWriter(said);
                  LiveReport report =
                      LiveVerification.run(communicator, config, 1, checks, log, PATIENCE);
                  assertThat(communicator.allReduce(1L, ReduceOp.SUM)).isEqualTo(SIZE);
                  return report;
                },
                task -> Thread.ofPlatform().daemon().start(task)));
      }
      for (var end : ends) {
        assertThat(end.get(100, TimeUnit.SECONDS)).isEqualTo(ends.getFirst().get());
      }
    }
    return ends.getFirst().get();
  }
}
