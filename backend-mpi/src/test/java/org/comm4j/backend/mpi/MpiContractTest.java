package org.comm4j.backend.mpi;

import static org.assertj.core.api.SoftAssertions.assertSoftly;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.comm4j.tck.LiveReport.Status;
import org.comm4j.tck.LiveVerification;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// The rules of `docs/contract.md` on ranks of every MPI that is installed.
class MpiContractTest {
  private static final Duration BOUND = Duration.ofMinutes(4);

  /// Polls, so that waits end at a deadline.
  private static final Map<String, String> POLLING =
      Map.of("COMM_MPI_WAIT", "test", "COMM_CHECK", "full", "COMM_TIMEOUT", "1min");

  /// How a run is configured, and which rules may depend on that.
  ///
  /// @param checks an expression that their numbers and names match
  /// @param fewest rules that pass at least: fewer would mean that they were not run
  record Variant(int ranks, Map<String, String> settings, String checks, int fewest) {
    /// Polls and checks fully, with more settings.
    static Variant polling(int ranks, Map<String, String> more, String checks, int fewest) {
      Map<String, String> settings = new TreeMap<>(POLLING);
      settings.putAll(more);
      return new Variant(ranks, settings, checks, fewest);
    }
  }

  private static final List<Variant> VARIANTS =
      List.of(
          Variant.polling(1, Map.of(), ".*", 50), // not all need several ranks
          // what a user has where processors suffice: calls wait in the library
          new Variant(2, Map.of("COMM_MPI_WAIT", "native"), ".*", 100),
          Variant.polling(
              2,
              Map.of("COMM_SYNC_SEND", "1", "COMM_MPI_THREADS", "serialized"),
              "(?!.*F4).*(P\\d|F\\d|G\\d|S\\d|X\\d|L\\d).*",
              25),
          // what who sets full has there: calls are compared before that
          new Variant(2, Map.of("COMM_MPI_WAIT", "native", "COMM_CHECK", "full"), ".*M\\d.*", 8),
          // what a user has who sets nothing; reductions, which of three ranks depend on the order
          new Variant(3, Map.of(), ".*(T3|T6|T15|O2|O3|O10|O14).*", 20),
          // the only ones that wait for deadlines: long enough for ranks that share processors
          Variant.polling(
              3,
              Map.of("COMM_REDUCTION", "ordered", "COMM_TIMEOUT", "5s"),
              ".*(B\\d|T\\d|O1\\b|M\\d|F4).*",
              20),
          // each call in many pieces; epilogues are no calls of the library's
          Variant.polling(4, Map.of("COMM_MPI_LARGEST_COUNT", "7"), ".*(O\\d|P\\d).*", 40));

  static final List<Run> RUNS =
      Stream.of(Abi.OPEN_MPI, Abi.MPICH)
          .flatMap(abi -> VARIANTS.stream().map(variant -> new Run(abi, variant)))
          .toList();

  private final long seed = Long.getLong("comm4j.seed", System.nanoTime() & 0xFFFF_FFFFL);

  record Run(Abi abi, Variant variant) {
    int ranks() {
      return variant.ranks();
    }

    @Override
    public String toString() {
      return "%s, %d ranks, %s".formatted(abi, ranks(), variant.settings());
    }
  }

  /// What was found of a rule.
  private record Row(String rule, Status status, String detail) {
    static Row of(String line) {
      String[] fields = line.split("\t", 3);
      return new Row(fields[0], Status.valueOf(fields[1]), fields[2]);
    }
  }

  @ParameterizedTest(name = "{0}")
  @FieldSource("RUNS")
  void rules_onLiveRanks_areKept(Run run, @TempDir Path folder) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(run.abi()), run.ranks());
    Path file = folder.resolve("rows");
    String[] program = {"contract", file.toString(), Long.toString(seed), run.variant().checks()};
    try (var job =
        MpiTestJob.start(launcher, run.ranks(), run.variant().settings(), folder, program)) {
      int code = job.await(BOUND);
      List<Row> rows = rows(file);
      String said = "%s, seed %d:%n%s".formatted(run, seed, job.output());
      assertSoftly(softly -> {
        softly.assertThat(with(Status.FAILED, rows)).as(said).isEmpty();
        softly
            .assertThat(with(Status.DECLARED, rows))
            .as(said)
            .extracting(Row::rule)
            .isSubsetOf(LiveVerification.DECLARABLE);
        softly
            .assertThat(with(Status.PASSED, rows))
            .hasSizeGreaterThanOrEqualTo(run.variant().fewest());
        softly.assertThat(code).as("exit code; " + said).isZero();
        softly.assertThat(crashes(folder)).as(said).isEmpty();
      });
    }
  }

  private static List<Row> with(Status status, List<Row> rows) {
    return rows.stream().filter(row -> row.status() == status).toList();
  }

  private static List<Row> rows(Path file) throws IOException {
    return Files.exists(file) ? Files.readAllLines(file).stream().map(Row::of).toList() : List.of();
  }

  static List<Path> crashes(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.getFileName().toString().startsWith("hs_err")).toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
