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
          "(?s)On all ranks must be equal:(.*?), and the.*? whose name ends in\\s(.*?)\\. Else");

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
    assertThat(names(sentence.group(2))).isEqualTo(Settings.OF_ONE_HOST);
  }

  private static Set<String> names(String text) {
    return new HashSet<>(NAME.matcher(text).results().map(name -> name.group(1)).toList());
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
