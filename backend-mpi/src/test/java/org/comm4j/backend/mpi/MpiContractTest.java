package org.comm4j.backend.mpi;

import static org.assertj.core.api.SoftAssertions.assertSoftly;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.tck.LiveReport.Status;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// The rules of `docs/contract.md` on ranks of every MPI that is installed.
class MpiContractTest {
  private static final Duration BOUND = Duration.ofMinutes(4);

  /// Polls, so that waits end at a deadline.
  private static final Map<String, String> SETTINGS =
      Map.of("COMM_MPI_WAIT", "test", "COMM_CHECK", "full", "COMM_TIMEOUT", "1min");

  /// How the run with so many ranks is configured, and which rules may depend on that.
  ///
  /// @param checks an expression that their numbers and names match
  /// @param fewest rules that pass at least: fewer would mean that they were not run
  record Variant(Map<String, String> settings, String checks, int fewest) {}

  private static final Map<Integer, Variant> VARIANTS =
      Map.of(
          1,
          new Variant(Map.of(), ".*", 50), // not all need several ranks
          2,
          new Variant(
              Map.of("COMM_SYNC_SEND", "1", "COMM_MPI_THREADS", "serialized"),
              "(?!.*F4).*(P\\d|F\\d|G\\d|S\\d|X\\d).*",
              25),
          3,
          // the only ones that wait for deadlines: long enough for ranks that share processors
          new Variant(
              Map.of("COMM_REDUCTION", "ordered", "COMM_TIMEOUT", "6s"),
              ".*(B\\d|T\\d|O1|M\\d|F4).*",
              20),
          4,
          new Variant(Map.of("COMM_MPI_LARGEST_COUNT", "7"), "(?!.*F4).*", 100));

  static final List<Run> RUNS =
      Stream.of(Abi.OPEN_MPI, Abi.MPICH)
          .flatMap(abi -> IntStream.rangeClosed(1, 4).mapToObj(ranks -> new Run(abi, ranks)))
          .toList();

  private final long seed = Long.getLong("comm4j.seed", System.nanoTime() & 0xFFFF_FFFFL);

  record Run(Abi abi, int ranks) {
    Map<String, String> settings() {
      Map<String, String> settings = new HashMap<>(SETTINGS);
      settings.putAll(variant().settings());
      return settings;
    }

    Variant variant() {
      return Objects.requireNonNull(VARIANTS.get(ranks));
    }

    @Override
    public String toString() {
      Map<String, String> settings = variant().settings();
      String more = settings.isEmpty() ? "" : ", " + settings;
      return "%s, %d ranks%s".formatted(abi, ranks, more);
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
    try (var job = MpiTestJob.start(launcher, run.ranks(), run.settings(), folder, program)) {
      int code = job.await(BOUND);
      List<Row> rows = rows(file);
      String said = "%s, seed %d:%n%s".formatted(run, seed, job.output());
      assertSoftly(softly -> {
        softly.assertThat(with(Status.FAILED, rows)).as(said).isEmpty();
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
