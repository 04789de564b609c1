package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.comm4j.api.CommConfig.Setting;
import org.junit.jupiter.api.Test;

final class TuningPageTest {
  @Test
  void everySetting_hasItsRow() throws IOException {
    List<String> page = Files.readAllLines(Path.of("../docs/tuning.md"));

    assertThat(page).containsSequence(CommConfig.settings().stream().map(this::row).toList());
  }

  private String row(Setting setting) {
    return "| `%s` | %s | %s | %s | %s |"
        .formatted(
            setting.variable(),
            setting.defaultValue(),
            setting.doc(),
            setting.reason(),
            setting.range());
  }
}
