package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.Test;

/// `docs/tuning.md` says which settings must be equal on all ranks, and no others.
class SettingsTest {
  private static final Pattern SENTENCE =
      Pattern.compile(
          "(?s)On all ranks must be equal:(.*?), and the.*?of sessions(.*?) and .*? whose name ends in\\s(.*?)\\. Else");

  /// Those that `core` reads; `comm-cli run` reads COMM_SESSION_PORTS.
  private static final List<String> OF_SESSIONS =
      List.of(
          Authenticator.INSECURE, DefaultSessionFactory.DIRECTORY, DefaultSessionFactory.HOSTED);

  private static final Pattern OPTION = Pattern.compile("(?m)^\\| `(COMM_[A-Z_]+)` \\|");

  private static final Pattern NAME = Pattern.compile("`([A-Z_]+)`");

  @Test
  void settings_thatMustBeEqual_areOnThePage() throws IOException {
    var sentence = SENTENCE.matcher(Files.readString(Path.of("..", "docs", "tuning.md")));
    assertThat(sentence.find()).isTrue();
    List<String> compared =
        Settings.of(CommConfig.builder().build())
            .lines()
            .map(line -> line.substring(0, line.indexOf('=')))
            .toList();
    assertThat(names(sentence.group(1)))
        .isEqualTo(
            CommConfig.settings().stream()
                .filter(setting -> compared.contains(setting.name()))
                .map(CommConfig.Setting::variable)
                .collect(Collectors.toSet()))
        .hasSameSizeAs(compared);
    assertThat(names(sentence.group(2)))
        .isEqualTo(
            OF_SESSIONS.stream().filter(SettingsTest::isCompared).collect(Collectors.toSet()));
    assertThat(names(sentence.group(3))).isEqualTo(Settings.OF_ONE_HOST);
  }

  private static boolean isCompared(String option) {
    return !Settings.of(CommConfig.builder().option(option, "1").build())
        .equals(Settings.of(CommConfig.builder().build()));
  }

  private static Set<String> names(String text) {
    return new HashSet<>(NAME.matcher(text).results().map(name -> name.group(1)).toList());
  }

  /// The page has each option of each backend.
  @Test
  void settings_optionsOfOurBackends_mayDifferWhereTheyAreOfOneHost() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "tuning.md"));
    int start = page.indexOf("## Options of single backends");
    String options = page.substring(start, page.indexOf("\n## ", start));
    String none = Settings.of(CommConfig.builder().build());
    assertThat(OPTION.matcher(options).results().map(row -> row.group(1)))
        .filteredOn(
            name -> Settings.of(CommConfig.builder().option(name, "1").build()).equals(none))
        .containsExactlyInAnyOrder(
            "COMM_MPI_LIBRARY",
            "COMM_MPI_LAUNCHER",
            "COMM_AERON_ADDRESS",
            "COMM_AERON_PORTS",
            "COMM_AERON_DIRECTORY",
            "COMM_CUDA_DEVICE",
            "COMM_CUDA_PATH", // which the backend compares
            "COMM_CUDA_NVRTC");
  }

  @Test
  void settings_optionsOfOneHost_mayDiffer() {
    String plain = Settings.of(CommConfig.builder().build());
    CommConfig.Builder builder = CommConfig.builder();
    for (String end : Settings.OF_ONE_HOST) {
      builder.option("COMM_X_" + end, "1");
    }
    assertThat(Settings.of(builder.build())).isEqualTo(plain);
    assertThat(Settings.of(builder.option("COMM_X_CHUNK", "1").build())).isNotEqualTo(plain);
  }
}
