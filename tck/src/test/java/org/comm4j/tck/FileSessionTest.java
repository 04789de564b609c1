package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/// Sessions over a file.
final class FileSessionTest extends SessionContract {
  @TempDir private Path directory;
  private int groups;

  @Override
  protected Group open(int size) {
    return Joining.group(configs(size));
  }

  @Override
  protected Group openWithVictim(int size, Duration liveness) {
    return Joining.groupWithProcess(configs(size).liveness(liveness));
  }

  private CommConfig.Builder configs(int size) {
    groups++;
    return Configs.file(size, directory).session("job-" + groups);
  }

  @AfterEach
  void noFileIsLeft() throws Exception {
    closeAll();
    try (Stream<Path> files = Files.list(directory)) {
      assertThat(files).isEmpty();
    }
  }
}
