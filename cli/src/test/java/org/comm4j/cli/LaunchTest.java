package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What a launch says of its backend before it starts ranks.
@EnabledOnOs(OS.LINUX)
class LaunchTest {
  private static final Program OURS = new Program.MainClass("Program", List.of(), List.of());

  static Stream<Program> programsWithAClassPathOfTheirOwn() {
    return Stream.of(
        new Program.Command(List.of("java", "-cp", "lib/*", "Program")),
        new Program.Jar(Path.of("program.jar"), List.of()));
  }

  @ParameterizedTest
  @MethodSource("programsWithAClassPathOfTheirOwn")
  void selection_otherClassPath_isOnlyWhatWasAskedFor(Program program) {
    assertThat(selection(Map.of(), program)).isEmpty();
    assertThat(selection(Map.of("COMM_BACKEND", "shm"), program))
        .hasValueSatisfying(chosen -> {
          assertThat(chosen.backend()).isEqualTo("shm");
          assertThat(chosen.why()).isEqualTo("'shm' was asked for by name");
        });
  }

  @Test
  void selection_ourClassPath_isThatOfTheRanks() {
    assertThat(selection(Map.of(), OURS))
        .hasValueSatisfying(chosen ->
            assertThat(chosen.why())
                .contains("has the highest priority", "a launch of 2 processes"));
  }

  /// A backend may say who has started the ranks.
  @Test
  void configOfFirstRank_isOfOurLaunch() {
    CommConfig config = launch(Map.of(), OURS).configOfFirstRank();
    assertThat(config.launcher()).isEqualTo("comm4j");
    assertThat(config.rank()).hasValue(0);
    assertThat(config.worldSize()).hasValue(2);
  }

  /// They are the user's, but in a rank of mpirun's, which has its own.
  @Test
  void withoutLaunch_settingsOfOpenMpi_stayWhereItHasStartedNothing() {
    Map<String, String> settings =
        Map.of("OMPI_MCA_btl", "self", "PMIX_MCA_gds", "hash", "PRTE_MCA_plm", "ssh");
    Map<String, String> environment = new HashMap<>(settings);
    environment.putAll(Map.of("PMIX_RANK", "0", "PMI_SIZE", "2"));
    assertThat(Environment.withoutLaunch(environment)).isEqualTo(settings);
    environment.put("OMPI_COMM_WORLD_RANK", "0");
    assertThat(Environment.withoutLaunch(environment)).containsOnlyKeys("PRTE_MCA_plm");
  }

  private static Launch launch(Map<String, String> settings, Program program) {
    return Launch.of(2, settings, Binding.NONE, program);
  }

  private static Optional<Backends.Selection> selection(
      Map<String, String> settings, Program program) {
    Launch launch = launch(settings, program);
    return launch.selection(launch.config(), true);
  }
}
