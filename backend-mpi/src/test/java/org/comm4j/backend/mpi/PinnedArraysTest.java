package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Arrays lent to MPI while the collector moves what is around them.
class PinnedArraysTest {
  private static final Duration BOUND = Duration.ofMinutes(3);

  @TempDir Path folder;

  /// By the library's blocking functions, which get arrays where they are if the collector goes on
  /// around them, else copies; not one element may be lost to a collection.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, G1", "OPEN_MPI, Serial", "MPICH, G1"})
  void collective_arraysWhileObjectsMove_isWhole(Abi abi, String collector) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "native");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, MpiRank.ARRAYS, collector)) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter("2 of 2 rounds"::equals)).hasSize(2);
      boolean pins = collector.equals("G1") && "amd64".equals(System.getProperty("os.arch"));
      assertThat(job.output().lines().filter(("pins arrays: " + pins)::equals)).hasSize(2);
      assertThat(job.output().lines().filter("has not back: 0"::equals)).hasSize(2);
    }
  }
}
