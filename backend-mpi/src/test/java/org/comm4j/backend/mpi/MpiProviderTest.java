package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicators;
import org.comm4j.api.spi.Availability;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@EnabledOnOs(OS.LINUX)
class MpiProviderTest {
  private static final CommConfig CONFIG = CommConfig.builder().build();

  @Test
  void provider_isFound() {
    assertThat(Backends.availableBackends(CONFIG)).extracting(BackendInfo::name).contains("mpi");
  }

  @Test
  void details_library_tellWhichAndWhatElseThereIs(@TempDir Path root) throws IOException {
    Path openMpi = FakeLibrary.openMpi("4.1.4").write(root.resolve("usr/lib/libmpi.so.40"));
    Path mpich = FakeLibrary.mpich("4.2").write(root.resolve("usr/lib/libmpich.so.12"));
    var provider = new MpiProvider(new MpiLibraries(Map.of(), root));

    assertThat(provider.availability(CONFIG)).isEqualTo(Availability.ready());
    assertThat(provider.details(CONFIG))
        .containsExactly(
            Map.entry("library", "Open MPI 4.1.4"),
            Map.entry("file", openMpi.toRealPath().toString()),
            Map.entry("standard", "MPI 3.0"),
            Map.entry("interface", "open-mpi"),
            Map.entry("features", "none"),
            Map.entry("threads", "known once MPI runs"),
            Map.entry("others", "MPICH 4.2 (%s)".formatted(mpich.toRealPath())));
    CommConfig other = CommConfig.builder().option(MpiLibraries.OPTION, mpich.toString()).build();
    assertThat(provider.details(other))
        .containsEntry("library", "MPICH 4.2")
        .containsEntry("features", "large-counts, persistent-collectives (not used)")
        .doesNotContainKey("others");
  }

  @Test
  void details_noLibrary_areNone(@TempDir Path root) {
    assertThat(new MpiProvider(new MpiLibraries(Map.of(), root)).details(CONFIG)).isEmpty();
  }

  /// The variables of two launchers may say the same, but for agents that mpirun has started.
  @ParameterizedTest
  @CsvSource({
    "COMM_RANK=1 COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4, true",
    "RANK=1 WORLD_SIZE=4 MASTER_ADDR=a MASTER_PORT=1, OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4, true",
    "COMM_RANK=1 COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2, false",
    "COMM_RANK=1 COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4, false",
    "COMM_RANK=1 COMM_WORLD_SIZE=4, PATH=/bin, false",
  })
  void availability_twoLaunchers_isReadyWhereMpisSaysTheSame(
      String launch, String mpirun, boolean expected, @TempDir Path root) throws IOException {
    var _ = FakeLibrary.openMpi("4.1.4").write(root.resolve("usr/lib/libmpi.so.40"));
    var provider = new MpiProvider(new MpiLibraries(variables(mpirun), root));
    CommConfig config = CommConfig.fromEnvironment(variables(launch));

    Availability found = provider.availability(config);

    if (expected) {
      assertThat(found).isEqualTo(Availability.ready());
    } else {
      assertThat(((Availability.Unavailable) found).reason())
          .contains("to an MPI library each of its processes is alone");
    }
  }

  /// Without its option `--mpi` srun tells a library nothing.
  @ParameterizedTest
  @CsvSource({
    "PATH=/bin, 2, auto, false",
    "PMIX_MCA_gds=hash, 2, auto, false",
    "PMIX_RANK=0, 2, auto, true",
    "PMI_RANK=0, 2, auto, true",
    "PATH=/bin, 1, auto, true",
    "PATH=/bin, 2, mpi, true" // PMI-1 has no variables: whoever asks for mpi may know
  })
  void availability_srun_isReadyWhereItTellsALibraryOfTheRanks(
      String told, int size, String asked, boolean expected, @TempDir Path root)
      throws IOException {
    var _ = FakeLibrary.openMpi("4.1.4").write(root.resolve("usr/lib/libmpi.so.40"));
    var provider = new MpiProvider(new MpiLibraries(variables("SLURM_PROCID=0 " + told), root));
    CommConfig config =
        CommConfig.fromEnvironment(
                variables("SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_NTASKS=" + size))
            .toBuilder()
            .backend(asked)
            .build();

    Availability found = provider.availability(config);

    if (expected) {
      assertThat(found).isEqualTo(Availability.ready());
    } else {
      var unavailable = (Availability.Unavailable) found;
      assertThat(unavailable.reason()).contains("srun started this launch without PMI");
      assertThat(unavailable.remedy()).contains("--mpi=pmix", "--mpi=pmi2", "srun --mpi=list");
    }
  }

