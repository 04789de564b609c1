package org.comm4j.benchmarks.walls;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.ServiceLoader;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.comm4j.api.spi.BackendProvider;
import org.junit.jupiter.api.Test;

/// `docs/tuning.md` has each option of each backend, and no others.
class OptionsPageTest {
  private static final Pattern ROW = Pattern.compile("(?m)^\\| `(COMM_[A-Z_]+)` \\|");

  @Test
  void everyOptionOfABackend_hasItsRow() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "tuning.md"));
    int start = page.indexOf("## Options of single backends");
    assertThat(start).isPositive();
    Stream<String> rows =
        ROW.matcher(page.substring(start, page.indexOf("\n## ", start)))
            .results()
            .map(row -> row.group(1));
    List<BackendProvider> backends =
        ServiceLoader.load(BackendProvider.class).stream()
            .map(ServiceLoader.Provider::get)
            .toList();
    assertThat(backends)
        .extracting(BackendProvider::name)
        .contains("local", "shm", "aeron", "mpi", "cuda");
    assertThat(rows)
        .containsExactlyInAnyOrderElementsOf(
            backends.stream().flatMap(OptionsPageTest::variables).toList());
  }

  private static Stream<String> variables(BackendProvider backend) {
    String prefix = "COMM_" + backend.name().toUpperCase(Locale.ROOT) + "_";
    return backend.options().stream().map(option -> prefix + option);
  }
}
