package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.LiveReport;
import org.comm4j.tck.LiveReport.Row;
import org.comm4j.tck.LiveReport.Status;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(180)
class VerifyTest {
  /// Hosts of their own run nearly all of it, where they can be made (`AeronHostsTest`), and each
  /// backend runs all checks in its contract.
  @ParameterizedTest
  @CsvSource({"local, '.*([A-Z]1|F8)\\b.*', 10", "shm, '.*([OFLS]1|F8)\\b.*', 4"})
  @Execution(ExecutionMode.CONCURRENT) // much of it waits for deadlines
  void verify_backend_isFineAndListsTheRulesOfItsChecks(String backend, String checks, int fewest)
      throws Exception {
    String options = Launches.JVM_OPTIONS + " -Dcomm4j.check=" + checks;
    try (var launch =
        Launches.start(
            Map.of("JDK_JAVA_OPTIONS", options),
            "verify",
            "--backend",
            backend,
            "-n",
            "3",
            "--seed",
            "5")) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out())
          .containsPattern("(?m)^O1 +passed")
          .containsPattern("(?m)^F8 +not run +a rank would have to die")
          .containsPattern(
              "(?m)^" + backend + " on 3 ranks, seed 5: [0-9]+ rules passed, 0 failed");
      assertThat(done.out().lines().filter(line -> line.matches("\\w+ +passed.*")))
          .hasSizeGreaterThanOrEqualTo(fewest);
    }
  }

  @ParameterizedTest
  @EnumSource(Listing.Format.class)
  void print_ruleFailed_hasItsDetail(Listing.Format format) {
    var report =
        new LiveReport(
            9,
            List.of(
                new Row("O1", Status.PASSED, ""),
                new Row("O2", Status.FAILED, "rank 1, reduce: wrong, very"),
                new Row("F5", Status.NOT_RUN, "a rank would have to die")));
    var out = new StringWriter();
    var log = new StringWriter();
    LocalGroup.run(
        1,
        CommConfig.builder().backend("local").build(),
        communicator ->
            VerifyProgram.print(
                report, communicator, format, new PrintWriter(out), new PrintWriter(log)));
    String summary = "local on 1 ranks, seed 9: 1 rules passed, 1 failed, 0 declared, 1 not run";
    assertThat(out.toString()).contains("rank 1, reduce: wrong, very").contains("not run");
    assertThat(format == Listing.Format.TABLE ? out.toString() : log.toString()).contains(summary);
  }

  @Test
  void verify_noRanks_isWrongUsage() throws Exception {
    var done = Launches.run("verify", "--backend", "local", "-n", "0");
    assertThat(done.code()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains("-n: 0", "1 or more");
  }
}
