package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `comm-cli` with a backend whose ranks a program of its own starts.
@Timeout(120)
@EnabledOnOs(OS.LINUX)
class LauncherTest {
  @TempDir Path folder;
  private Map<String, String> environment = Map.of();

  @BeforeEach
  void addBackend() throws IOException {
    Path services = Files.createDirectories(folder.resolve("plugin/META-INF/services"));
    Files.writeString(
        services.resolve("org.comm4j.api.spi.BackendProvider"), LaunchedBackend.class.getName());
    Path temporary = Files.createDirectory(folder.resolve("tmp"));
    environment =
        Map.of(
            "COMM_PLUGIN_PATH",
            folder.resolve("plugin").toString(),
            "COMM_LIVENESS", // nothing is learned from silence
            "10min",
            "JAVA_TOOL_OPTIONS",
            "-Djava.io.tmpdir=" + temporary);
  }

  @Test
  void run_program_hasItsRanksAndLabels() throws Exception {
    var done =
        source(
            3,
            """
            if (comm.rank() == 1) { // alone: else others might write between a slow one's halves
              System.err.print("half ");
              System.err.println("and half");
              for (int i = 0; i < 2000; i++) IO.print("line " + i + "\\n");
            }
            IO.println(comm.backend() + " sum " + comm.allReduce(1L, org.comm4j.api.ReduceOp.SUM));
            IO.println(System.getenv("COMM_LAUNCHED_BY") + ", " + System.in.read());
            """);
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    for (int rank = 0; rank < 3; rank++) {
      String label = "[" + rank + "] ";
      assertThat(done.out().lines()).contains(label + "shm sum 3", label + "the script, -1");
    }
    assertThat(done.out().lines().filter(line -> line.startsWith("[1] line "))).hasSize(2000);
    assertThat(done.err().lines()).contains("[1] half and half");
    assertThat(done.out().lines())
        .contains("the launcher starts 3 ranks")
        .hasSize(2000 + 3 * 2 + 1);
    assertThat(done.err()).contains("comm-cli: backend launched ('launched' was asked for by name");
    assertThat(done.err()).doesNotContain("] WARNING", "Picked up JDK_JAVA_OPTIONS");
    assertNothingIsLeft();
  }

