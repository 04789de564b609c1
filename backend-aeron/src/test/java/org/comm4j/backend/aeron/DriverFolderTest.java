package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// When a driver's folder comes and goes; how folders are kept and swept, `OwnFolderTest` of core
/// checks.
class DriverFolderTest {
  @TempDir Path root;

  @Test
  void close_removesWhatTheDriverHasWritten() throws Exception {
    Path driver;
    try (DriverFolder folder = DriverFolder.create(root)) {
      driver = folder.driver();
      assertThat(driver).doesNotExist();
      Files.createDirectories(driver.resolve("publications"));
      Files.writeString(driver.resolve("publications/1.logbuffer"), "log");
    }
    assertThat(root).isEmptyDirectory();
  }

  @Test
  void create_whatAKilledProcessLeft_isRemoved() throws Exception {
    Path left = left("comm4j-aeron-123");
    Path others = Files.createDirectory(root.resolve("of-somebody-else"));
    try (DriverFolder folder = DriverFolder.create(root);
        DriverFolder _ = DriverFolder.create(root)) {
      assertThat(left).doesNotExist();
      assertThat(others).exists();
      assertThat(folder.driver().getParent()).exists();
    }
  }

  @Test
  void close_whatAKilledPeerLeft_isRemoved() throws Exception {
    Path left;
    try (DriverFolder _ = DriverFolder.create(root)) {
      left = left("comm4j-aeron-789");
    }
    assertThat(left).doesNotExist();
  }

  /// As a process leaves it that is killed.
  private Path left(String name) throws Exception {
    Path folder =
        Files.createDirectory(
            root.resolve(name),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Files.createFile(folder.resolve("lock"));
    return folder;
  }
}
