package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Commands that look for backends, with one beside the class path, as `run` takes it.
@Timeout(120)
@EnabledOnOs(OS.LINUX)
class AvailableBackendsTest {
  @TempDir Path plugin;

  @BeforeEach
  void addBackend() throws Exception {
    Path services = Files.createDirectories(plugin.resolve("META-INF/services"));
    Files.writeString(
        services.resolve("org.comm4j.api.spi.BackendProvider"), LaunchedBackend.class.getName());
  }

  @Test
  void list_pluginPath_hasItsBackend() throws Exception {
    assertThat(Launches.run("available-backends").out()).doesNotContain("launched");
    var done = Launches.run("available-backends", "--plugin-path", plugin.toString());
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out()).containsPattern("launched +ready");
    assertThat(done.err()).doesNotContain("comm-cli:");
  }

  @Test
  void doctor_pluginPath_looksAtItsBackend() throws Exception {
    var done = Launches.run("doctor", "--verbose", "--plugin-path", plugin.toString());
    assertThat(done.code()).as(done.out() + done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out())
        .containsPattern("launched +ok +ready")
        .containsPattern("COMM_PLUGIN_PATH +ok +" + plugin);
  }

  @Test
  void explain_pluginPath_knowsItsBackend() throws Exception {
    List<String> asked = List.of("explain", "allReduce", "-n", "2", "--backend", "launched");
    assertThat(Launches.run(asked.toArray(String[]::new)).code()).isEqualTo(ExitCode.UNAVAILABLE);
    List<String> told = new ArrayList<>(asked);
    told.addAll(List.of("--plugin-path", plugin.toString()));
    var done = Launches.run(told.toArray(String[]::new));
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out()).contains("algorithm: ");
  }

  @Test
  void list_pluginIsUnavailable_saysWhyAsRunDoes() throws Exception {
    Map<String, String> environment = Map.of("COMM_LAUNCHED_BY", "nobody");
    String path = plugin.toString();
    try (var list = Launches.start(environment, "available-backends", "--plugin-path", path);
        var run =
            Launches.start(
                environment,
                "run -n 1 --backend launched --plugin-path %s -- true"
                    .formatted(path)
                    .split(" "))) {
      Commands.Done listed = list.await();
      assertThat(listed.code()).as(listed.err()).isEqualTo(ExitCode.FINE);
      assertThat(listed.out())
          .containsPattern(
              "launched +unavailable .*nobody is to launch it +unset COMM_LAUNCHED_BY");
      Commands.Done refused = run.await();
      assertThat(refused.code()).isEqualTo(ExitCode.UNAVAILABLE);
      assertThat(refused.err()).contains("nobody is to launch it; unset COMM_LAUNCHED_BY");
    }
  }

  @Test
  void list_serializedObject_isNotRead() throws Exception {
    Map<String, String> environment = Map.of("COMM_LAUNCHED_BY", "an object");
    try (var list =
        Launches.start(environment, "available-backends", "--plugin-path", plugin.toString())) {
      Commands.Done listed = list.await();
      assertThat(listed.out())
          .containsPattern("launched +unavailable .*InvalidClassException.*REJECTED");
    }
  }

  /// As a user starts a program of their own.
  @Test
  void argumentFile_makesEveryBackendOfTheHostReady() throws Exception {
    assertThat(Launches.java(Main.class))
        .contains("@" + Path.of("..", "comm4j.args"))
        .noneMatch(each -> each.startsWith("--"));
    var done = Launches.run("available-backends");
    assertThat(done.out()).containsPattern("aeron +ready").containsPattern("shm +ready");
  }

  @Test
  void list_nothingIsOnPluginPath_saysWhatWasExpectedThere(@TempDir Path empty) {
    var done = Commands.run(new AvailableBackends(), "--plugin-path", empty.toString());
    assertThat(done.code()).isEqualTo(ExitCode.FINE);
    assertThat(done.err())
        .contains("--plugin-path: '%s' has no backend".formatted(empty), "META-INF/services/");
  }

  @Test
  void list_pluginPathIsAbsent_showsItAsBroken() {
    String absent = plugin.resolve("absent.jar").toString();
    var done = Commands.run(new AvailableBackends(), "--plugin-path", absent);
    assertThat(done.out()).containsPattern(absent + " +broken");
    assertThat(done.err()).isEmpty();
  }
}
