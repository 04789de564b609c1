package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.jar.JarOutputStream;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import javax.tools.ToolProvider;
import org.assertj.core.api.Condition;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.core.session.DefaultSessionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// `comm-cli run`, as a process of its own.
@Timeout(120)
class RunTest {
  private static final int SIZE = 4;

  /// Longer than a launch is waited for: who knows of a failure has not learned it from silence.
  private static final Map<String, String> NEVER_SILENT = Map.of("COMM_LIVENESS", "10min");

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3})
  @EnabledOnOs(OS.LINUX)
  void run_rankKilled_isNamedByTheOthersAndLeavesNothing(int victim) throws Exception {
    try (var launch = Launches.start(NEVER_SILENT, command("shm", List.of()))) {
      Path memory = memory(launch, victim);
      kill(launch, victim);
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(done.err()).contains("comm-cli: rank " + victim + " was ended by signal 9");
      for (int rank : survivors(victim)) {
        assertThat(done.out()).contains("[%d] rank %d lost [%d]".formatted(rank, rank, victim));
      }
      assertThat(done.out()).doesNotContain("rank " + victim + " lost");
      assertThat(memory).doesNotExist();
    }
  }

  /// Nobody of them is left who could remove anything.
  @ParameterizedTest
  @ValueSource(strings = {"shm", "aeron"})
  @EnabledOnOs(OS.LINUX)
  void run_allRanksDieAtOnce_leavesNothing(String backend) throws Exception {
    try (var launch = Launches.start(command(backend, List.of("together")))) {
      List<Path> memories = new ArrayList<>();
      for (int rank = 0; rank < SIZE; rank++) {
        memories.add(memory(launch, rank));
      }
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(memories).allSatisfy(memory -> assertThat(memory).doesNotExist());
    }
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void run_onFailureContinue_survivorsShrinkAndEnd() throws Exception {
    int victim = 1;
    try (var launch =
        Launches.start(command("shm", List.of("shrink"), "--on-failure", "continue"))) {
      kill(launch, victim);
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
      int sum = IntStream.of(survivors(victim)).sum();
      for (int rank : survivors(victim)) {
        assertThat(done.out()).contains("rank %d of %d got %d".formatted(rank, SIZE - 1, sum));
      }
      assertThat(done.err().lines().filter(line -> line.contains(" ended"))).hasSize(1);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "2, run -n 0 --backend shm -- true, -n: 0, 1 or more",
    "2, run -n two -- true, -n: 'two', expected: a whole number",
    "2, run -- true, -n, not given",
    "2, run -n 2 NoSuch.java, NoSuch.java, no such file",
    "2, run -n 2 --on-failure wait -- true, --on-failure: 'wait', '(expected: stop, continue)'",
    "2, run -n 2 --grace -1 --backend shm -- true, --grace: -1, 0 or more seconds",
    "2, run -n 2 --grace 1e10 --backend shm -- true, --grace: 1.0E10, at most 1000000000",
    "2, run -n 2 --grace NaN --backend shm -- true, --grace: NaN, 0 or more seconds",
    "2, run -n 2 -cp lib --backend shm -- true, --class-path: lib, with a .java file",
    "2, run -n 2 --nonsense -- true, --nonsense: unknown option of comm-cli run, --on-failure",
    "2, run -n 2 --bakend shm -- true, --bakend: unknown option, did you mean --backend?",
    "2, benhc, benhc: unknown argument of comm-cli, topology",
    "2, run -n 2 --backend local -- true, 'true', a .java file or a jar",
    "2, run -n 2 --backend shm -- no-such-program, no-such-program, could not be started",
    "3, run -n 2 --backend carrier-pigeon -- true, carrier-pigeon, not available",
    "2, run -n 2 --backend shm --timeout 3 -- true, --timeout: '3', a positive time",
    "2, run -n 2 --bind-to socket -- true, --bind-to: 'socket', '(expected: none, core)'",
    "2, run -n 1 --bind-to core --backend shm -- no-such-program, no-such-program, could not be started",
    "2, run -n 9999 --bind-to core -- true, --bind-to: core, a core for each rank",
    "4, run -n 2 --backend shm -- false, rank, exit code 1"
  })
  void run_wrong_exitsWithItsCodeAndNamesTheValue(
      int code, String line, String value, String expected) throws Exception {
    var done = Launches.run(line.split(" ", -1));
    assertThat(done.code()).as(done.err()).isEqualTo(code);
    assertThat(done.err()).contains(value).containsIgnoringCase(expected).doesNotContain("\tat ");
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void run_bindToCore_eachRankHasOneOfItsOwn() throws Exception {
    BoundRanks.assumeTwoCores();
    var done = Launches.run(BoundRanks.run("shm"));
    BoundRanks.assertHaveTheirCores(done);
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void run_bindToCoreThreads_saysWhy(@TempDir Path folder) throws Exception {
    Path source = Files.writeString(folder.resolve("Nothing.java"), "void main() {}");
    var done =
        Launches.run(
            "run", "-n", "1", "--bind-to", "core", "--backend", "local", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains("--bind-to: core, for backend local", "are processes");
  }

  /// The launcher says it once, before any rank is started.
  @ParameterizedTest
  @CsvSource({
    "COMM_TIMOUT, 5s, auto, did you mean COMM_TIMEOUT?",
    "COMM_TIMOUT, 5s, local, did you mean COMM_TIMEOUT?",
    "COMM_SHM_WINDOW, 12q, auto, expected: a size",
    "COMM_SHM_WINDOW, 12q, shm, expected: a size",
    "COMM_LOCAL_WINDOW, 12q, local, expected: a size",
    "COMM_TUNING, /nowhere, shm, expected: a text file",
    "COMM_TUNING, /nowhere, local, expected: a text file"
  })
  void run_wrongSetting_isOneLine(String variable, String value, String backend, String expected)
      throws Exception {
    try (var launch =
        Launches.start(Map.of(variable, value), "topology", "-n", "2", "--backend", backend)) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.USAGE);
      assertThat(done.err().lines().filter(line -> !line.startsWith("WARNING"))).hasSize(1);
      assertThat(done.err()).contains("comm-cli: " + variable + ": '" + value, expected);
    }
  }

  @Test
  void run_noRangeOfPorts_isRefusedBeforeTheBackendIsNamed() throws Exception {
    Map<String, String> ports = Map.of("COMM_SESSION_PORTS", "40000");
    try (var launch = Launches.start(ports, "run", "-n", "2", "--backend", "shm", "--", "true")) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.USAGE);
      assertThat(done.err().lines().filter(line -> !line.startsWith("WARNING"))).hasSize(1);
      assertThat(done.err()).contains("COMM_SESSION_PORTS: '40000'", "40000-40099");
    }
  }

  @Test
  void run_missingPlugin_isToldAndTheRanksRun() throws Exception {
    try (var launch =
        Launches.start(
            Map.of("COMM_PLUGIN_PATH", "/nowhere/plugin.jar"), "run", "-n", "1", "--", "true")) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isZero();
      assertThat(done.err())
          .contains(
              "comm-cli: backend /nowhere/plugin.jar is broken",
              "COMM_PLUGIN_PATH names it",
              "update or remove");
    }
  }

  @Test
  void run_noSecretFile_isOneLine() throws Exception {
    try (var launch =
        Launches.start(
            Map.of("COMM_SECRET_FILE", "/nowhere"), "topology", "-n", "2", "--backend", "shm")) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.USAGE);
      assertThat(done.err().lines().filter(line -> !line.startsWith("WARNING"))).hasSize(1);
      assertThat(done.err()).contains("COMM_SECRET_FILE: /nowhere can't be read");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_javaFile_compilesItAndLabelsItsLines(String backend, @TempDir Path folder)
      throws Exception {
    Path source = folder.resolve("Sum.java");
    Files.writeString(
        source,
        """
        void main() {
          try (var comm = org.comm4j.api.Communicators.open()) {
            IO.println("sum " + comm.allReduce(1L, org.comm4j.api.ReduceOp.SUM));
          }
        }
        """);
    var done = Launches.run("run", "-n", "3", "--backend", backend, source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines()).containsExactlyInAnyOrder("[0] sum 3", "[1] sum 3", "[2] sum 3");
  }

  /// However the classes lie in their folder.
  @ParameterizedTest
  @CsvSource({"Main, Aid", "Aid, Main"})
  void run_javaFileOfOtherNames_runsTheClassThatHasMain(
      String main, String aid, @TempDir Path folder) throws Exception {
    Path source = folder.resolve("Program.java");
    Files.writeString(
        source,
        "class %s {} class %s { static void main() { IO.println(\"run\"); } }"
            .formatted(aid, main));
    var done = Launches.run("run", "-n", "1", "--backend", "shm", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out()).contains("run");
  }

  /// As of a library whose optional dependency is not there.
  @Test
  void run_javaFileWithAClassThatLacksAnother_runsAllTheSame(@TempDir Path folder)
      throws Exception {
    Path lib = Files.createDirectory(folder.resolve("lib"));
    Path helper =
        Files.writeString(
            lib.resolve("Helper.java"), "public class Helper { void a(Lost lost) {} }");
    Path lost = Files.writeString(lib.resolve("Lost.java"), "public class Lost {}");
    int compiled =
        ToolProvider.getSystemJavaCompiler()
            .run(null, null, null, "-d", lib.toString(), helper.toString(), lost.toString());
    assertThat(compiled).isZero();
    Files.delete(lib.resolve("Lost.class"));
    Files.delete(lost);
    Files.delete(helper);
    Path source =
        Files.writeString(
            folder.resolve("Program.java"),
            "class Aid extends Helper {} class Main { static void main() { IO.println(\"run\"); } }");
    var done =
        Launches.run(
            "run", "-n", "1", "-cp", lib.toString(), "--backend", "shm", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out()).contains("run");
  }

  @Test
  void run_javaFileWithoutMain_saysSo(@TempDir Path folder) throws Exception {
    Path source = Files.writeString(folder.resolve("Program.java"), "class Program {}");
    var done = Launches.run("run", "-n", "1", "--backend", "shm", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains(source + ": no class with a main method in it (expected: ");
  }

  @ParameterizedTest
  @CsvSource({
    "local, throw new IllegalStateException(\"disk full\")",
    "shm, throw new IllegalStateException(\"disk full\")",
    "local, return",
    "shm, return"
  })
  void run_rankEndsInsideTryWithResources_othersHearOfItAtOnce(
      String backend, String end, @TempDir Path folder) throws Exception {
    var done = runSource(folder, backend, 3, "if (comm.rank() == 1) " + end + "; comm.barrier();");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err())
        .containsPattern("\\[0\\] .*PeerFailedException.*\\b1\\b.*left the session");
    assertThat(done.err()).doesNotContain("CollectiveTimeoutException", "still run");
    if (!end.equals("return")) {
      assertThat(done.err()).contains("disk full").containsPattern("\\[1\\] \tat Body.*Body.java:");
    }
  }

  @Test
  void run_programsArguments_areAsGiven(@TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve("given.txt"), "a #b");
    var done =
        Launches.run(
            "run",
            "-n",
            "1",
            "--backend",
            "shm",
            "--",
            "sh",
            "-c",
            "printf '%s\n' \"$@\"",
            "sh",
            "@" + file,
            "@@y",
            "--grace",
            "@" + file);
    assertThat(done.out().lines())
        .containsExactly("[0] @" + file, "[0] @@y", "[0] --grace", "[0] @" + file);
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void run_inALocaleWithoutCharacters_passesBytesOn() throws Exception {
    List<String> by =
        List.of("sh", "-c", "X=$(printf 'gr\\303\\266\\337') \"$0\" \"$@\" | od -An -tx1");
    String command = "printf '%s\\n' \"$X\"";
    try (var launch =
        Launches.start(
            by,
            Map.of("LC_ALL", "C"),
            "run",
            "-n",
            "1",
            "--backend",
            "shm",
            "--",
            "sh",
            "-c",
            command)) {
      assertThat(launch.await().out().strip())
          .isEqualTo("5b 30 5d 20 67 72 c3 b6 df 0a"); // "[0] gr", ö in UTF-8, ß in Latin-1
    }
  }

  /// Which of its ranks this one is, the launch says.
  @Test
  @EnabledOnOs(OS.LINUX)
  void run_inABatchJob_ranksKnowTheJob() throws Exception {
    Map<String, String> batch =
        Map.of(
            "SLURM_JOB_ID", "17",
            "SLURM_CPUS_PER_TASK", "2",
            "SLURM_NTASKS", "8",
            "SLURM_PROCID", "0",
            "SLURM_LOCALID", "0");
    String command =
        "echo $SLURM_JOB_ID,$SLURM_CPUS_PER_TASK,$SLURM_NTASKS$SLURM_PROCID$SLURM_LOCALID";
    try (var launch =
        Launches.start(batch, "run", "-n", "1", "--backend", "shm", "--", "sh", "-c", command)) {
      assertThat(launch.await().out().strip()).isEqualTo("[0] 17,2,");
    }
  }

  /// A pager, or a disk that is busy: the rank has ended, and what it wrote is not yet read.
  @Test
  void run_readerIsSlow_getsEverything() throws Exception {
    int lines = 20_000; // more than two pipes hold
    List<String> by =
        List.of(
            "sh",
            "-c",
            "\"$0\" \"$@\" | (sleep 4; n=0; while read -r _; do n=$((n + 1)); done; echo $n)");
    String command = "seq " + lines;
    try (var launch =
        Launches.start(
            by, Map.of(), "run", "-n", "1", "--backend", "shm", "--", "sh", "-c", command)) {
      assertThat(launch.await().out().strip()).isEqualTo(Integer.toString(lines));
    }
  }

  /// A wrapper does not pass a signal on, and nobody finds its children when it has ended.
  @Test
  @EnabledOnOs(OS.LINUX)
  void run_rankBehindAWrapper_isEndedWithTheOthers(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("pid");
    String body =
        "if [ $COMM_RANK = 1 ]; then while [ ! -s %1$s ]; do :; done; exit 1; fi; sleep 300 & echo $! > %1$s; wait"
            .formatted(file);
    var done =
        Launches.run(
            "run", "-n", "2", "--backend", "shm", "--grace", "0.2", "--", "sh", "-c", body);
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(hasEnded(Files.readString(file).strip())).isTrue();
  }

  /// Which is no news of the rank's own, and who shrinks should know how to go on.
  @Test
  @EnabledOnOs(OS.LINUX)
  void run_othersAreEnded_saysWhoDoesItAndHowToKeepThem() throws Exception {
    String body = "[ $COMM_RANK != 1 ] || exit 7; exec sleep 300";
    var done =
        Launches.run(
            "run", "-n", "3", "--backend", "shm", "--grace", "0.2", "--", "sh", "-c", body);
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err().lines())
        .contains("comm-cli: rank 1 ended with exit code 7")
        .containsOnlyOnce(
            "comm-cli: ending the others (--on-failure stop; ranks that shrink() need --on-failure continue)")
        .contains(
            "comm-cli: rank 0 was ended by signal 15, from comm-cli",
            "comm-cli: rank 2 was ended by signal 15, from comm-cli");
  }

  /// A process whose parent has ended stays a zombie where nobody adopts it.
  private static boolean hasEnded(String pid) throws Exception {
    try {
      String status = Files.readString(Path.of("/proc", pid, "stat"));
      return status.substring(status.lastIndexOf(')')).startsWith(") Z");
    } catch (NoSuchFileException _) {
      return true;
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"rwxr-xr-x", "rwxrwxr-x", "rwxrwxrwx"})
  @EnabledOnOs(OS.LINUX)
  void run_resourcesBesideTheSource_areThoseNobodyElseMayWrite(
      String permissions, @TempDir Path folder) throws Exception {
    Path resources = Files.createDirectories(folder.resolve("src/main/resources"));
    Files.writeString(resources.resolve("data.txt"), "1");
    Files.setPosixFilePermissions(
        resources.getParent(), PosixFilePermissions.fromString(permissions));
    var done =
        runSource(
            folder,
            "shm",
            1,
            "IO.println(Thread.currentThread().getContextClassLoader().getResource(\"data.txt\") != null);");
    boolean isOurs = !permissions.equals("rwxrwxrwx");
    assertThat(done.out()).as(done.err()).isEqualTo("[0] " + isOurs);
    assertThat(done.err().contains("no resources from " + resources.getParent()))
        .isEqualTo(!isOurs);
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_standardInput_isRankZeros(String backend, @TempDir Path folder) throws Exception {
    Path source = folder.resolve("Read.java");
    Files.writeString(
        source,
        """
        void main() throws Exception {
          try (var comm = org.comm4j.api.Communicators.open()) {
            for (int reader = 1; reader >= 0; reader--) {
              comm.barrier();
              if (comm.rank() == reader) {
                IO.println(new String(System.in.readAllBytes()).strip() + "|");
              }
            }
          }
        }
        """);
    try (var launch =
        Launches.start(
            List.of("sh", "-c", "echo text | exec \"$@\"", "sh"),
            Map.of(),
            "run",
            "-n",
            "2",
            "--backend",
            backend,
            source.toString())) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out().lines()).containsExactly("[1] |", "[0] text|");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_classPathOfAFolder_hasItsJars(String backend, @TempDir Path folder) throws Exception {
    Path lib = Files.createDirectory(folder.resolve("lib"));
    try (var jar = new JarOutputStream(Files.newOutputStream(lib.resolve("data.jar")))) {
      jar.putNextEntry(new ZipEntry("data.txt"));
    }
    var done =
        runSource(
            folder,
            backend,
            1,
            "IO.println(Thread.currentThread().getContextClassLoader().getResource(\"data.txt\") != null);",
            "-cp",
            lib + File.separator + "*");
    assertThat(done.out()).as(done.err()).isEqualTo("[0] true");
  }

  @ParameterizedTest
  @CsvSource({
    "local, rank 1 called System.exit",
    "shm, rank 1 ended with exit code 0",
  })
  void run_rankExitsBeforeTheOthersEnd_isAFailedJobThatNamesIt(
      String backend, String expected, @TempDir Path folder) throws Exception {
    var done =
        runSource(folder, backend, 3, "if (comm.rank() == 1) System.exit(0); comm.barrier();");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err()).contains("comm-cli: " + expected);
  }

  /// The exit of a rank whose peer has ended with an exception is not the end of a job that is
  /// fine.
  @Test
  void run_rankFailsAndAnotherExits_isAFailedJobThatNamesIt(@TempDir Path folder) throws Exception {
    var done =
        runSource(
            folder,
            "local",
            2,
            """
            var told = org.comm4j.api.CommData.of(new int[1]);
            if (comm.rank() == 1) {
              comm.receive(told, 0, 0);
              throw new IllegalStateException("disk full");
            }
            %s
            comm.send(told, 1, 0); // rank 1 is there: it fails before this one exits
            end.join();
            System.exit(0);
            """
                .formatted(end(1)),
            "--on-failure",
            "continue");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err())
        .contains("disk full", "comm-cli: rank 1 ended with an exception")
        .doesNotContain("rank 0 ended");
  }

  /// Code that finds the thread that ends with a rank of threads, which must not have ended yet.
  private static String end(int rank) {
    return """
    Thread end = null;
    while (end == null) {
      end = Thread.getAllStackTraces().keySet().stream()
          .filter(each -> each.getName().equals("end of rank %d")).findFirst().orElse(null);
    }
    """
        .formatted(rank);
  }

  /// However the job ends, the exit code is one of those that the help promises.
  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_abortProcess_isAFailedRankWhateverItsCode(String backend, @TempDir Path folder)
      throws Exception {
    var done =
        runSource(
            folder, backend, 2, "if (comm.rank() == 1) comm.abortProcess(77); comm.barrier();");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err()).contains("comm-cli: rank 1 ended with exit code 77");
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_onlyRankExits_isFine(String backend, @TempDir Path folder) throws Exception {
    var done = runSource(folder, backend, 1, "System.exit(0);");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
  }

  @Test
  void run_onlyRankExitsWithACode_isAFailedRankWhoseHooksRun(@TempDir Path folder)
      throws Exception {
    var done =
        runSource(
            folder,
            "local",
            1,
            """
            Runtime.getRuntime().addShutdownHook(new Thread(() -> IO.println("saved")));
            System.exit(77);
            """);
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err()).contains("comm-cli: rank 0 ended with exit code 77");
    assertThat(done.out()).isEqualTo("[0] saved");
  }

  @Test
  void run_rankEndsBeforeItJoins_othersFailAtOnceAndNameIt(@TempDir Path folder) throws Exception {
    Path source = folder.resolve("Early.java");
    Files.writeString(
        source,
        """
        void main() {
          if (System.getenv("COMM_RANK").equals("1")) System.exit(7);
          org.comm4j.api.Communicators.open().close();
        }
        """);
    var done = Launches.run("run", "-n", "3", "--backend", "shm", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err()).contains("comm-cli: rank 1 ended with exit code 7");
    for (int rank : new int[] {0, 2}) {
      assertThat(done.err())
          .containsPattern(
              "\\[%d\\] .*rank 1 ended with exit code 7 before it had joined".formatted(rank));
    }
  }

  /// Settings of the command line reach ranks of every kind, and what follows the program is its
  /// own.
  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_settings_areThoseOfTheRanks(String backend, @TempDir Path folder) throws Exception {
    Path source = folder.resolve("Late.java");
    Files.writeString(
        source,
        """
        void main(String[] arguments) {
          IO.println(String.join(" ", arguments));
          try (var comm = org.comm4j.api.Communicators.open()) {
            if (comm.rank() == 0) comm.barrier();
            else comm.receive(org.comm4j.api.CommData.of(new int[1]), 0, 0);
          }
        }
        """);
    var done =
        Launches.run(
            "run",
            "-n",
            "2",
            "--timeout",
            "1s",
            "--backend",
            backend,
            source.toString(),
            "--timeout",
            "x");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.out()).contains("[0] --timeout x");
    assertThat(done.err()).contains("CollectiveTimeoutException");
  }

  @Test
  void help_saysHowRanksGetOptionsOfTheirJvms() {
    assertThat(Commands.run(new Run(), "--help").out())
        .contains("JDK_JAVA_OPTIONS=-Xmx4g comm-cli run");
  }

  @Test
  void run_rankThatDoesNotEnd_isGivenItsGrace(@TempDir Path folder) throws Exception {
    var done =
        runSource(
            folder,
            "local",
            4,
            """
            var told = org.comm4j.api.CommData.of(new int[1]);
            if (comm.rank() == 3) {
              comm.receive(told, 1, 0);
              return;
            }
            var never = new java.util.concurrent.CountDownLatch(1);
            if (comm.rank() == 2) never.await();
            java.util.concurrent.Executors.newFixedThreadPool(1).submit(() -> { never.await(); return 0; });
            if (comm.rank() == 1) { // fails, and goes on, once rank 3 has ended
              %s
              comm.send(told, 3, 0);
              end.join();
              throw new IllegalStateException();
            }
            """
                .formatted(end(3)),
            "--grace",
            "0.5");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err())
        .contains(
            "comm-cli: ranks [0, 1, 2] still run 0.5 s after the failure; their JVM ends now");
  }

  /// A JVM waits for threads that are no daemons, and so do ranks that are processes.
  @Test
  void run_threadsOfARankOutliveItsMain_areWaitedFor(@TempDir Path folder) throws Exception {
    Path source = folder.resolve("Working.java");
    Files.writeString(
        source,
        """
        record Loaded(long late) {}

        void main() {
          var comm = org.comm4j.api.Communicators.open();
          var main = Thread.currentThread();
          new Thread(() -> {
            try {
              main.join();
            } catch (InterruptedException e) {
              throw new IllegalStateException(e);
            }
            IO.println(new Loaded(comm.allReduce(1L, org.comm4j.api.ReduceOp.SUM)));
          }).start();
        }
        """);
    var done = Launches.run("run", "-n", "2", "--backend", "local", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines())
        .containsExactlyInAnyOrder("[0] Loaded[late=2]", "[1] Loaded[late=2]");
  }

  /// Others must not wait for it, whatever it leaves: a daemon, as the label of an unfinished line
  /// is one, or an open group. A process would be gone with all of that.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "local | comm | Thread.ofPlatform().daemon().start(java.util.concurrent.locks.LockSupport::park); | left the session",
        "local | comm | java.util.concurrent.CompletableFuture.delayedExecutor(1, java.util.concurrent.TimeUnit.HOURS).execute(() -> {}); | left the session",
        "local | comm | IO.print(\"unfinished\"); | left the session",
        "local | comm.split(0, 0).orElseThrow() | | left the session",
        "shm | comm.split(0, 0).orElseThrow() | | connection"
      })
  void run_rankEndsAndLeavesSomething_othersHearThatItIsGone(
      String backend, String group, String leaves, String how, @TempDir Path folder)
      throws Exception {
    Path source =
        Files.writeString(
            folder.resolve("Left.java"),
            """
            void main() {
              var comm = org.comm4j.api.Communicators.open();
              var group = %s;
              if (comm.rank() == 1) {
                %s
              } else {
                group.barrier();
              }
            }
            """
                .formatted(group, Objects.requireNonNullElse(leaves, "")));
    var done =
        Launches.run("run", "-n", "2", "--backend", backend, "--timeout", "20s", source.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err()).containsPattern("\\[0\\] .*PeerFailedException.*rank 1.*" + how);
  }

  /// Every user of the host can find the port.
  @Test
  void run_strangerKnowsThePlace_isRefused(@TempDir Path folder) throws Exception {
    Path source = folder.resolve("Waiting.java");
    Files.writeString(
        source,
        """
        void main() throws Exception {
          IO.println("port " + System.getenv("COMM_MASTER_PORT"));
          new java.util.concurrent.CountDownLatch(1).await();
        }
        """);
    try (var launch = Launches.start("run", "-n", "1", "--backend", "shm", source.toString())) {
      String port = launch.line(line -> line.contains("port ")).replaceAll("\\D*0\\D+", "");
      CommConfig stranger =
          CommConfig.builder()
              .rank(0)
              .worldSize(1)
              .masterAddress("127.0.0.1")
              .masterPort(Integer.parseInt(port))
              .option(DefaultSessionFactory.HOSTED, "launcher")
              .build();
      assertThatThrownBy(() -> new DefaultSessionFactory().join(stranger, List.of()))
          .isInstanceOf(JoinException.class)
          .hasMessageContaining("asks for a secret, but this rank has none");
    }
  }

  @Test
  void run_recorded_eachRankHasItsCalls(@TempDir Path folder) throws Exception {
    Path source =
        Files.writeString(
            folder.resolve("Sum.java"),
            """
            void main() {
              try (var comm = org.comm4j.api.Communicators.open()) {
                comm.allReduce(new double[10], org.comm4j.api.ReduceOp.SUM);
              }
            }
            """);
    String options =
        "%s -XX:StartFlightRecording:filename=%s/calls-%%p.jfr,+org.comm4j.Call#enabled=true"
            .formatted(Launches.JVM_OPTIONS, folder);
    try (var launch =
        Launches.start(
            Map.of("JDK_JAVA_OPTIONS", options),
            "run",
            "-n",
            "2",
            "--backend",
            "shm",
            source.toString())) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isZero();
    }
    List<String> calls = new ArrayList<>();
    try (var files = Files.newDirectoryStream(folder, "*.jfr")) {
      for (Path file : files) {
        calls.add(callsIn(file));
      }
    }
    assertThat(calls)
        .as("of the launcher and two ranks")
        .hasSize(3)
        .areExactly(1, new Condition<>(String::isBlank, "no calls"))
        .areExactly(1, new Condition<>(text -> text.contains("rank = 0"), "rank 0's calls"))
        .areExactly(1, new Condition<>(text -> text.contains("rank = 1"), "rank 1's calls"))
        .filteredOn(text -> !text.isBlank())
        .allSatisfy(
            text -> assertThat(text).contains("operation = \"allReduce\"", "bytes = 80 bytes"));
  }

  /// Only comm-cli itself reads none.
  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void run_programReadsASerializedObject_mayDoSo(String backend, @TempDir Path folder)
      throws Exception {
    var done =
        runSource(
            folder,
            backend,
            1,
            """
            var bytes = new java.io.ByteArrayOutputStream();
            var out = new java.io.ObjectOutputStream(bytes);
            out.writeObject(java.util.List.of("a model"));
            out.close();
            var in = new java.io.ByteArrayInputStream(bytes.toByteArray());
            IO.println("has read " + new java.io.ObjectInputStream(in).readObject());
            """);
    assertThat(done.code()).as(done.err()).isZero();
    assertThat(done.out()).contains("has read [a model]");
  }

  /// What the JDK's own reader prints.
  private static String callsIn(Path recording) throws Exception {
    String jfr = Path.of(System.getProperty("java.home"), "bin", "jfr").toString();
    Process reader =
        new ProcessBuilder(jfr, "print", "--events", "org.comm4j.Call", recording.toString())
            .redirectErrorStream(true)
            .start();
    String text = new String(reader.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(reader.waitFor()).as(text).isZero();
    return text;
  }

  /// Runs a program of one communicator, `comm`.
  private static Commands.Done runSource(
      Path folder, String backend, int size, String body, String... options) throws Exception {
    Path source = folder.resolve("Body.java");
    Files.writeString(
        source,
        """
        void main() throws Exception {
          try (var comm = org.comm4j.api.Communicators.open()) {
            %s
          }
        }
        """
            .formatted(body));
    List<String> command =
        new ArrayList<>(List.of("run", "-n", Integer.toString(size), "--backend", backend));
    command.addAll(List.of(options));
    command.add(source.toString());
    return Launches.run(command.toArray(String[]::new));
  }

  private static int[] survivors(int victim) {
    return IntStream.range(0, SIZE).filter(rank -> rank != victim).toArray();
  }

  /// `run` of [DyingRanks].
  ///
  /// @param arguments of the program
  /// @param options more of `run`
  private static String[] command(String backend, List<String> arguments, String... options) {
    return Stream.of(
            Stream.of("run", "-n", Integer.toString(SIZE), "--backend", backend),
            Stream.of(options),
            Stream.of("--"),
            Launches.java(DyingRanks.class).stream(),
            arguments.stream())
        .flatMap(each -> each)
        .toArray(String[]::new);
  }

  /// Kills a rank once all are in the middle of their loops.
  private static void kill(Launches launch, int victim) throws InterruptedException {
    for (int rank : survivors(victim)) {
      started(launch, rank);
    }
    long pid = Long.parseLong(started(launch, victim).group(1));
    assertThat(ProcessHandle.of(pid).orElseThrow().destroyForcibly()).isTrue();
  }

  /// Where the ranks' memory had its names.
  private static Path memory(Launches launch, int rank) throws InterruptedException {
    return Path.of(started(launch, rank).group(2));
  }

  /// What a rank says in the middle of its loop: its pid, its folder.
  private static Matcher started(Launches launch, int rank) throws InterruptedException {
    var pattern = Pattern.compile("\\[%d] rank %d has pid ([0-9]+) in (/.+)".formatted(rank, rank));
    var matcher = pattern.matcher(launch.line(line -> pattern.matcher(line).matches()));
    assertThat(matcher.matches()).isTrue();
    return matcher;
  }
}
