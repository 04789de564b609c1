package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.backend.mpi.MpiLibrary.Feature;
import org.comm4j.backend.mpi.MpiLibrary.Maker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class MpiLibrariesTest {
  private static final Map<String, String> MPIRUN =
      Map.of("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "2");
  private static final Map<String, String> HYDRA =
      Map.of("PMI_RANK", "0", "PMI_SIZE", "2", "HYDI_CONTROL_FD", "7");
  private static final Map<String, String> SRUN =
      Map.of("SLURM_PROCID", "0", "PMI_RANK", "0", "PMI_SIZE", "2");

  /// Stands for the host's root.
  @TempDir Path root;

  // --- what a file is ---

  @Test
  void of_eachKind_tellsWhatItIs() throws IOException {
    MpiLibrary openMpi = MpiLibrary.of(FakeLibrary.openMpi("4.1.4").write(root.resolve("a.so")));
    assertThat(openMpi.abi()).isEqualTo(Abi.OPEN_MPI);
    assertThat(openMpi.maker()).isEqualTo(Maker.OPEN_MPI);
    assertThat(openMpi.version()).isEqualTo("Open MPI 4.1.4");
    assertThat(openMpi.standard()).isEqualTo("3.0");
    assertThat(openMpi.features()).isEmpty();

    MpiLibrary mpich =
        MpiLibrary.of(
            FakeLibrary.mpich("4.0.2")
                .exports("MPIX_Comm_revoke", "MPIX_Comm_shrink", "MPIX_Comm_agree")
                .exports("MPI_Session_init")
                .write(root.resolve("b.so")));
    assertThat(mpich.abi()).isEqualTo(Abi.MPICH);
    assertThat(mpich.version()).isEqualTo("MPICH 4.0.2");
    assertThat(mpich.standard()).isEqualTo("4.0");
    assertThat(mpich.features()).containsExactlyInAnyOrder(Feature.values());

    MpiLibrary standard = MpiLibrary.of(FakeLibrary.standard("5.0").write(root.resolve("c.so")));
    assertThat(standard.abi()).isEqualTo(Abi.STANDARD);
    assertThat(standard.maker()).isEqualTo(Maker.MPICH);
    assertThat(standard.version()).isEqualTo("MPICH 5.0");
  }

  @Test
  void of_someFunctionsWithLargeCounts_hasNone() throws IOException {
    FakeLibrary some = FakeLibrary.openMpi("5.0").exports("MPI_Allreduce_c", "MPI_Iallreduce_c");

    assertThat(MpiLibrary.of(some.write(root.resolve("a.so"))).features()).isEmpty();
  }

  /// Libraries of MPI 5 have the functions of the standard's interface under their own one too.
  @Test
  void of_ownInterfaceOfNewLibrary_isNotTheStandards() throws IOException {
    Path file = root.resolve("lib.so");
    assertThat(
            MpiLibrary.of(FakeLibrary.openMpi("6.0.0").exports("MPI_Abi_get_version").write(file))
                .abi())
        .isEqualTo(Abi.OPEN_MPI);
    assertThat(
            MpiLibrary.of(FakeLibrary.mpich("5.0").exports("MPI_Abi_get_version").write(file))
                .abi())
        .isEqualTo(Abi.MPICH);
  }

  /// Newer ones have their own variables in another library, of which they take them.
  @Test
  void of_splitLibrary_isToldByWhatItTakes() throws IOException {
    Path file = root.resolve("libmpi_abi.so.1.0.0");
    var library =
        MpiLibrary.of(
            new FakeLibrary().exports("MPI_Init").imports("ompi_mpi_comm_world").write(file));
    assertThat(library.abi()).isEqualTo(Abi.STANDARD);
    assertThat(library.maker()).isEqualTo(Maker.OPEN_MPI);
    assertThat(library.version()).isEqualTo("Open MPI, libmpi_abi.so.1.0.0");
  }

  @Test
  void of_strangersWithMpichsName_haveItsInterface() throws IOException {
    Path file = root.resolve("lib.so");
    for (String soname : List.of("libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12")) {
      new FakeLibrary().soname(soname).exports("MPI_Init").write(file);
      assertThat(MpiLibrary.of(file).abi()).as(soname).isEqualTo(Abi.MPICH);
    }
  }

  // --- named ---

  @Test
  void find_namedFile_isTheOnlyOne() throws IOException {
    FakeLibrary.openMpi("4.1.4").write(root.resolve("usr/lib/libmpi.so.40"));
    Path named = FakeLibrary.mpich("4.2").write(root.resolve("mine/libmine.so"));
    Path link = Files.createSymbolicLink(root.resolve("link.so"), named);

    assertThat(files(Map.of(), named(link.toString()))).containsExactly(named.toRealPath());
  }

  @Test
  void find_namedByName_isLookedForInThePathFirst() throws IOException {
    Path first = FakeLibrary.mpich("4.2").write(root.resolve("mine/libmine.so"));
    Path second = FakeLibrary.mpich("4.1").write(root.resolve("usr/lib/libmine.so"));
    var environment = Map.of("LD_LIBRARY_PATH", "/nowhere::" + root.resolve("mine"));

    assertThat(files(environment, named("libmine.so")))
        .containsExactly(first.toRealPath(), second.toRealPath());
    assertThat(files(Map.of(), named("libmine.so"))).containsExactly(second.toRealPath());
  }

  @Test
  void availability_namedWrongly_saysWhatIsWrong() throws IOException {
    FakeLibrary.openMpi("4.1.4").write(root.resolve("usr/lib/libmpi.so.40"));
    Path other = new FakeLibrary().exports("open").write(root.resolve("usr/lib/other.so"));
    Path text =
        Files.writeString(root.resolve("usr/lib/text.so"), "INPUT(libmpi.so.40) ".repeat(9));
    Path strange = new FakeLibrary().exports("MPI_Init").write(root.resolve("strange.so"));
    Path half = Files.write(root.resolve("half.so"), Arrays.copyOf(Files.readAllBytes(other), 200));

    assertThat(problem(other))
        .contains("'" + other + "' is no MPI library: it exports no MPI_Init");
    assertThat(problem(text)).contains("is no shared library: it does not begin as ELF files do");
    assertThat(problem(strange)).contains("whose binary interface is not known");
    assertThat(problem(half)).contains("is truncated: it ends at byte 200");
    assertThat(problem(root.resolve("none.so"))).contains("is not there");
    assertThat(problem(root)).contains("is no file");
    assertThat(problem(Path.of("libnone.so")))
        .contains("'libnone.so' is in no folder of libraries");
    assertThat(problem(Path.of("other.so")))
        .contains("'other.so' can't be used (", "usr/lib/other.so is no MPI library: it exports");
  }

  private String problem(Path named) {
    var config = named(named.toString());
    assertThat(here(Map.of()).choose(config)).isEmpty();
    var missing = (Availability.Unavailable) here(Map.of()).availability(config);
    assertThat(missing.reason()).startsWith("COMM_MPI_LIBRARY: '" + named);
    assertThat(missing.remedy()).contains("give it the path of an MPI library");
    return missing.reason();
  }

  // --- found ---

  @Test
  void find_links_countOnce() throws IOException {
    Path file = FakeLibrary.openMpi("4.1.4").write(root.resolve("usr/lib64/libmpi.so.40.30.4"));
    Files.createSymbolicLink(root.resolve("usr/lib64/libmpi.so.40"), file.getFileName());
    Files.createSymbolicLink(root.resolve("usr/lib64/libmpi.so"), Path.of("libmpi.so.40"));
    Files.createSymbolicLink(root.resolve("lib64"), Path.of("usr/lib64"));
    Files.createSymbolicLink(root.resolve("usr/lib64/libmpich.so"), Path.of("gone"));

    assertThat(files(Map.of())).containsExactly(file.toRealPath());
  }

  @Test
  void find_loadersConfiguration_isFollowed() throws IOException {
    Path etc = Files.createDirectories(root.resolve("etc/ld.so.conf.d"));
    Files.writeString(
        etc.resolveSibling("ld.so.conf"),
        """
        # the usual
        include ld.so.conf.d/*.conf
        include /etc/more.conf /etc/none.conf
        hwcap 0 nosegneg
        relative/folder
        """);
    Files.writeString(etc.resolve("b.conf"), "/b # second\n");
    Files.writeString(etc.resolve("a.conf"), "include /etc/ld.so.conf\n/a=libc6\n");
    Files.writeString(etc.resolve("c.txt"), "/c\n");
    Files.writeString(etc.resolveSibling("more.conf"), "/d:/e,/f\t/g");

    List<Path> folders = new LibraryFolders(root).ofHost();
    assertThat(folders.subList(0, 6)).containsExactly(below("a", "b", "d", "e", "f", "g"));
    assertThat(folders).doesNotContain(below("c")).contains(below("usr/lib64", "usr/lib"));
  }

  @Test
  void find_placesTheLoaderDoesNotKnow_areLookedAt() throws IOException {
    for (String folder :
        List.of(
            "usr/lib64/openmpi/lib",
            "usr/lib64/mpich/lib",
            "usr/lib64/mpi/gcc/openmpi4/lib64",
            "opt/mpich/lib",
            "opt/hpc/mpich-4.1/lib",
            "opt/intel/oneapi/mpi/latest/lib",
            "opt/cray/pe/mpich/default/ofi/gnu/12.3/lib")) {
      FakeLibrary.mpich(folder).write(root.resolve(folder).resolve("libmpi.so.12"));
    }
    assertThat(here(Map.of()).find(config())).hasSize(7);
  }

  @Test
  void find_manyKinds_bestFirst() throws IOException {
    Path mpich = FakeLibrary.mpich("4.2").write(root.resolve("usr/lib/libmpich.so.12"));
    Path openMpi = FakeLibrary.openMpi("5.0.3").write(root.resolve("usr/lib/libmpi.so.40"));
    Path standard = FakeLibrary.standard("5.0").write(root.resolve("usr/lib/libmpi_abi.so.1"));
    new FakeLibrary().exports("open").write(root.resolve("usr/lib/libmpi.so.12"));
    var path = Map.of("LD_LIBRARY_PATH", root.resolve("usr/lib/../lib").toString());

    assertThat(files(Map.of())).containsExactly(real(standard, openMpi, mpich));
    assertThat(files(path)).containsExactly(real(standard, openMpi, mpich));
    assertThat(files(SRUN)).containsExactly(real(standard, openMpi, mpich));
    assertThat(files(MPIRUN)).containsExactly(real(openMpi, standard, mpich));
    assertThat(files(HYDRA)).containsExactly(real(standard, mpich, openMpi));
  }

  @Test
  void find_pathOfThisProcess_goesBeforeTheHost() throws IOException {
    Path mine = FakeLibrary.mpich("4.2").write(root.resolve("mine/libmpi.so.12"));
    Path openMpi = FakeLibrary.openMpi("5.0.3").write(root.resolve("usr/lib/libmpi.so.40"));
    Map<String, String> path = Map.of("LD_LIBRARY_PATH", root.resolve("mine").toString());
    Map<String, String> both = new HashMap<>(path);
    both.putAll(MPIRUN);

    assertThat(files(path)).containsExactly(real(mine, openMpi));
    assertThat(files(both)).containsExactly(real(openMpi, mine));
  }

  @Test
  void availability_none_saysHowToGetOne() throws IOException {
    var missing = (Availability.Unavailable) here(Map.of()).availability(config());
    assertThat(missing.reason()).isEqualTo("no MPI library found");
    assertThat(missing.remedy())
        .contains("openmpi-bin", "mpich (apt)", "(dnf)", "COMM_MPI_LIBRARY");

    Path broken = root.resolve("usr/lib/libmpi.so");
    Files.writeString(Files.createDirectories(root.resolve("usr/lib")).resolve("libmpi.so"), "no");
    var refused = (Availability.Unavailable) here(Map.of()).availability(config());
    assertThat(refused.reason())
        .isEqualTo(
            "no MPI library found (%s is no shared library: it has 2 bytes)"
                .formatted(broken.toRealPath()));
  }

  // --- conflicts ---

  @Test
  void availability_libraryUnderAnothersLauncher_namesBoth() throws IOException {
    Path file = FakeLibrary.mpich("4.0.2").write(root.resolve("usr/lib/libmpich.so.12"));

    assertThat(here(HYDRA).availability(config())).isEqualTo(Availability.ready());
    assertThat(here(SRUN).availability(config())).isEqualTo(Availability.ready());
    assertThat(here(Map.of()).availability(config())).isEqualTo(Availability.ready());
    var conflict = (Availability.Unavailable) here(MPIRUN).availability(config());
    assertThat(conflict.reason())
        .isEqualTo(
            "Open MPI's mpirun started this process, and MPICH 4.0.2 (%s) would not see the other"
                    .formatted(file.toRealPath())
                + " ranks");
    assertThat(conflict.remedy()).contains("the launcher that came with the library");

    FakeLibrary.openMpi("4.1.4").write(file);
    assertThat(here(MPIRUN).availability(config())).isEqualTo(Availability.ready());
    assertThat(((Availability.Unavailable) here(HYDRA).availability(config())).reason())
        .startsWith("MPICH's mpiexec started this process, and Open MPI 4.1.4 (");
  }

  /// Who made it is not known, so neither is what starts it.
  @Test
  void availability_standardOfUnknownMaker_isReadyUnderAll() throws IOException {
    new FakeLibrary()
        .soname("libmpi_abi.so.1")
        .exports("MPI_Init")
        .write(root.resolve("usr/lib/libmpi_abi.so.1"));
    for (var environment : List.of(MPIRUN, HYDRA, SRUN, Map.<String, String>of())) {
      assertThat(here(environment).availability(config())).isEqualTo(Availability.ready());
    }
  }

  // --- this host ---

  @Test
  void find_installedLibraries_areTold() throws IOException {
    List<MpiLibrary> found = MpiLibraries.here().find(config());
    if (found.isEmpty()) {
      abort("no MPI library is installed");
    }
    for (MpiLibrary library : found) {
      assertThat(library.version()).matches("(Open MPI|MPICH|MPI),? \\S.*");
      assertThat(library.standard()).matches("\\d\\.\\d");
      Path copy = Files.copy(library.file(), root.resolve("copy.so"));
      assertThat(MpiLibrary.of(copy).abi()).isEqualTo(library.abi());
      Files.delete(copy);
    }
  }

  // --- tools ---

  private MpiLibraries here(Map<String, String> environment) {
    return new MpiLibraries(environment, root);
  }

  private List<Path> files(Map<String, String> environment) {
    return files(environment, config());
  }

  private List<Path> files(Map<String, String> environment, CommConfig config) {
    return here(environment).find(config).stream().map(MpiLibrary::file).toList();
  }

  private static CommConfig config() {
    return CommConfig.builder().build();
  }

  private static CommConfig named(String library) {
    return CommConfig.builder().option(MpiLibraries.OPTION, library).build();
  }

  private Path[] below(String... folders) {
    return List.of(folders).stream().map(root::resolve).toArray(Path[]::new);
  }

  private static Path[] real(Path... files) throws IOException {
    List<Path> real = new ArrayList<>();
    for (Path file : files) {
      real.add(file.toRealPath());
    }
    return real.toArray(Path[]::new);
  }
}