  private static Map<String, String> variables(String text) {
    return Stream.of(text.split(" "))
        .map(each -> each.split("=", 2))
        .collect(Collectors.toMap(each -> each[0], each -> each[1]));
  }

  @ParameterizedTest
  @CsvSource({"auto, AUTO", "native, NATIVE", "Test, TEST"})
  void wait_isRead(String text, Wait expected) {
    assertThat(Wait.of(CommConfig.fromEnvironment(Map.of("COMM_MPI_WAIT", text))))
        .isEqualTo(expected);
    assertThat(Wait.of(CONFIG)).isEqualTo(Wait.AUTO);
  }

  @ParameterizedTest
  @CsvSource({
    "AUTO, false, true",
    "AUTO, true, false",
    "NATIVE, false, true",
    "NATIVE, true, true",
    "TEST, false, false",
    "TEST, true, false"
  })
  void wait_ranksExceedCores_testsUnlessToldOtherwise(
      Wait wait, boolean oversubscribed, boolean inLibrary) {
    assertThat(wait.isInLibrary(oversubscribed)).isEqualTo(inLibrary);
  }

  @ParameterizedTest
  @ValueSource(strings = {"spin", "autos", "0"})
  void open_badWait_isRefused(String text) {
    var config = CommConfig.fromEnvironment(Map.of("COMM_MPI_WAIT", text));
    assertThatThrownBy(() -> Communicators.open(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("COMM_MPI_WAIT: '%s' (expected: auto, native or test)".formatted(text));
  }

  @Test
  void provider_badWait_isListedWithIt() {
    var config = CommConfig.fromEnvironment(Map.of("COMM_MPI_WAIT", "spin"));
    assertThat(Backends.availableBackends(config))
        .filteredOn(each -> each.name().equals("mpi"))
        .extracting(each -> each.reason().orElse(""))
        .singleElement(STRING)
        .startsWith("COMM_MPI_WAIT: 'spin' (expected: auto, native or test)");
  }

  @ParameterizedTest
  @ValueSource(strings = {"1", "0", "2147483648", "many"})
  void checkOptions_badLargestCount_isRefused(String text) {
    var config = CommConfig.fromEnvironment(Map.of("COMM_MPI_LARGEST_COUNT", text));
    assertThatThrownBy(() -> new MpiProvider().checkOptions(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(
            "COMM_MPI_LARGEST_COUNT: '%s' (expected: a whole number, 2..2147483647"
                .formatted(text));
  }

  @ParameterizedTest
  @CsvSource({"multiple, MULTIPLE", "Serialized, SERIALIZED"})
  void threads_areRead(String text, ThreadLevel expected) {
    assertThat(ThreadLevel.of(CommConfig.fromEnvironment(Map.of("COMM_MPI_THREADS", text))))
        .isEqualTo(expected);
    assertThat(ThreadLevel.of(CONFIG)).isEqualTo(ThreadLevel.MULTIPLE);
  }

  @ParameterizedTest
  @CsvSource({
    "funneled, auto, COMM_MPI_THREADS: 'funneled' (expected: multiple",
    "serialized, native, COMM_MPI_WAIT: 'native' (expected: test or auto"
  })
  void open_badThreads_isRefused(String threads, String wait, String expected) {
    var config =
        CommConfig.fromEnvironment(Map.of("COMM_MPI_THREADS", threads, "COMM_MPI_WAIT", wait));
    assertThatThrownBy(() -> Communicators.open(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(expected);
  }
}
