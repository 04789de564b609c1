package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.RankLauncher;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Launchers are scripts that say what real ones say.
@EnabledOnOs(value = OS.LINUX, disabledReason = "the backend needs Linux")
class MpiLauncherTest {
  private static final String OPEN_MPI = "mpirun (Open MPI) 5.0.3";
  private static final String DEBIAN = "mpirun.openmpi (OpenRTE) 4.1.4";
  private static final String HYDRA = "HYDRA build details:\n    Version:    4.0.2";
  private static final String INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.11";

  @TempDir Path root;
  private Path bin = Path.of("");

  @BeforeEach
  void makePath() throws IOException {
    root = root.toRealPath();
    bin = folder("path/bin");
  }

  @Test
  void openMpi_inPath_isStartedWithoutBindingAndAsRoot() throws IOException {
    Path mpirun = program("path/bin/mpirun", OPEN_MPI);

    RankLauncher launcher = launcher(library(Abi.OPEN_MPI, "lib"));

    assertThat(launcher.command())
        .containsExactly(mpirun.toString(), "--oversubscribe", "--bind-to", "none", "-n", "4");
    assertThat(launcher.rankVariable()).isEqualTo("OMPI_COMM_WORLD_RANK");
    assertThat(launcher.environment())
        .containsEntry("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .containsEntry("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .hasEntrySatisfying("OMPI_MCA_ras", list -> assertThat(list).startsWith("^").contains("tm"))
        .containsEntry("PRTE_MCA_ras", launcher.environment().get("OMPI_MCA_ras"))
        .containsEntry("COMM_MPI_LIBRARY", root.resolve("lib/libmpi.so").toString());
  }

  @Test
  void mpich_inPath_isStartedWithoutBinding() throws IOException {
    program("path/bin/mpirun", DEBIAN);
    Path hydra = program("path/bin/mpiexec.hydra", HYDRA);

    RankLauncher launcher = launcher(library(Abi.MPICH, "lib"));

    assertThat(launcher.command()).containsExactly(hydra.toString(), "-bind-to", "none", "-n", "4");
    assertThat(launcher.rankVariable()).isEqualTo("PMI_RANK");
    assertThat(launcher.environment())
        .containsOnlyKeys("COMM_MPI_LIBRARY", "HYDRA_RMK")
        .containsEntry("HYDRA_RMK", "user");
  }

  /// Such as hosts that only a part of Open MPI finds.
  @Test
  void environment_setByTheUser_isNotGivenOtherwise() throws IOException {
    program("path/bin/mpirun", OPEN_MPI);
    Map<String, String> own = Map.of("PATH", bin.toString(), "OMPI_MCA_ras", "slurm");
    CommConfig config = CommConfig.builder().build();

    assertThat(new MpiLauncher(library(Abi.OPEN_MPI, "lib"), config, own).starting(4).environment())
        .containsKey("PRTE_MCA_ras")
        .doesNotContainKey("OMPI_MCA_ras");
  }

  /// Variables of a launch that this process is a rank of are kept from the ranks.
  @Test
  void environment_setByAnotherLaunch_isGiven() throws IOException {
    program("path/bin/mpirun", OPEN_MPI);
    Map<String, String> rank =
        Map.of("PATH", bin.toString(), "OMPI_MCA_ras", "slurm", "OMPI_COMM_WORLD_RANK", "0");
    CommConfig config = CommConfig.builder().build();

    var launcher = new MpiLauncher(library(Abi.OPEN_MPI, "lib"), config, rank).starting(4);

    assertThat(launcher.environment()).containsKey("OMPI_MCA_ras");
  }

  @ParameterizedTest
  @CsvSource({
    "lib, bin",
    "lib64/openmpi/lib, lib64/openmpi/bin",
    "lib/release, bin",
    "lib/x86_64-linux-gnu, bin"
  })
  void search_besideTheLibrary_goesBeforePath(String lib, String folder) throws IOException {
    program("path/bin/mpirun.openmpi", DEBIAN);
    Path own = program("opt/mpi/" + folder + "/mpirun", OPEN_MPI);

    assertThat(program(launcher(library(Abi.OPEN_MPI, "opt/mpi/" + lib)))).isEqualTo(own);
  }

  /// As with a library below `/tmp`.
  @ParameterizedTest
  @CsvSource({
    "rwxrwxrwx, , shared, '/shared and what is above it (everybody may write there)'",
    "rwxrwxr-x, daemon, shared/bin, '/shared/bin (group daemon may write there)'"
  })
  void search_folderThatOthersWrite_isLeftOutAndNamed(
      String permissions, @Nullable String group, String folder, String named) throws IOException {
    Path own = program("path/bin/mpirun", OPEN_MPI);
    Path marker = root.resolve("marker");
    Path other = program("shared/bin/mpirun", OPEN_MPI);
    Files.writeString(other, "\ntouch " + marker + "\n", StandardOpenOption.APPEND);
    MpiLibrary library = library(Abi.OPEN_MPI, "shared/mpi/lib");
    allow(permissions, group, root.resolve(folder));

    assertThat(program(launcher(library))).isEqualTo(own);
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> launcher(library, "PATH", ""))
        .satisfies(e -> {
          assertThat(e.reason()).contains("in PATH; left out " + root + named);
          assertThat(e.remedy()).contains("set COMM_MPI_LAUNCHER to its mpirun");
        });
    assertThat(marker).doesNotExist();
  }

