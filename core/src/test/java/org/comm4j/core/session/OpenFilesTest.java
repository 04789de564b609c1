package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileSystemException;
import org.junit.jupiter.api.Test;

class OpenFilesTest {
  @Test
  void remedy_tooManyOpenFilesSomewhereBelow_isNamedOnce() {
    var system = new FileSystemException("/dev/shm/rank-0", null, "Too many open files");
    assertThat(OpenFiles.remedy(system)).startsWith("; ").contains("ulimit -n 4096");
    var above = new IllegalStateException(new ExceptionInInitializerError(system));
    assertThat(OpenFiles.remedy(above)).contains("ulimit -n 4096");
    var told = new IOException("no folder" + OpenFiles.remedy(system), system);
    assertThat(OpenFiles.remedy(told)).isEmpty();
    assertThat(OpenFiles.remedy(new IOException("Mount point not found"))).contains("ulimit -n");
  }

  @Test
  void remedy_anotherReason_isEmpty() {
    assertThat(OpenFiles.remedy(new IOException("No space left on device"))).isEmpty();
    assertThat(OpenFiles.remedy(new IOException())).isEmpty();
  }
}
