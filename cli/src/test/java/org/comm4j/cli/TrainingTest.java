package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The example that README begins with ends with the same bits on every backend.
@Timeout(120)
class TrainingTest {
  private static String checksumOfShm = "";

  @BeforeAll
  static void trainOverShm() throws Exception {
    checksumOfShm = train("shm", Map.of());
  }

  @Test
  void readme_showsTheChecksum() throws Exception {
    assertThat(Files.readString(Path.of("..", "README.md"))).contains("checksum " + checksumOfShm);
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "aeron"})
  void train_overAnotherBackend_hasTheChecksumOfShm(String backend) throws Exception {
    assertThat(train(backend, Map.of())).isEqualTo(checksumOfShm);
  }

  @ParameterizedTest
  @CsvSource({"libmpi.so.40, mpirun.openmpi", "libmpich.so.12, mpiexec.mpich"})
  void train_overMpi_hasTheChecksumOfShm(String library, String launcher) throws Exception {
    assumeTrue(Binding.isProgram(launcher, System.getenv("PATH")), "there is no " + launcher);
    assertThat(train("mpi", Map.of("COMM_MPI_LIBRARY", library))).isEqualTo(checksumOfShm);
  }

  /// {@return the checksum, which all ranks have alike}
  private static String train(String backend, Map<String, String> environment) throws Exception {
    String training = Path.of("..", "examples", "DigitsTraining.java").toString();
    Commands.Done done;
    try (var launch =
        Launches.start(environment, "run", "-n", "4", "--backend", backend, training)) {
      done = launch.await();
    }
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out())
        .contains("[0] 4 rank(s) over " + backend)
        .containsPattern("\\[0\\] accuracy 9\\d\\.\\d");
    List<String> checksums =
        done.out()
            .lines()
            .filter(line -> line.contains("] checksum "))
            .map(line -> line.substring(line.indexOf("checksum ") + "checksum ".length()))
            .toList();
    assertThat(checksums).hasSize(4).containsOnly(checksums.getFirst());
    return checksums.getFirst();
  }
}
