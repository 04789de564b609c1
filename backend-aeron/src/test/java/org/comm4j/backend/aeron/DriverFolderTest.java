package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DriverFolderTest {
  @TempDir Path root;

  @Test
  void create_isForThisUserAlone_andCloseRemovesIt() throws Exception {
    Path path;
    try (DriverFolder folder = DriverFolder.create(root)) {
      path = folder.driver().getParent();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rwx------");
      Files.createDirectories(folder.driver().resolve("publications"));
      Files.writeString(folder.driver().resolve("publications/1.logbuffer"), "log");
    }
    assertThat(path).doesNotExist();
  }

  @Test
  void create_whatAKilledProcessLeft_isRemoved() throws Exception {
    Path left = Files.createDirectories(root.resolve("comm4j-aeron-123/driver"));
    Files.writeString(left.resolve("cnc.dat"), "left");
    Files.createFile(root.resolve("comm4j-aeron-123/lock")); // nobody holds it
    Path others = Files.createDirectory(root.resolve("of-somebody-else"));
    try (DriverFolder _ = DriverFolder.create(root)) {
      assertThat(root.resolve("comm4j-aeron-123")).doesNotExist();
      assertThat(others).exists();
    }
  }

  @Test
  void close_whatAKilledPeerLeft_isRemoved() throws Exception {
    Path left = root.resolve("comm4j-aeron-789");
    try (DriverFolder _ = DriverFolder.create(root)) {
      Files.createDirectory(left);
      Files.createFile(left.resolve("lock"));
    }
    assertThat(left).doesNotExist();
  }

  @Test
  void create_whatIsInUseOrBeginning_stays() throws Exception {
    Path beginning = Files.createDirectory(root.resolve("comm4j-aeron-456"));
    try (DriverFolder first = DriverFolder.create(root);
        DriverFolder _ = DriverFolder.create(root)) {
      assertThat(first.driver().getParent()).exists();
      assertThat(beginning).exists();
    }
  }
}
