package org.comm4j.core.algorithm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.Test;

final class AlgorithmsPageTest {
  @Test
  void everyAlgorithm_hasItsRow() throws IOException {
    List<String> page = Files.readAllLines(Path.of("../docs/algorithms.md"));
    List<String> rows =
        Algorithms.all().stream()
            .filter(algorithm -> !algorithm.name().equals("alone"))
            .sorted(Comparator.comparing(Algorithm::kind)) // stable
            .map(AlgorithmsPageTest::row)
            .toList();

    assertThat(page).containsSequence(rows);
  }

  private static String over(Algorithm algorithm) {
    if (!algorithm.usesPeerMemory()) {
      return "messages";
    }
    return algorithm.usesMessages() ? "memory, messages" : "memory";
  }

  private static String row(Algorithm algorithm) {
    return "| %s | `%s` | %s | %s |"
        .formatted(
            algorithm.kind().label(),
            algorithm.name(),
            over(algorithm),
            switch (algorithm.order()) {
              case LEFT_FOLD -> "left fold";
              case FIXED -> "fixed";
              case NONE -> "–";
            });
  }
}
