package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What becomes of what ranks print when a launch ends before them, and what is said of how they
/// end.
class RunEndTest {
  private static final File FULL = new File("/dev/full");

  @Test
  void run_isSignalled_passesOnWhatRanksPrintLast() throws Exception {
    String script = "trap 'kill %1; seq 1 2000; echo LAST; exit 0' TERM; echo up; sleep 100 & wait";
    try (var launch = Launches.start("run", "-n", "3", "--", "bash", "-c", script)) {
      for (int rank = 0; rank < 3; rank++) {
        String up = "[" + rank + "] up";
        launch.line(up::equals);
      }
      launch.terminate();
      Commands.Done done = launch.await();
      assertThat(done.out().lines().filter(line -> line.endsWith("] LAST"))).hasSize(3);
      assertThat(done.out().lines()).hasSize(3 * (1 + 2000 + 1));
    }
  }

  @Test
  void run_nobodyReadsTheOutputAnyMore_endsTheRanks(@TempDir Path folder) throws Exception {
    Path errors = folder.resolve("err");
    Process launch = command("run", "-n", "2", "--", "yes").redirectError(errors.toFile()).start();
    try (var output = launch.inputReader(StandardCharsets.UTF_8)) {
      assertThat(output.readLine()).endsWith("] y");
    }
    try {
      assertThat(launch.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(launch.exitValue()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(Files.readString(errors)).contains("comm-cli: what ranks print can't be written");
    } finally {
      launch.destroyForcibly();
    }
  }

  @Test
  void availableBackends_diskIsFull_isNoSuccess(@TempDir Path folder) throws Exception {
    Path errors = folder.resolve("err");
    Process listing =
        command("available-backends").redirectOutput(FULL).redirectError(errors.toFile()).start();
    assertThat(listing.waitFor()).isEqualTo(ExitCode.CHECK_FAILED);
    assertThat(Files.readString(errors)).contains("the standard output could not be written");
  }

  /// As where a script has died that had started what computes.
  @Test
  void run_rankFailsBeforeWhatItHasStarted_leavesNothing() throws Exception {
    String script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo started $!; exit 3";
    try (var launch = Launches.start("run", "-n", "2", "--", "bash", "-c", script)) {
      Commands.Done done = launch.await();
      assertThat(done.code()).isEqualTo(ExitCode.RANK_FAILED);
      List<Long> started =
          done.out().lines().map(line -> Long.valueOf(line.replaceFirst(".* ", ""))).toList();
      assertThat(started).hasSize(2);
      assertThat(started.stream().flatMap(pid -> ProcessHandle.of(pid).stream()))
          .allMatch(each -> !each.isAlive() || ProcessFacts.of(each).isZombie());
    }
  }

  /// 22 is no signal that ends a process unless somebody wants that.
  @Test
  void run_rankEndsWithACodeAbove128_isNotSaidToBeSignalled() throws Exception {
    try (var launch = Launches.start("run", "-n", "1", "--", "bash", "-c", "exit 150")) {
      assertThat(launch.await().err()).contains("rank 0 ended with exit code 150");
    }
  }

  @Test
  void run_placeCanNotBeOnAClassPath_isRefused(@TempDir Path folder) throws Exception {
    Path program =
        Files.writeString(
            Files.createDirectory(folder.resolve("a:b")).resolve("Nothing.java"), "void main() {}");
    Files.createDirectories(program.resolveSibling("src/main/resources"));
    try (var launch = Launches.start("run", "-n", "1", "--backend", "shm", program.toString())) {
      Commands.Done done = launch.await();
      assertThat(done.code()).isEqualTo(ExitCode.USAGE);
      assertThat(done.err()).contains("a:b", "can't be on a class path");
    }
  }

  @Test
  void run_javaFileUsesVectors_compiles(@TempDir Path folder) throws Exception {
    Path program =
        Files.writeString(
            folder.resolve("Vectors.java"),
            """
            void main() {
              IO.println(jdk.incubator.vector.FloatVector.SPECIES_128.length() + " lanes");
            }
            """);
    try (var launch = Launches.start("run", "-n", "1", "--backend", "shm", program.toString())) {
      assertThat(launch.await().out()).contains("4 lanes");
    }
  }

  private static ProcessBuilder command(String... arguments) {
    List<String> all = new ArrayList<>(Launches.java(Main.class));
    all.addAll(List.of(arguments));
    return new ProcessBuilder(all);
  }
}