  @Test
  void topology_hasNoLabels() throws Exception {
    var done = run("topology", "-n", "2", "--backend", "launched");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines()).contains("2 ranks on backend shm, as many on each host");
  }

  @Test
  void run_auto_startsRanksOneByOne() throws Exception {
    var done = run("run", "-n", "2", "--", "sh", "-c", "echo $COMM_RANK of $COMM_WORLD_SIZE");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines()).containsExactlyInAnyOrder("[0] 0 of 2", "[1] 1 of 2");
  }

  @Test
  void run_command_getsTheEnvironment() throws Exception {
    var done =
        run(
            "run",
            "-n",
            "2",
            "--backend",
            "launched",
            "--",
            "sh",
            "-c",
            "echo $COMM_BACKEND-$PMI_RANK-$COMM_RANK-$COMM_SESSION_HOSTED \"$@\"",
            "x",
            "a  b");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines())
        .containsOnlyOnce("[0] launched-0--launcher a  b", "[1] launched-1--launcher a  b");
  }

  /// Among them what a launcher, or a shell, takes for something else.
  @ParameterizedTest
  @ValueSource(
      strings = {"launched", "mpi mpirun.mpich libmpich.so.12", "mpi mpirun.openmpi libmpi.so.40"})
  void run_programsArguments_areAsGiven(String by) throws Exception {
    String[] backend = by.split(" ", 3);
    Map<String, String> more = new HashMap<>(environment);
    if (backend.length > 1) {
      assumeTrue(Binding.isProgram(backend[1], System.getenv("PATH")), "there is no " + backend[1]);
      more.put("COMM_MPI_LAUNCHER", backend[1]);
      more.put("COMM_MPI_LIBRARY", backend[2]);
    }
    List<String> command =
        new ArrayList<>(List.of("run", "-n", "1", "--backend", backend[0], "--", "sh", "-c"));
    command.addAll(List.of("printf '<%s>' \"$@\"; echo", "x", ":", "it's", "", "$PATH", "a\n b"));
    try (var launch = Launches.start(more, command.toArray(String[]::new))) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out().lines()).contains("[0] <:><it's><><$PATH><a", "[0]  b>");
    }
  }

  @Test
  void run_rankLeavesAWriterBehind_endsAllTheSame() throws Exception {
    Path file = folder.resolve("pid");
    String body = "yes %s & echo $! > %s".formatted("x".repeat(1000), file);
    try {
      var done = run("run", "-n", "1", "--backend", "launched", "--", "sh", "-c", body);
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out()).contains("[0] xxx");
      assertThat(done.err()).contains("the rest is left out");
    } finally {
      long pid = Long.parseLong(Files.readString(file).strip());
      ProcessHandle.of(pid).ifPresent(ProcessHandle::destroy);
    }
  }

  @Test
  void run_bindToCore_eachRankHasOneOfItsOwn() throws Exception {
    BoundRanks.assumeTwoCores();
    BoundRanks.assertHaveTheirCores(run(BoundRanks.run("launched")));
  }

  @Test
  void run_rankKilled_isNamedAndNothingIsLeft() throws Exception {
    Path awaited = folder.resolve("awaited"); // else the others might be lost first
    Map<String, String> more = new HashMap<>(environment);
    more.put("SCRIPT_AWAITS", awaited.toString());
    try (var launch = Launches.start(more, dying())) {
      List<ProcessHandle> ranks = ranks(launch);
      ranks.get(1).destroyForcibly();
      launch.line(line -> line.equals("[0] rank 0 lost [1]"));
      Files.createFile(awaited);
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(done.err())
          .contains(
              "the launcher ends its ranks",
              "comm-cli: bash ended with exit code 137; rank 1 was lost first");
      assertThat(ranks).noneMatch(ProcessHandle::isAlive);
      assertNothingIsLeft();
    }
  }

  /// A launcher that lets the others go on is ended after the grace time.
  @Test
  void run_launcherIgnoresFailure_isEndedAfterTheGraceTime() throws Exception {
    Map<String, String> more = new HashMap<>(environment);
    more.put("SCRIPT_IGNORES_FAILURES", "1");
    String[] command =
        Stream.of(
                Stream.of("run", "-n", "2", "--backend", "launched", "--grace", "0.2", "--"),
                Launches.java(SleepingRank.class).stream())
            .flatMap(each -> each)
            .toArray(String[]::new);
    try (var launch = Launches.start(more, command)) {
      List<ProcessHandle> ranks = ranks(launch);
      ranks.getFirst().destroyForcibly();
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(done.err()).contains("; rank 0 was lost first");
      assertThat(ranks).noneMatch(ProcessHandle::isAlive);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"comm-cli", "launcher"})
  void run_ended_noRankIsLeft(String victim) throws Exception {
    try (var launch = Launches.start(environment, dying())) {
      List<ProcessHandle> ranks = ranks(launch);
      ProcessHandle launcher = ranks.getFirst().parent().orElseThrow();
      if (victim.equals("comm-cli")) {
        launcher.parent().orElseThrow().destroy();
      } else {
        launcher.destroyForcibly();
      }
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isNotZero();
      if (victim.equals("launcher")) {
        assertThat(done.err())
            .contains("comm-cli: bash ended with exit code 137 before any rank")
            .doesNotContain("was lost");
      }
      for (ProcessHandle rank : ranks) {
        rank.onExit().get();
      }
      assertThat(launcher.isAlive()).isFalse();
      assertNothingIsLeft();
    }
  }

  /// A terminal's Ctrl-C reaches the launcher too, which would take a second signal as an order to
  /// leave everything as it is.
  @ParameterizedTest
  @ValueSource(strings = {"INT", "TERM"})
  void run_groupIsSignalled_launcherHearsItOnceAndTidiesUp(String signal) throws Exception {
    Path kept = folder.resolve("kept");
    Map<String, String> more = new HashMap<>(environment);
    more.put("SCRIPT_KEEPS", kept.toString());
    try (var launch = Launches.start(Launches.OWN_GROUP, more, dying())) {
      List<ProcessHandle> ranks = ranks(launch);
      assertThat(kept).exists();
      launch.signalGroup(signal);
      assertThat(launch.await().code()).isNotZero();
      assertThat(ranks).noneMatch(ProcessHandle::isAlive);
      assertThat(kept).doesNotExist();
      assertNothingIsLeft();
    }
  }

  @Test
  void run_endedAlone_launcherTidiesUp() throws Exception {
    Path kept = folder.resolve("kept");
    Map<String, String> more = new HashMap<>(environment);
    more.put("SCRIPT_KEEPS", kept.toString());
    try (var launch = Launches.start(more, dying())) {
      List<ProcessHandle> ranks = ranks(launch);
      launch.terminate();
      assertThat(launch.await().code()).isNotZero();
      assertThat(ranks).noneMatch(ProcessHandle::isAlive);
      assertThat(kept).doesNotExist();
    }
  }

  /// The memory that ranks share is a file for each of them, which Open MPI's launcher removes.
  @ParameterizedTest
  @ValueSource(strings = {"INT", "TERM"})
  void run_openMpiGroupIsSignalled_leavesNothingInSharedMemory(String signal) throws Exception {
    try (var launch = startOnOpenMpi()) {
      Set<Path> memory = sharedMemory(ranks(launch));
      assertThat(memory).isNotEmpty().allSatisfy(file -> assertThat(file).exists());
      launch.signalGroup(signal);
      assertThat(launch.await().code()).isNotZero();
      assertThat(memory).noneSatisfy(file -> assertThat(file).exists());
      assertNothingIsLeft();
    }
  }

  /// Nobody but us removes the memory then.
  @Test
  void run_openMpiLauncherIsKilled_leavesNothingInSharedMemory() throws Exception {
    assumeTrue(
        Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).endsWith("pid:[4026531836]"),
        "in a container nobody sees who uses the memory");
    try (var launch = startOnOpenMpi()) {
      List<ProcessHandle> ranks = ranks(launch);
      Set<Path> memory = sharedMemory(ranks);
      ranks.getFirst().parent().orElseThrow().destroyForcibly();
      assertThat(launch.await().code()).isNotZero();
      assertThat(ranks).noneMatch(ProcessHandle::isAlive);
      assertThat(memory).isNotEmpty().noneSatisfy(file -> assertThat(file).exists());
    }
  }

  private Launches startOnOpenMpi() throws IOException {
    assumeTrue(
        Binding.isProgram("mpirun.openmpi", System.getenv("PATH")), "there is no mpirun.openmpi");
    List<String> command = new ArrayList<>(List.of("run", "-n", "2", "--backend", "mpi", "--"));
    command.addAll(Launches.java(SleepingRank.class));
    Map<String, String> more = new HashMap<>(environment);
    more.put("COMM_MPI_LAUNCHER", "mpirun.openmpi");
    return Launches.start(Launches.OWN_GROUP, more, command.toArray(String[]::new));
  }

  private static Set<Path> sharedMemory(List<ProcessHandle> processes) throws IOException {
    Set<Path> memory = new TreeSet<>();
    for (ProcessHandle each : processes) {
      memory.addAll(sharedMemory(each));
    }
    return memory;
  }

  /// The files of Open MPI's that a process has mapped.
  private static List<Path> sharedMemory(ProcessHandle process) throws IOException {
    try (Stream<String> maps = Files.lines(Path.of("/proc/" + process.pid() + "/maps"))) {
      return maps.filter(line -> line.contains("_segment."))
          .map(line -> Path.of(line.substring(line.indexOf('/'))))
          .distinct()
          .toList();
    }
  }

  @Test
  void run_endedWhilePipesAreMade_leavesNothing() throws Exception {
    Path programs = Files.createDirectory(folder.resolve("bin"));
    Path mkfifo = programs.resolve("mkfifo");
    Files.writeString(
        mkfifo,
        """
        #!/bin/sh
        kill -TERM $PPID
        while kill -0 $PPID 2>/dev/null; do sleep 0.05; done
        """);
    Files.setPosixFilePermissions(mkfifo, PosixFilePermissions.fromString("rwx------"));
    Map<String, String> more = new HashMap<>(environment);
    more.put("PATH", programs + File.pathSeparator + System.getenv("PATH"));
    try (var launch =
        Launches.start(more, "run", "-n", "2", "--backend", "launched", "--", "true")) {
      assertThat(launch.await().code()).isNotZero();
      assertNothingIsLeft();
    }
  }

  @Test
  void run_onFailureContinue_isRefused() throws Exception {
    var done =
        run("run", "-n", "2", "--backend", "launched", "--on-failure", "continue", "--", "true");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains("--on-failure: continue (expected: stop, since bash starts");
  }

  private Commands.Done run(String... arguments) throws IOException, InterruptedException {
    try (var launch = Launches.start(environment, arguments)) {
      return launch.await();
    }
  }

  private Commands.Done source(int size, String body) throws Exception {
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
    return run("run", "-n", Integer.toString(size), "--backend", "launched", source.toString());
  }

  private static String[] dying() {
    List<String> command = new ArrayList<>(List.of("run", "-n", "2", "--backend", "launched"));
    command.add("--");
    command.addAll(Launches.java(DyingRanks.class));
    return command.toArray(String[]::new);
  }

  /// Both ranks, once they have said their pids.
  private static List<ProcessHandle> ranks(Launches launch) throws InterruptedException {
    List<ProcessHandle> ranks = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      String start = "[%d] rank %d has pid ".formatted(rank, rank);
      String line = launch.line(each -> each.startsWith(start));
      String pid = line.substring(start.length()).split(" ", 2)[0];
      ranks.add(ProcessHandle.of(Long.parseLong(pid)).orElseThrow());
    }
    return ranks;
  }

  private void assertNothingIsLeft() throws IOException {
    try (var left = Files.list(folder.resolve("tmp"))) {
      assertThat(left.filter(each -> each.getFileName().toString().startsWith("comm-cli-")))
          .isEmpty();
    }
  }

  /// Joins and sleeps.
  static final class SleepingRank {
    private SleepingRank() {}

    /// Joins and sleeps.
    ///
    /// @param arguments none
    /// @throws InterruptedException never
    public static void main(String[] arguments) throws InterruptedException {
      try (var communicator = org.comm4j.api.Communicators.open()) {
        communicator.barrier();
        System.out.println(
            "rank %d has pid %d here"
                .formatted(communicator.rank(), ProcessHandle.current().pid()));
        Thread.sleep(Duration.ofMinutes(1)); // it is killed long before; nobody waits for its end
      }
    }
  }
}
