package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What `comm-cli` leaves on disk.
@Timeout(120)
@EnabledOnOs(OS.LINUX)
class LaunchFolderTest {
  @TempDir Path temporary;

  @ParameterizedTest
  @ValueSource(strings = {"bench", "verify"})
  void command_endedBySignal_leavesNothing(String command) throws Exception {
    String line = command + (command.equals("bench") ? " allreduce" : "");
    try (var watch = temporary.getFileSystem().newWatchService()) {
      temporary.register(watch, StandardWatchEventKinds.ENTRY_CREATE);
      try (var launch = start(line + " -n 2 --backend local")) {
        assertThat(watch.poll(100, TimeUnit.SECONDS)).as("something in " + temporary).isNotNull();
        launch.terminate();
        assertThat(launch.await().code()).isNotZero();
        assertNothingIsLeft();
      }
    }
  }

  @Test
  void run_killed_isCleanedUpByTheNextLaunchAndNotBefore(@TempDir Path sources) throws Exception {
    Path source = sources.resolve("Waiting.java");
    Files.writeString(
        source,
        """
        void main() throws InterruptedException {
          IO.println("waiting");
          new java.util.concurrent.CountDownLatch(1).await();
        }
        """);
    try (var launch = start("run -n 1 --backend local " + source)) {
      launch.line(line -> line.contains("waiting"));
      LaunchFolder.sweep(temporary);
      assertThat(temporary).isDirectoryRecursivelyContaining("glob:**.class");
      launch.kill();
      launch.await();
    }
    assertThat(temporary).isNotEmptyDirectory();
    try (var next = start("topology -n 1 --backend local")) {
      assertThat(next.await().code()).isEqualTo(ExitCode.FINE);
    }
    assertNothingIsLeft();
  }

  /// As a rank that is a process can.
  @Test
  void run_shutdownHookOfAThread_canLoadItsClasses(@TempDir Path sources) throws Exception {
    Path source = sources.resolve("Saving.java");
    Files.writeString(
        source,
        """
        record Late(String what) {}

        void main() {
          Runtime.getRuntime().addShutdownHook(new Thread(() -> IO.println(new Late("saved"))));
        }
        """);
    try (var launch = start("run -n 1 --backend local " + source)) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out()).as(done.err()).contains("Late[what=saved]");
    }
    assertNothingIsLeft();
  }

  /// Of a launch whose ranks had their files in memory.
  @Test
  void launch_killedProcessLeftFolderInMemory_removesIt() throws Exception {
    Path killed = Files.createTempDirectory(LaunchFolder.sharedMemory(), "comm-cli-launch-");
    Path lock = Files.createFile(killed.resolve("lock"));
    try (var launch = start("topology -n 1 --backend local")) {
      assertThat(launch.await().code()).isEqualTo(ExitCode.FINE);
      assertThat(killed).doesNotExist();
    } finally {
      Files.deleteIfExists(lock);
      Files.deleteIfExists(killed);
    }
  }

  /// As a plain `mpirun` leaves it whose ranks are all killed at once. A launch of any kind does
  /// it.
  @Test
  void launch_killedRanksLeftTheirSession_removesIt() throws Exception {
    Path sessions = Files.createDirectory(temporary.resolve("sessions"));
    Files.setPosixFilePermissions(sessions, PosixFilePermissions.fromString("rwx------"));
    Path left = Files.createFile(sessions.resolve("left.session"));
    Files.setPosixFilePermissions(left, PosixFilePermissions.fromString("rw-------"));
    Files.setLastModifiedTime(left, FileTime.from(Instant.now().minus(Duration.ofHours(1))));
    String[] line = "topology -n 1 --backend local".split(" ", -1);
    try (var launch = Launches.start(Map.of("COMM_SESSION_DIR", sessions.toString()), line)) {
      assertThat(launch.await().code()).isEqualTo(ExitCode.FINE);
    }
    assertThat(sessions).isEmptyDirectory();
  }

  private Launches start(String line) throws IOException {
    var environment = Map.of("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=" + temporary);
    return Launches.start(environment, line.split(" ", -1));
  }

  @Test
  void create_placeCantBeWrittenTo_saysWhereAndWhatToDo(@TempDir Path folder) {
    Path none = folder.resolve("none");
    assertThatThrownBy(() -> LaunchFolder.create(none))
        .isInstanceOf(IOException.class)
        .hasMessageContainingAll(none.toString(), "NoSuchFileException", "-Djava.io.tmpdir=");
  }

  private void assertNothingIsLeft() throws IOException {
    try (var left = Files.list(temporary)) {
      assertThat(left).isEmpty();
    }
  }
}
