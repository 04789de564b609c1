package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.util.Map;
import java.util.concurrent.TimeUnit;
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

  private Launches start(String line) throws IOException {
    var environment = Map.of("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=" + temporary);
    return Launches.start(environment, line.split(" ", -1));
  }

  private void assertNothingIsLeft() throws IOException {
    try (var left = Files.list(temporary)) {
      assertThat(left).isEmpty();
    }
  }
}
