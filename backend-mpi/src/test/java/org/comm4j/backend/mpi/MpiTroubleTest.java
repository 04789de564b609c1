package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.comm4j.api.spi.RankLauncher;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Errors of jobs of MPI, as their users see them, and that no JVM crashes.
class MpiTroubleTest {
  private static final Duration BOUND = Duration.ofSeconds(60);

  /// Of a process that no launcher has started.
  private static final Map<String, String> ALONE = Map.of("COMM_WORLD_SIZE", "1", "COMM_RANK", "0");

  @TempDir Path folder;

  /// Where nothing can be thrown, since the call is in the library.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void deadline_inTheLibrary_watchdogSaysWhoWaitsAndEndsTheJob(Abi abi) throws Exception {
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "native");
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "late")) {
      assertThat(job.await(BOUND)).as(job.output()).isEqualTo(1);
      assertThat(job.output())
          .containsPattern(
              "comm4j: rank 0 has waited \\d+\\.\\d s in barrier of 'world', in the library's blocking"
                  + " function for ranks that have not come, or call something else; raise COMM_TIMEOUT .*"
                  + "COMM_CHECK=full.*"
                  + "COMM_MPI_WAIT=test, where this is an exception; ending the job with MPI_Abort");
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  @ParameterizedTest
  @CsvSource({"OPEN_MPI, native", "MPICH, test"})
  void error_ofTheLibrary_saysWhoseCallAndWhat(Abi abi, String wait) throws Exception {
    MpiLibrary library = MpiTestJob.library(abi);
    RankLauncher launcher = MpiTestJob.launcher(library, 1);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", wait);
    try (var job = MpiTestJob.start(launcher, 1, settings, folder, "wrong-rank")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .containsPattern(
              "failed: code 6, rank 0, send of 'world':"
                  + " MPI_I?[Ss]end of %s returned error class 6, code \\d+: .*[Rr]ank"
                      .formatted(library.version()))
          .contains("kept: true") // the library may still read it
          .containsPattern("broken: .*BackendException: rank 0, send")
          .containsPattern("failed: rank 0, duplicate of 'none': MPI_Comm_idup of ")
          .containsPattern("broken: .*BackendException: rank 0, duplicate")
          .containsPattern(
              "refused: .*this process gave up a communicator .*; start the job again");
    }
  }

  /// The launcher would end the others, and MPICH's would call that a success.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, test", "MPICH, test", "OPEN_MPI, native", "MPICH, native"})
  void end_afterAFailure_waitsForTheOthers(Abi abi, String wait) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 3);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", wait);
    try (var job = MpiTestJob.start(launcher, 3, settings, folder, "abort")) {
      int code = job.await(BOUND);
      if (wait.equals("test")) { // else a thread stays in the library, which can't be finalised
        assertThat(code).as(job.output()).isZero();
      }
      assertThat(job.output())
          .contains("to see how that ends")
          .contains("rank 0 has done all", "rank 1 has done all", "rank 2 has done all");
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// By opening another communicator they have all come.
  @Test
  void end_rankWasLateBefore_waitsForIt() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.OPEN_MPI), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "late-once")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .contains("who are alive but have not come")
          .contains("rank 0 has done all", "rank 1 has done all");
    }
  }

  /// Of a collective the library does not say who has sent too much.
  @Test
  void broadcast_rootHasMore_namesNoOtherRankForIt() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.OPEN_MPI), 3);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test");
    try (var job = MpiTestJob.start(launcher, 3, settings, folder, "short")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .containsPattern(
              "failed: another rank's broadcast of 'world/.*' moves more than rank [01]'s .*COMM_CHECK=full")
          .doesNotContain("rank 0 sent", "rank 1 sent");
    }
  }

  /// Nobody is late.
  @Test
  void deadline_ranksCallDifferentThings_saysSo() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "differ")) {
      var _ = job.await(BOUND); // what is lost may keep the library from its end
      assertThat(job.output())
          .containsPattern(
              "failed: ranks \\[\\], rank 1 waited [\\d.]+ s in broadcast of 'world' in which all ranks"
                  + " wait by now, each in its collective #0; set COMM_CHECK=full")
          .doesNotContain("rank(s) []");
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void split_errorOnARank_isHeardByWhoHasTheChild(Abi abi) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test", "COMM_TIMEOUT", "20s");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "no-memory")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .contains("failed: java.lang.OutOfMemoryError: to see how that ends")
          .containsPattern("failed: .*AbortedException: .*OutOfMemoryError: to see how that ends");
      assertThat(job.output().lines().filter(line -> line.contains("'split' threw java.lang.Out")))
          .as(job.output())
          .hasSizeGreaterThanOrEqualTo(2); // also of whom the child's end has told already
    }
  }

  /// The others are where only that rank could let them out, and still have their world.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, split", "MPICH, split", "OPEN_MPI, copy"})
  void abort_othersMakeWhatAllHaveAgreedOn_isThrownThere(Abi abi, String what) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 3);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test", "COMM_TIMEOUT", "20s");
    try (var job = MpiTestJob.start(launcher, 3, settings, folder, "half-made", what)) {
      int code = job.await(BOUND);
      if (what.equals("copy")) { // else a thread stays in the library, which can't be finalised
        assertThat(code).as(job.output()).isZero();
      }
      assertThat(job.output().lines().filter(line -> line.endsWith("to see how that ends")))
          .as(job.output())
          .hasSize(2);
      assertThat(job.output())
          .contains("rank 0 has done all", "rank 1 has done all", "rank 2 has done all");
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// The others wait in the barrier, and nothing else would end it before the deadline.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void close_barrierAboutToBegin_isHeardByTheOthers(Abi abi) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 3);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test", "COMM_TIMEOUT", "20s");
    try (var job = MpiTestJob.start(launcher, 3, settings, folder, "close")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter(line -> line.startsWith("failed: ")))
          .as(job.output())
          .hasSize(5)
          .filteredOn(line -> line.contains("rank 0 closed"))
          .hasSize(4)
          .satisfies(lines -> {
            assertThat(lines).filteredOn(line -> line.contains("during barrier")).hasSize(2);
            assertThat(lines).filteredOn(line -> line.contains("during split")).hasSize(2);
          });
      String closed = "closed: createRegion on communicator 'world', which is closed";
      assertThat(job.output().lines().filter(closed::equals)).as(job.output()).hasSize(3);
    }
  }

  /// Open MPI's launcher does not like ranks that have not finalised.
  @Test
  void close_lastTwoAtOnce_endTheJobOnce() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.OPEN_MPI), 1);
    try (var job = MpiTestJob.start(launcher, 1, Map.of(), folder, "close-both")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void close_messageNobodyReceived_isNotFoundByOthers(Abi abi) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "unreceived")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output()).doesNotContain("found:");
    }
  }

  /// The library would receive into memory that is given back.
  @Test
  void closeOfBuffer_receiveBegins_isRefused() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.OPEN_MPI), 1);
    try (var job = MpiTestJob.start(launcher, 1, Map.of(), folder, "close-buffer")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .containsPattern("close threw: buffer .* is used by receive, which is in flight");
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  @Test
  void open_rankLeavesMeanwhile_leavesNoThread() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.OPEN_MPI), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "half-open")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .containsPattern("failed: .*left the session")
          .contains("threads left: []");
    }
  }

  /// The group of a host's ranks is made by all of them, at their first region. To it that rank is
  /// another one.
  @Test
  void regions_rankOfTheHostHasLeft_nameItToAll() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 4);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "test", "COMM_TIMEOUT", "20s");
    try (var job = MpiTestJob.start(launcher, 4, settings, folder, "left-host")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      List<String> failed =
          job.output().lines().filter(line -> line.startsWith("failed: ranks [3], ")).toList();
      for (String call : List.of("fence", "createRegion")) {
        assertThat(failed)
            .as(job.output())
            .filteredOn(line -> line.contains("left the session while " + call))
            .hasSize(3);
      }
    }
  }

  @Test
  void createRegion_leaderHasNoRoomForALittleOne_isRefusedOnAllRanks() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "room")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      for (String line :
          List.of(
              "a region of 100",
              "failed: createRegion: 100 bytes do not fit in /dev/shm of this host, which has 99 free; remove what is in it, or make it larger (with Docker --shm-size)",
              "broken: null")) {
        assertThat(job.output().lines().filter(line::equals)).as(job.output()).hasSize(2);
      }
    }
  }

  /// Its receiver has computed for longer than it may wait, but has not looked for it yet.
  @Test
  void receive_hasComeLongBefore_isNotGivenUp() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "left-sender")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .contains("has come in time", "failed: null", "has come before its sender left");
    }
  }

  /// Over TCP a long message goes on only while both ranks move it along.
  @Test
  void close_messageHasBegunToCome_isHeardByItsSender() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 2);
    Map<String, String> settings =
        Map.of("MPIR_CVAR_NOLOCAL", "1", "UCX_TLS", "tcp,self", "COMM_MPI_WAIT", "test");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "close-receiver")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output()).containsPattern("failed: .*rank 1 closed 'world/.*' during receive");
    }
  }

  /// What a rank did before is given time to come.
  @Test
  void failure_callHasWaitedForLong_watchdogLetsItGoOnForAWhile() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.MPICH), 1);
    try (var job = MpiTestJob.start(launcher, 1, Map.of(), folder, "watched")) {
      assertThat(job.await(BOUND)).as(job.output()).isEqualTo(1);
      assertThat(job.output())
          .contains("broken, but not ended yet")
          .containsPattern("has waited 20\\.0 s in barrier .*; it can't end: .*enough of this");
    }
  }

  /// The library is done with the receive, so the collector may move its array again.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void receive_senderHasClosed_failsAndHasItsArrayBack(Abi abi) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", "native");
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "closed-sender")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      boolean pins = "amd64".equals(System.getProperty("os.arch"));
      assertThat(job.output().lines())
          .contains(
              "failed: rank 0 aborted the communicator: rank 0 closed 'world' during the send for this receive",
              "lent: " + (pins ? 1 : 0),
              "has not back: 0");
    }
  }

  @ParameterizedTest
  @CsvSource({"OPEN_MPI, true", "MPICH, false", "MPICH, true"})
  void signals_opened_areStillTheJvms(Abi abi, boolean wanted) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    Map<String, String> settings =
        wanted ? Map.of("UCX_ERROR_SIGNALS", "SIGSEGV,SIGBUS,SIGFPE") : Map.of();
    try (var job = MpiTestJob.start(launcher, 2, settings, folder, "signals")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      for (String line :
          List.of(
              "handled otherwise when loaded: []",
              "handled otherwise while open: []",
              "null pointers found: 10000",
              "handled otherwise when closed: []")) {
        assertThat(job.output().lines().filter(line::equals)).as(job.output()).hasSize(2);
      }
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void exit_communicatorOpen_endsByItsCode(Abi abi) throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), 2);
    try (var job = MpiTestJob.start(launcher, 2, Map.of(), folder, "exit")) {
      assertThat(job.await(BOUND)).as(job.output()).isEqualTo(7);
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// Open MPI's launcher does not like ranks that have not finalised.
  @Test
  void exit_communicatorIsClosedMeanwhile_finalises() throws Exception {
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(Abi.OPEN_MPI), 1);
    try (var job = MpiTestJob.start(launcher, 1, Map.of(), folder, "hook")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output()).contains("closed while it is waited for: true");
    }
  }

  /// A process that no launcher has started may use either, but only one.
  @ParameterizedTest
  @EnumSource(
      value = Abi.class,
      names = {"OPEN_MPI", "MPICH"})
  void open_byTwoLibraries_isRefusedByBothFiles(Abi abi) throws Exception {
    MpiLibrary first = MpiTestJob.library(abi);
    MpiLibrary second = MpiTestJob.library(abi == Abi.MPICH ? Abi.OPEN_MPI : Abi.MPICH);
    List<String> command =
        MpiTestJob.rank(folder, "two", first.file().toString(), second.file().toString());
    try (var job = MpiTestJob.start(command, 1, ALONE, folder)) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .contains("rank 0 of 1 on mpi, sum 1")
          .contains(
              "backend 'mpi' is not available: this process uses %s already and can't use %s too; give a process one COMM_MPI_LIBRARY for as long as it lives"
                  .formatted(first.shown(), second.shown()));
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// It looks like one, but the dynamic loader does not take it.
  @Test
  void open_libraryCantBeLoaded_saysHowToSeeWhy() throws Exception {
    Path file = FakeLibrary.mpich("4.2").write(folder.resolve("libmpi.so.12"));
    Map<String, String> settings = new HashMap<>(ALONE);
    settings.put("COMM_MPI_LIBRARY", file.toString());
    try (var job = MpiTestJob.start(MpiTestJob.rank(folder, "open"), 1, settings, folder)) {
      assertThat(job.await(BOUND)).as(job.output()).isNotZero();
      assertThat(job.output())
          .containsPattern(
              "failed: .*backend 'mpi' is not available: %s \\(MPICH 4\\.2\\) can't be loaded: .+; see what it lacks with ldd %s"
                  .formatted(file.toRealPath(), file.toRealPath()));
      assertThat(MpiContractTest.crashes(folder)).as(job.output()).isEmpty();
    }
  }

  /// The header of an array of bytes is 16 or 12 bytes long; without compressed class pointers 20.
  @ParameterizedTest
  @CsvSource({"-XX:-UseCompactObjectHeaders, lent at a 0", "-XX:+UseCompactObjectHeaders, copied"})
  @EnabledIfSystemProperty(named = "os.arch", matches = "amd64")
  void pins_headersOfOtherLength_lendWhatIsAligned(String headers, String longs) throws Exception {
    List<String> command = MpiTestJob.rank(folder, "pins", headers);
    try (var job = MpiTestJob.start(command, 1, ALONE, folder)) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output())
          .contains(
              "elements of 1 bytes: lent at a 0",
              "elements of 4 bytes: lent at a 0",
              "elements of 8 bytes: " + longs,
              "has not back: 0");
    }
  }

  /// It can be loaded, but functions or symbols that every MPI has are not in it; each time it is
  /// tried.
  @ParameterizedTest
  @CsvSource({
    "MPICH, No MPI\\) has no MPI_Init_thread; install a library of MPI 3.1 or later",
    "OPEN_MPI, the library exports no ompi_mpi_comm_world \\(expected: Open MPI 4 or 5\\); name another"
  })
  void load_libraryLacksFunctions_saysWhich(Abi abi, String expected) throws Exception {
    Path file = Path.of(System.getProperty("java.home"), "lib", "libjava.so");
    List<String> command = MpiTestJob.rank(folder, "load", file.toString(), abi.name());
    try (var job = MpiTestJob.start(command, 1, ALONE, folder)) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      assertThat(job.output().lines().filter(line -> line.startsWith("failed: ")))
          .as(job.output())
          .hasSize(2)
          .allSatisfy(line -> assertThat(line).containsPattern(expected));
    }
  }

  /// Four ranks, since libraries add of three the first two first, as our kernels do.
  @ParameterizedTest
  @CsvSource({"OPEN_MPI, native", "MPICH, test"})
  void sums_foundToDiffer_areFoldedByOurKernels(Abi abi, String wait) throws Exception {
    int size = 4;
    RankLauncher launcher = MpiTestJob.launcher(MpiTestJob.library(abi), size);
    Map<String, String> settings = Map.of("COMM_MPI_WAIT", wait);
    try (var job = MpiTestJob.start(launcher, size, settings, folder, "sums")) {
      assertThat(job.await(BOUND)).as(job.output()).isZero();
      for (String line :
          List.of(
              "found the same: true",
              "the same numbers: true",
              "other numbers: false",
              "in the order of the ranks: false",
              "shown: " + Ways.DIFFERENT_SUMS,
              "found the same by others: true")) {
        assertThat(Collections.frequency(job.output().lines().toList(), line))
            .as(line + " in " + job.output())
            .isEqualTo(size);
      }
      assertThat(job.output().lines().filter("folded in the order of the ranks: true"::equals))
          .as(job.output())
          .hasSize(2 * size);
      assertThat(job.output().lines().filter("and by a copy: true"::equals))
          .as(job.output())
          .hasSize(2 * size);
    }
  }
}