  /// As many systems have files made in a home.
  @Test
  void search_folderThatTheOwnersGroupWrites_isLookedAt() throws IOException {
    program("path/bin/mpirun", DEBIAN);
    Path own = program("opt/mpi/bin/mpirun", OPEN_MPI);
    MpiLibrary library = library(Abi.OPEN_MPI, "opt/mpi/lib");
    for (String folder : List.of("opt/mpi", "opt/mpi/bin", "opt/mpi/lib")) {
      Path path = root.resolve(folder);
      allow("rwxrwxr-x", Files.getOwner(path).getName(), path);
    }

    assertThat(program(launcher(library))).isEqualTo(own);
  }

  /// The test is skipped where this user may not give the folder to the group.
  ///
  /// @param group null to leave it
  private static void allow(String permissions, @Nullable String group, Path folder)
      throws IOException {
    if (group != null) {
      try {
        Files.getFileAttributeView(folder, PosixFileAttributeView.class)
            .setGroup(
                folder
                    .getFileSystem()
                    .getUserPrincipalLookupService()
                    .lookupPrincipalByGroupName(group));
      } catch (IOException e) {
        Assumptions.abort("no folder can be given to group %s here: %s".formatted(group, e));
      }
    }
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString(permissions));
  }

  /// Where a link to the library stands says nothing, where it leads does.
  @Test
  void search_linkedLibrary_takesTheLauncherWhereItIs() throws IOException {
    program("usr/bin/mpirun", OPEN_MPI);
    Path own = program("opt/mpi/bin/mpirun", OPEN_MPI);
    MpiLibrary installed = library(Abi.OPEN_MPI, "opt/mpi/lib");
    Path link = folder("usr/lib").resolve("libmpi.so.40");
    Files.createSymbolicLink(link, installed.file());

    assertThat(
            program(
                launcher(
                    new MpiLibrary(
                        link,
                        Abi.OPEN_MPI,
                        MpiLibrary.Maker.OPEN_MPI,
                        "Open MPI 5",
                        "3.1",
                        Set.of()))))
        .isEqualTo(own);
  }

  @Test
  void search_nameLeadsToAnother_isPassedOver() throws IOException {
    program("path/bin/mpirun", HYDRA);
    Path mpiexec = program("path/bin/mpiexec", OPEN_MPI);

    assertThat(program(launcher(library(Abi.OPEN_MPI, "lib")))).isEqualTo(mpiexec);
  }

  @Test
  void search_standardInterface_takesAnyLauncher() throws IOException {
    Path mpiexec = program("path/bin/mpiexec", INTEL);

    assertThat(program(launcher(library(Abi.STANDARD, "lib")))).isEqualTo(mpiexec);
  }

  @Test
  void search_none_saysWhatThereIsAndWhatToDo() throws IOException {
    program("path/bin/mpirun", HYDRA);
    Path silent = program("path/bin/mpiexec", "");

    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> launcher(library(Abi.OPEN_MPI, "lib")))
        .satisfies(e -> {
          assertThat(e.reason())
              .contains("no launcher of Open MPI 9.9 (" + root.resolve("lib/libmpi.so"))
              .contains("mpirun.openmpi, mpirun, mpiexec")
              .contains(bin.resolve("mpirun") + " is of MPICH")
              .contains(silent + " does not say whose it is");
          assertThat(e.remedy()).contains("install openmpi-bin", "COMM_MPI_LAUNCHER");
        });
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> launcher(library(Abi.MPICH, "none/lib"), "PATH", ""))
        .satisfies(e -> assertThat(e.remedy()).contains("install mpich"));
  }

  @Test
  void option_pathOrName_isTaken() throws IOException {
    program("path/bin/mpirun", OPEN_MPI);
    Path other = program("path/bin/other", OPEN_MPI);

    for (String given : List.of(other.toString(), "other")) {
      RankLauncher launcher = launcher(library(Abi.OPEN_MPI, "lib"), MpiLauncher.OPTION, given);
      assertThat(program(launcher)).isEqualTo(other);
      assertThat(launcher.command()).contains("--oversubscribe");
    }
  }

  /// Such as `srun`: nobody knows its options.
  @Test
  void option_doesNotSayWhose_getsTheNumberOnly() throws IOException {
    Path own = program("own", "own 1.0");

    RankLauncher launcher = launcher(library(Abi.MPICH, "lib"), MpiLauncher.OPTION, own.toString());

    assertThat(launcher.command()).containsExactly(own.toString(), "-n", "4");
    assertThat(launcher.rankVariable()).isEqualTo("PMI_RANK");
  }

  @Test
  void option_ofTheOtherLibrary_namesBoth() throws IOException {
    Path mpich = program("mpirun.mpich", HYDRA);

    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(
            () -> launcher(library(Abi.OPEN_MPI, "lib"), MpiLauncher.OPTION, mpich.toString()))
        .withMessageContaining("COMM_MPI_LAUNCHER: '" + mpich + "' starts processes of MPICH")
        .withMessageContaining("Open MPI 9.9 (" + root.resolve("lib/libmpi.so"))
        .withMessageContaining("set COMM_MPI_LIBRARY");
  }

  @ParameterizedTest
  @CsvSource({"no-such-program", "/no/such/program", "/"})
  void option_noProgram_isRefused(String given) {
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> launcher(library(Abi.MPICH, "lib"), MpiLauncher.OPTION, given))
        .withMessageContaining("COMM_MPI_LAUNCHER: '" + given + "' is no program");
  }

  @Test
  void arguments_comeBeforeTheNumber() throws IOException {
    program("path/bin/mpirun", OPEN_MPI);

    assertThat(
            launcher(
                    library(Abi.OPEN_MPI, "lib"),
                    MpiLauncher.ARGUMENTS_OPTION,
                    " --mca btl  self,vader ")
                .command())
        .endsWith("none", "--mca", "btl", "self,vader", "-n", "4");
  }

  private RankLauncher launcher(MpiLibrary library, String... option) {
    CommConfig.Builder config = CommConfig.builder();
    boolean emptyPath = option.length > 0 && option[0].equals("PATH");
    if (option.length > 0 && !emptyPath) {
      config.option(option[0], option[1]);
    }
    return new MpiLauncher(library, config.build(), Map.of("PATH", emptyPath ? "" : bin.toString()))
        .starting(4);
  }

  private static Path program(RankLauncher launcher) {
    return Path.of(launcher.command().getFirst());
  }

  private MpiLibrary library(Abi abi, String folder) throws IOException {
    Path file = folder(folder).resolve("libmpi.so");
    if (!Files.exists(file)) {
      Files.createFile(file);
    }
    String version = abi == Abi.MPICH ? "MPICH 9.9" : "Open MPI 9.9";
    var maker =
        switch (abi) {
          case OPEN_MPI -> MpiLibrary.Maker.OPEN_MPI;
          case MPICH -> MpiLibrary.Maker.MPICH;
          case STANDARD -> MpiLibrary.Maker.UNKNOWN;
        };
    return new MpiLibrary(file, abi, maker, version, "3.1", Set.of());
  }

  /// Which nobody else may write, whatever files are made with here.
  private Path folder(String name) throws IOException {
    return Files.createDirectories(
        root.resolve(name),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
  }

  private Path program(String name, String version) throws IOException {
    Path file = root.resolve(name);
    var _ = folder(root.relativize(file.getParent()).toString());
    Files.writeString(file, "#!/bin/sh\n[ \"$1\" = --version ] && echo '" + version + "'\n");
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
  }
}
