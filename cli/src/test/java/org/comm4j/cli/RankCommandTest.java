package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// What the JVMs of ranks are given.
class RankCommandTest {
  @Test
  void of_usersProgram_hasTheFlagsOfTheArgumentFileAlone() throws Exception {
    List<String> flags =
        Files.readAllLines(Path.of("..", "comm4j.args")).stream()
            .filter(line -> line.startsWith("-"))
            .toList();
    var program = new Program.MainClass("Training", List.of(Path.of("classes")), List.of("x"));
    List<String> command = RankCommand.of(program, new HashMap<>());

    assertThat(flags).contains("--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED");
    assertThat(command.subList(1, command.indexOf("-cp"))).isEqualTo(flags);

    Map<String, String> environment = new HashMap<>(Map.of("JDK_JAVA_OPTIONS", "-Xmx1g"));
    RankCommand.of(new Program.Jar(Path.of("app.jar"), List.of()), environment);
    assertThat(environment).containsEntry("JDK_JAVA_OPTIONS", "-Xmx1g " + String.join(" ", flags));
  }

  @Test
  void of_programOfOurs_refusesSerializedObjects() {
    var program = new Program.MainClass(VerifyProgram.class.getName(), List.of(), List.of());
    assertThat(RankCommand.of(program, new HashMap<>())).contains("-Djdk.serialFilter=!*");
  }
}
