package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.comm4j.api.Capability;
import org.comm4j.api.spi.RankLauncher;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Jobs of MPI as processes, from start to end.
class MpiJobTest {
  private static final Duration BOUND = Duration.ofSeconds(60);
  private static final Duration SOON = Duration.ofSeconds(20);
  private static final long POLL_NS = TimeUnit.MILLISECONDS.toNanos(20);

  @TempDir Path folder;

  /// Of the batch job another host is a part that nobody reaches.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_ownLauncherInABatchJob_isTheWholeJobAndSharesMemory(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 3);
    try (var job = MpiTestJob.start(launcher, 3, batchJob(), folder, "local")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines())
          .contains("rank 0 of 3 on mpi, sum 3", "rank 1 of 3 on mpi, sum 3")
          .contains("rank 2 of 3 on mpi, sum 3")
          .contains(
              "counts of %d bits".formatted(abi == Abi.MPICH ? 64 : 32)); // what the contract tests
      assertThat(job.output().lines().filter("a buffer at byte 0 of a page"::equals)).hasSize(3);
      assertThat(job.output().lines().filter("3 ranks on this host, sum 3"::equals)).hasSize(3);
      assertThat(job.output().lines().filter("shared memory: true"::equals)).hasSize(3);
      assertThat(job.output().lines().filter("a region of INT8"::equals)).hasSize(3);
    }
  }

  /// Each would choose another way to wait, and MPI does not match blocking collectives with
  /// others.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_oneRankHasFewerProcessors_allWaitTheSameWay(Abi abi) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 1);
    List<String> command = new ArrayList<>(launcher.command());
    List<String> rank = MpiTestJob.rank(folder, "open");
    command.addAll(rank);
    command.addAll(List.of(":", "-n", "1", rank.getFirst(), "-XX:ActiveProcessorCount=1"));
    command.addAll(rank.subList(1, rank.size()));
    Map<String, String> environment = new HashMap<>(launcher.environment());
    environment.put("COMM_TIMEOUT", "20s");
    try (var job = MpiTestJob.start(command, 2, environment, folder)) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines())
          .contains("rank 0 of 2 on mpi, sum 2", "rank 1 of 2 on mpi, sum 2");
    }
  }

  /// The leader's are the pages that it has written.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void createRegion_manyStayOpen_laterOnesGiveTheirMemoryBack(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "regions")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter("regions left: 0"::equals))
          .as(job.output())
          .hasSize(2);
    }
  }

  /// By whatever makes the ranks meet next: another communicator, a region, another launch.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, multiple", "MPICH, multiple", "OPEN_MPI, serialized"})
  void createRegion_communicatorClosed_givesItsMemoryBack(Abi abi, String threads)
      throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings = Map.of("COMM_MPI_THREADS", threads);
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "regions-apart")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter(line -> line.startsWith("regions left")))
          .as(job.output())
          .containsExactlyInAnyOrder(
              "regions left of closed communicators: 0",
              "regions left of closed communicators: 0",
              "regions left of the launch before: 0",
              "regions left of the launch before: 0",
              "regions left that not all have closed: 1",
              "regions left that not all have closed: 1");
    }
  }

  /// The window would have no memory.
  @ParameterizedTest
  @ValueSource(strings = {"MPIR_CVAR_NOLOCAL", "MPIR_CVAR_ODD_EVEN_CLIQUES"})
  void splitLocal_libraryDoesNotShare_hasTheRanksAndSaysSo(String variable) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 3);
    try (var job = MpiTestJob.start(launcher, 3, Map.of(variable, "1"), folder, "local")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter("3 ranks on this host, sum 3"::equals)).hasSize(3);
      assertThat(job.output().lines().filter("shared memory: false"::equals)).hasSize(3);
      assertThat(job.output().lines().filter(line -> line.startsWith("unsupported: createRegion")))
          .hasSize(3);
      assertThat(job.output().lines().filter("goes on, sum 3"::equals)).hasSize(3);
    }
  }

  /// By the library's blocking functions and its others. Takes 4 GiB of memory and more.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, native", "OPEN_MPI, test", "MPICH, native", "MPICH, test"})
  @EnabledIfSystemProperty(named = "comm4j.full", matches = "true")
  void collective_beyondInts_isWhole(Abi abi, String wait) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", wait);
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "large")) {
      assertThat(job.await(BOUND.multipliedBy(3))).as(job.output()).isZero();
      assertThat(job.output().lines().filter("reduced: 1 11 21 31 41"::equals)).hasSize(2);
      assertThat(job.output().lines().filter("broadcast: 1 1 1 1 1"::equals)).hasSize(2);
      assertThat(job.output().lines().filter("gathered: 2 2 2 2 3"::equals)).hasSize(2);
    }
  }

  /// Otherwise each process would be rank 0 of 1, without a word.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_launcherOfTheOther_isRefusedByBothNames(Abi abi) throws Exception {
    MpiLibrary library = MpiTestJob.library(abi);
    MpiLibrary other = MpiTestJob.library(abi == Abi.MPICH ? Abi.OPEN_MPI : Abi.MPICH);
    var launcher = MpiTestJob.launcher(other, 2);
    Map<String, String> wrong = Map.of("COMM_MPI_LIBRARY", library.file().toString());
    try (var job = MpiTestJob.start(launcher, 2, wrong, folder, "open")) {
      assertThat(job.await(BOUND)).as(job.output()).isNotZero();
      assertThat(failure(job)).contains("Open MPI", "MPICH");
    }
  }

  /// A rank that says it is one of two, but that no MPI launcher has started.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_noLauncher_saysHowToStart(Abi abi) throws Exception {
    Map<String, String> settings =
        Map.of(
            "COMM_MPI_LIBRARY",
            MpiTestJob.library(abi).file().toString(),
            "COMM_JOIN_TIMEOUT",
            "3s",
            "COMM_WORLD_SIZE",
            "2",
            "COMM_RANK",
            "0");
    try (var job = MpiTestJob.start(MpiTestJob.rank(folder, "open"), 2, settings, folder)) {
      assertThat(job.await(BOUND)).as(job.output()).isNotZero();
      assertThat(failure(job)).contains("mpirun").contains("comm-cli run");
    }
  }

  /// The library waits for it when it is initialised, and can't be initialised again; what the
  /// ranks then begin can't be taken back.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, false", "MPICH, false", "OPEN_MPI, true", "MPICH, true"})
  void meet_anotherComesLate_endsAtTheDeadlineAndMeetsLater(Abi abi, boolean isInitialised)
      throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    String[] arguments = {"meet-late", folder.toString(), Boolean.toString(isInitialised)};
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, arguments)) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(failure(job))
          .matches("failed: MISSING_RANKS rank 0 waited [\\d.]+ s for others of the 2 ranks(?s).*")
          .contains("raise COMM_JOIN_TIMEOUT");
      assertThat(job.output()).contains("interrupted: true");
      for (String line : List.of("met as test", "met again as test")) {
        assertThat(job.output().lines().filter(line::equals)).as(job.output()).hasSize(2);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_initialisedByTheProgram_leavesTheEndToIt(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "guest")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter("rank 1 of 2 on mpi, sum 2"::equals))
          .as(job.output())
          .hasSize(2);
      assertThat(job.output()).contains("finalised by its own program");
      assertThat(failure(job)).contains("was finalised in this process already");
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_initialisedWithoutThreads_isRefused(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "guest-single")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(failure(job))
          .contains("MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE", "COMM_MPI_THREADS=serialized");
      assertThat(job.output()).contains("finalised by its own program");
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_initialisedWithoutThreads_isUsedByOneAtATime(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings = Map.of("COMM_MPI_THREADS", "serialized");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "guest-single")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter("rank 1 of 2 on mpi, sum 2"::equals))
          .as(job.output())
          .hasSize(2);
    }
  }

  /// Its messages go over TCP, as between hosts.
  @Test
  void finalise_rankIsLate_doesNotWaitForEver() throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 2);
    Map<String, String> settings = Map.of("MPIR_CVAR_NOLOCAL", "1", "UCX_TLS", "tcp,self");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "slow-end")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter("finalised, though late"::equals)).hasSize(1);
    }
  }

  /// What a library answers after nobody waits for it any more.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void cancel_answeredLate_endsThatReceiveAlone(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 1);
    try (var job = MpiTestJob.start(launcher, 1, Map.of(), folder, "impatient")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines())
          .contains("taken back: false", "the next one got 7")
          .contains("contradicted at once: null", "taken back then: false", "the other one got 8.0")
          .anyMatch(line -> line.startsWith("awaited: receive"))
          .anyMatch(line -> line.startsWith("awaited then: receive"));
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void rank_killed_jobEndsAndNothingIsLeft(Abi abi) throws Exception {
    int size = 3;
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), size);
    try (var job = MpiTestJob.start(launcher, size, Map.of(), folder, "loop", folder.toString())) {
      List<ProcessHandle> ranks =
          IntStream.range(0, size).mapToObj(rank -> rank(job, rank)).toList();
      Set<Path> segments = segments(ranks);
      assertThat(segments).isNotEmpty();
      assertThat(ranks.get(1).destroyForcibly()).isTrue();
      assertThat(job.await(SOON)).as(job.output()).isNotZero();
      for (ProcessHandle rank : ranks) {
        rank.onExit().get(SOON.toSeconds(), TimeUnit.SECONDS);
      }
      assertThat(segments).noneMatch(Files::exists);
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// Who waits in the library can't be thrown out of it. Who has done its part is not needed any
  /// more, however late others are.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void rank_leftAndNeeded_jobEndsByItsName(Abi abi) throws Exception {
    var launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 3);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "native");
    try (var job = MpiTestJob.start(launcher, 3, settings, folder, "leave")) {
      assertThat(job.await(BOUND)).as(job.output()).isNotZero();
      assertThat(job.output())
          .contains("the sum without the one that has left: 3.0")
          .contains(
              "rank 2 failed: left the session while barrier needs it; ending the job with MPI_Abort")
          .doesNotContain("a barrier without one");
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// With all that helps: the launcher leaves the others alone, they don't hear its signal, and it
  /// does not see how the rank died.
  @Test
  void rank_killed_shrinkIsOfferedIfTheLibrarySurvives() throws Exception {
    MpiLibrary library = MpiTestJob.library(Abi.MPICH);
    assumeThat(library.features()).contains(MpiLibrary.Feature.FAULT_TOLERANCE);
    RankLauncher launcher = MpiTestJob.launcher(library, 3);
    List<String> command = new ArrayList<>(launcher.command());
    command.add(1, "-disable-auto-cleanup");
    command.addAll(List.of("sh", "-c", "trap '' USR1; \"$@\"; exit $?", "sh"));
    command.addAll(MpiTestJob.rank(folder, "survive"));
    try (var job = MpiTestJob.start(command, 3, launcher.environment(), folder)) {
      var _ = job.await(BOUND); // the launcher tells of the one that was killed
      assertThat(job.output().lines())
          .as(job.output())
          .filteredOn(line -> line.matches("nobody noticed|noticed: .*|the barrier ended"))
          .hasSize(2); // so both got there
      boolean survived = job.output().lines().filter("survived"::equals).count() == 2;
      assertThat(Abilities.USUAL.contains(Capability.SHRINK)).as(job.output()).isEqualTo(survived);
      assertThat(MpiLibrary.Feature.FAULT_TOLERANCE.shown().endsWith("(not used)"))
          .as(job.output())
          .isNotEqualTo(survived);
    }
  }

  /// What PBS, Slurm and Grid Engine say of one.
  private Map<String, String> batchJob() throws IOException {
    String elsewhere = "no.such.host.invalid";
    Path hosts = folder.resolve("hosts");
    Files.write(hosts, List.of(InetAddress.getLocalHost().getHostName(), elsewhere));
    Path slots = folder.resolve("slots");
    Files.writeString(slots, elsewhere + " 3 all.q UNDEFINED\n");
    Map<String, String> batch = new HashMap<>();
    batch.put("PBS_NODEFILE", hosts.toString());
    batch.put("PBS_ENVIRONMENT", "PBS_BATCH");
    batch.put("PBS_JOBID", "1.server");
    batch.put("SLURM_JOBID", "1");
    batch.put("SLURM_NODELIST", elsewhere);
    batch.put("SLURM_TASKS_PER_NODE", "3");
    batch.put("SGE_ROOT", folder.toString());
    batch.put("ARC", "lx-amd64");
    batch.put("JOB_ID", "1");
    batch.put("PE_HOSTFILE", slots.toString());
    return batch;
  }

  /// A rank that communicates by now.
  private ProcessHandle rank(MpiTestJob job, int rank) {
    Path file = folder.resolve("pid-" + rank);
    long endNs = System.nanoTime() + BOUND.toNanos();
    try {
      while (!Files.exists(file)) {
        assertThat(System.nanoTime() - endNs).as(job.output()).isNegative();
        assertThat(job.isAlive()).as(job.output()).isTrue();
        LockSupport.parkNanos(POLL_NS);
      }
      return ProcessHandle.of(Long.parseLong(Files.readString(file))).orElseThrow();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /// What processes share in memory that has a name.
  private static Set<Path> segments(List<ProcessHandle> processes) throws IOException {
    Set<Path> segments = new HashSet<>();
    for (ProcessHandle process : processes) {
      Path maps = Path.of("/proc", Long.toString(process.pid()), "maps");
      Files.readAllLines(maps).stream()
          .filter(line -> line.contains("/dev/shm/"))
          .map(line -> Path.of(line.substring(line.indexOf('/')).replace(" (deleted)", "")))
          .forEach(segments::add);
    }
    return segments;
  }

  private static String failure(MpiTestJob job) throws IOException {
    return job.output()
        .lines()
        .filter(line -> line.startsWith("failed: "))
        .findFirst()
        .orElseThrow(() -> failureOf(job));
  }

  private static AssertionError failureOf(MpiTestJob job) {
    try {
      return new AssertionError("no rank has failed:\n" + job.output());
    } catch (IOException e) {
      return new AssertionError(e);
    }
  }
}
