package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.OwnFolder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DoctorTest {
  @Test
  void doctor_plainEnvironment_finesAndListsEverySetting() {
    var done = Commands.run(doctor(Map.of()), "--format", "csv");
    assertThat(done.code()).as(done.out()).isEqualTo(ExitCode.FINE);
    for (CommConfig.Setting setting : CommConfig.settings()) {
      assertThat(done.out()).contains("setting," + setting.variable() + ",");
    }
    assertThat(done.out())
        .contains("launch,launcher,ok,none", "java,version,ok", "backend,local,ok");
  }

  @Test
  void doctor_table_showsWhatIsFineOnlyWhenAsked() {
    assertThat(Commands.run(doctor(Map.of())).out())
        .doesNotContain("COMM_TIMEOUT", " ok ")
        .contains("Nothing must be mended. --verbose shows the ");
    assertThat(Commands.run(doctor(Map.of()), "--verbose").out()).contains("COMM_TIMEOUT", " ok ");
  }

  @Test
  void doctor_tuningForNoBackend_saysWhoseLinesNobodyReads(@TempDir Path folder)
      throws IOException {
    Path file = Files.writeString(folder.resolve("tuning"), "cuad: allReduce one-stage\n");
    assertThat(Commands.run(doctor(Map.of("COMM_TUNING", file.toString()))).out())
        .contains("Nobody reads its lines for cuad (found: the backends", "cuda");
    Files.writeString(file, "cuda: allReduce one-stage\n");
    assertThat(Commands.run(doctor(Map.of("COMM_TUNING", file.toString()))).out())
        .doesNotContain("Nobody reads");
  }

  @Test
  void doctor_tuningAskedForWithMpi_saysThatItDoesNothing(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("tuning"), "allReduce ring\n");
    Map<String, String> tuned = Map.of("COMM_TUNING", file.toString(), "COMM_BACKEND", "mpi");
    assertThat(Commands.run(doctor(tuned)).out()).contains("Backend mpi does not read it");
    Files.writeString(file, "allReduce rings\n");
    assertThat(problems(tuned)).anySatisfy(note -> assertThat(note).contains("'rings'"));
  }

  @Test
  void availableBackends_capabilities_areShownWhenAskedAndToPrograms() {
    assertThat(Commands.run(new AvailableBackends()).out())
        .contains("shm", "local")
        .doesNotContain("capabilities", "point-to-point");
    assertThat(Commands.run(new AvailableBackends(), "--verbose").out()).contains("point-to-point");
    assertThat(Commands.run(new AvailableBackends(), "--format", "json").out())
        .contains("\"capabilities\"", "point-to-point");
  }

  @Test
  void listing_mapOfTexts_isAnObjectOrOneCell() {
    Map<String, String> details = new LinkedHashMap<>();
    details.put("library", "libx 1.2");
    details.put("file", "/a, b");
    assertThat(printed(Listing.Format.TABLE, details))
        .isEqualTo("details\nlibrary: libx 1.2; file: /a, b\n");
    assertThat(printed(Listing.Format.CSV, details))
        .isEqualTo("details\n\"library: libx 1.2; file: /a, b\"\n");
    assertThat(printed(Listing.Format.JSON, details))
        .contains("\"details\": {", "\"library\": \"libx 1.2\",", "\"file\": \"/a, b\"");
    assertThat(printed(Listing.Format.CSV, Map.of())).isEqualTo("details\n\n");
  }

  private static String printed(Listing.Format format, Map<String, String> details) {
    var out = new StringWriter();
    new Listing("details").row(details).print(format, new PrintWriter(out));
    return out.toString();
  }

  @Test
  void doctor_otherLauncher_namesItWithItsVariables() {
    var done =
        Commands.run(
            doctor(Map.of("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "3")),
            "--format",
            "csv");
    assertThat(done.out()).contains("openmpi: rank 1 of 3", "OMPI_COMM_WORLD_SIZE=3");
  }

  /// What a join would say: nobody is helped by hearing it only there.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          COMM_RANK=0,COMM_WORLD_SIZE=4 | no place for 4 ranks to meet
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_MASTER_ADDR=192.0.2.1 | there is no secret
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_MASTER_ADDR=300.1.1.1 | no address here
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_LOCAL_RANK=0,COMM_LOCAL_WORLD_SIZE=2,COMM_SESSION=x | only 2 of 4 ranks are on this host
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_LOCAL_RANK=0,COMM_LOCAL_WORLD_SIZE=2,COMM_MASTER_ADDR=0.0.0.0 | every interface
          """)
  void doctor_ranksCanNotMeet_isAProblem(String environment, String expected) {
    assertLaunch(environment, Finding.Status.PROBLEM, expected);
  }

  @Test
  void doctor_directoryThatOthersMayEnter_isAProblem(@TempDir Path folder) throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    assertLaunch(
        "COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_SESSION=x7,COMM_SESSION_DIR=" + folder,
        Finding.Status.PROBLEM,
        folder + " is open to others");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          COMM_RANK=0,COMM_WORLD_SIZE=1 | meets nobody
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_SESSION=x7 | in a file of this host, by the name 'x7'
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_MASTER_ADDR=127.0.0.1 | at 127.0.0.1:29500
          COMM_RANK=0,COMM_WORLD_SIZE=4,COMM_MASTER_ADDR=none.invalid | not known here now
          """)
  void doctor_ranksCanMeet_saysWhere(String environment, String expected) {
    assertLaunch(environment, Finding.Status.OK, expected);
  }

  /// It may be for a launch that `comm-cli run` starts.
  @Test
  void doctor_nameOfALaunchAlone_isANote() {
    assertLaunch("COMM_SESSION=x7", Finding.Status.NOTE, "needs COMM_RANK");
  }

  /// @param environment with commas between its variables
  private static void assertLaunch(String environment, Finding.Status status, String note) {
    Map<String, String> variables =
        Arrays.stream(environment.split(",", -1))
            .map(each -> each.split("=", 2))
            .collect(Collectors.toMap(each -> each[0], each -> each[1]));
    assertThat(doctor(variables).findings())
        .filteredOn(each -> each.item().equals("launcher"))
        .singleElement()
        .satisfies(each -> assertThat(each.status()).isEqualTo(status))
        .satisfies(each -> assertThat(each.note()).contains(note));
  }

  @Test
  void doctor_halfALaunch_isAProblem() {
    var done = Commands.run(doctor(Map.of("COMM_RANK", "1")));
    assertThat(done.code()).isEqualTo(ExitCode.CHECK_FAILED);
    assertThat(done.out()).contains("problem", "COMM_RANK: '1' without COMM_WORLD_SIZE");
  }

  @Test
  void doctor_unknownOption_isAProblemThatNamesTheNearest() {
    assertThat(problems(Map.of("COMM_SHMM_WINDOW", "1GiB")))
        .singleElement()
        .asString()
        .contains("did you mean COMM_SHM_WINDOW?");
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "1", "TRUE"})
  void doctor_optionsOfTheSession_areNoBackends(String yes) {
    Map<String, String> options =
        Map.of("COMM_SESSION_INSECURE", yes, "COMM_SESSION_PORTS", "40000-40009");
    assertThat(doctor(options).findings())
        .filteredOn(each -> options.containsKey(each.item()))
        .extracting(Finding::status, Finding::note)
        .satisfiesExactly(
            insecure ->
                assertThat(insecure.toString())
                    .contains(Finding.Status.NOTE.toString(), "may join", "COMM_SECRET_FILE"),
            ports ->
                assertThat(ports.toString())
                    .contains(Finding.Status.OK.toString(), "From which TCP ports"));
  }

  @ParameterizedTest
  @CsvSource({
    "COMM_SESSION_INSECURE, yes, '1 or true, 0 or false'",
    "COMM_SESSION_PORTS, 40009-40000, two ports"
  })
  void doctor_wrongOptionOfTheSession_isAProblem(String variable, String value, String expected) {
    assertThat(problems(Map.of(variable, value)))
        .singleElement()
        .asString()
        .contains(variable, value, expected);
  }

  /// No host has space for so many ranks of `aeron`.
  @Test
  void doctor_backendWantsMoreThanThereIs_isANoteWithARemedy() {
    assertThat(doctor(Map.of("COMM_RANK", "0", "COMM_WORLD_SIZE", "100000")).findings())
        .anySatisfy(each -> {
          assertThat(each.status()).isEqualTo(Finding.Status.NOTE);
          assertThat(each.item()).startsWith("aeron, space in ");
          assertThat(each.value()).endsWith(" MiB free");
          assertThat(each.note()).contains("100000 ranks here take up to ");
        });
    assertThat(Commands.run(new AvailableBackends(), "--format", "json").out())
        .contains("\"advice\"");
  }

  @Test
  void doctor_backendThatIsNotThere_isAProblem() {
    assertThat(problems(Map.of("COMM_BACKEND", "carrier-pigeon")))
        .anySatisfy(note -> assertThat(note).contains("carrier-pigeon"));
  }

  /// `comm-cli run` does not start its ranks one by one.
  @Test
  void doctor_backendWhoseRanksAreThreads_isNoProblem() {
    assertThat(problems(Map.of("COMM_BACKEND", "local"))).isEmpty();
  }

  /// So too where the backend's launcher starts them. It gets a JVM of its own for the library.
  @Test
  void doctor_mpi_isNoProblem() throws Exception {
    assumeThat(Binding.isProgram("mpirun", System.getenv("PATH"))).as("mpirun is here").isTrue();
    try (var doctor = Launches.start(Map.of("COMM_BACKEND", "mpi"), "doctor", "--format", "csv")) {
      var done = doctor.await();
      assertThat(done.code()).as(done.out() + done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out())
          .contains("backend,\"mpi, comm-cli run -n 2\",ok,mpi", "open a group of one,ok,mpi");
    }
  }

  /// To its library the process remains a rank of the job, whatever the configuration says.
  @Test
  void doctor_rankOfAnMpiJob_opensNoGroupOfOne() {
    Map<String, String> rank =
        Map.of("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "3", "COMM_BACKEND", "mpi");
    assertThat(doctor(rank).findings())
        .filteredOn(each -> each.item().equals("open a group of one"))
        .singleElement()
        .isEqualTo(
            Finding.note(
                "backend", "open a group of one", "not tried", "This process is rank 1 of 3."));
  }

  @Test
  void doctor_secrets_areNeverShown(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("secret"), "swordfish");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    assertThat(problems(Map.of("COMM_SECRET_FILE", file.toString())))
        .singleElement(InstanceOfAssertFactories.STRING)
        .contains("has mode rw-r--r--", "chmod 600 " + file);
    assertThat(
            new Doctor(Map.of("COMM_SECRET_FILE", file.toString()), new HostFindings()).findings())
        .filteredOn(each -> each.item().equals("COMM_SECRET_FILE"))
        .extracting(Finding::value)
        .containsOnly(file.toString());
    var done = Commands.run(doctor(Map.of("COMM_SECRET", "swordfish", "COMM_MPI_TOKEN", "tuna")));
    assertThat(done.out()).contains("(not shown)").doesNotContain("swordfish", "tuna");
  }

  @ParameterizedTest
  @CsvSource({
    "'', PROBLEM, is empty",
    "swordfish, NOTE, Too short",
    "0123456789abcdef, OK, Only its owner",
  })
  void doctor_secretFile_isJudgedAsAJoinDoes(
      String text, Finding.Status status, String expected, @TempDir Path folder)
      throws IOException {
    Path file = Files.writeString(folder.resolve("secret"), text + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    Finding last =
        new Doctor(Map.of("COMM_SECRET_FILE", file.toString()), new HostFindings())
            .findings().stream()
                .filter(each -> each.item().equals("COMM_SECRET_FILE"))
                .reduce((_, second) -> second)
                .orElseThrow();
    assertThat(last.status()).isEqualTo(status);
    assertThat(last.note()).contains(expected);
  }

  @Test
  void hostFindings_flagsOfTheJvm_areShownWithoutSecrets() {
    assertThat(
            HostFindings.flags(
                List.of(
                    "-Dhttps.proxyPassword=sword=fish", "-Dkey", "-Dx=y=z", "-Xmx1g", "-XX:A=b")))
        .isEqualTo("-Dhttps.proxyPassword=(not shown) -Dkey -Dx=y=z -Xmx1g -XX:A=b");
  }

  @Test
  void hostFindings_littleIsAllowed_saysSo(@TempDir Path folder) throws IOException {
    Path limits =
        Files.writeString(
            folder.resolve("limits"),
            """
            Limit                     Soft Limit           Hard Limit           Units
            Max core file size        unlimited            unlimited            bytes
            Max open files            256                  1048576              files
            Max locked memory         8388608              8388608              bytes
            """);
    List<Finding> findings = new HostFindings(folder.resolve("shm"), limits).all();
    assertThat(findings)
        .filteredOn(each -> each.status() == Finding.Status.NOTE)
        .extracting(Finding::item)
        .contains(folder.resolve("shm").toString(), "ulimit -n");
    assertThat(findings).extracting(Finding::value).contains("unlimited", "8.0 MiB", "256");
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void hostFindings_leftByKilledLaunches_areToldFromThoseInUse(@TempDir Path folder)
      throws IOException {
    Path killed = ownFolder(folder.resolve("comm4j-aeron-1"));
    Files.createFile(killed.resolve("lock"));
    Files.createFile(ownFolder(folder.resolve("comm4j-local-1")).resolve("lock"));
    Path sessions = ownFolder(folder.resolve("comm4j-1000"));
    Path left = Files.createFile(sessions.resolve("left.session"));
    Files.setPosixFilePermissions(left, PosixFilePermissions.fromString("rw-------"));
    Files.setLastModifiedTime(left, FileTime.from(Instant.now().minus(Duration.ofHours(1))));
    Files.createDirectory(folder.resolve("of-somebody-else"));
    try (OwnFolder used = LaunchFolder.create(folder)) {
      assertThat(new HostFindings(folder, folder.resolve("limits")).all())
          .anySatisfy(each -> {
            assertThat(each.item()).isEqualTo("left in " + folder);
            assertThat(each.status()).isEqualTo(Finding.Status.NOTE);
            assertThat(each.value())
                .isEqualTo("comm4j-1000/left.session comm4j-aeron-1 comm4j-local-1");
            assertThat(each.note()).contains("Nobody's", "comm-cli run removes");
          })
          .anySatisfy(each -> {
            assertThat(each.item()).isEqualTo("in " + folder);
            assertThat(each.status()).isEqualTo(Finding.Status.OK);
            assertThat(each.value()).isEqualTo(used.path().getFileName().toString());
          });
    }
  }

  private static Path ownFolder(Path folder) throws IOException {
    Files.createDirectory(folder);
    return Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
  }

  /// Permissions are no remedy where the mount is read-only.
  @Test
  @EnabledOnOs(OS.LINUX)
  void hostFindings_sharedMemoryReadOnly_mountsItAnew(@TempDir Path folder) throws IOException {
    Optional<Path> readOnly =
        Files.readAllLines(Path.of("/proc/self/mounts")).stream()
            .map(line -> line.split(" ", -1))
            .filter(mount -> mount[3].matches("ro(,.*)?"))
            .map(mount -> Path.of(mount[1]))
            .filter(path -> Files.isDirectory(path) && !Files.isWritable(path))
            .findFirst();
    assumeThat(readOnly).as("something is mounted read-only").isPresent();
    assertThat(new HostFindings(readOnly.orElseThrow(), folder.resolve("limits")).all())
        .extracting(Finding::note)
        .contains("expected: writable; as root: mount -o remount,rw " + readOnly.orElseThrow());
  }

  private static Doctor doctor(Map<String, String> environment) {
    return new Doctor(environment, new HostFindings());
  }

  private static List<String> problems(Map<String, String> environment) {
    return doctor(environment).findings().stream()
        .filter(each -> each.status() == Finding.Status.PROBLEM)
        .map(Finding::note)
        .toList();
  }
}
