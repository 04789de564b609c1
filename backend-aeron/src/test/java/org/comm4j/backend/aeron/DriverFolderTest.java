package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import org.comm4j.api.CommConfig;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.session.OwnFolder;
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

  /// Whoever may write there changes what ranks read, and who takes part in a session without a
  /// secret says where it is.
  @Test
  void open_othersMayEnterWhereTheSharedDriverIs_isRefused() throws Exception {
    assertIsRefused(OwnFolder.root(), "comm4j-aeron-of-a-test-", "rwxr-x---");
  }

  @Test
  void open_sharedDriverIsInAnotherFolderOfThisUser_isRefused() throws Exception {
    assertIsRefused(OwnFolder.root(), "of-a-test-", "rwx------");
  }

  /// Whoever has made the link may let it lead elsewhere once it was looked at.
  @Test
  void open_sharedDriverIsElsewhereBehindALink_isRefused() throws Exception {
    Path elsewhere = Files.createDirectory(root.resolve("elsewhere"));
    Path link = Files.createSymbolicLink(root.resolve("link"), elsewhere);
    assertIsRefused(link, "comm4j-aeron-", "rwx------");
  }

  /// @param prefix of the folder's name that the driver is said to be in
  private static void assertIsRefused(Path in, String prefix, String mode) throws Exception {
    Path folder = Files.createTempDirectory(in, prefix);
    try {
      Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString(mode));
      assertIsRefused(folder.resolve("driver"));
    } finally {
      Files.delete(folder);
    }
  }

  private static void assertIsRefused(Path driver) throws Exception {
    CommConfig config =
        CommConfig.builder()
            .joinTimeout(Duration.ofSeconds(5))
            .option("COMM_AERON_DRIVER", "shared")
            .build();
    try (var sessions = InMemorySessions.group(2);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var _ = threads.submit(() -> sayItHasStarted(sessions.session(0), driver));
      assertThatThrownBy(() -> new Rendezvous(sessions.session(1), config).open().close())
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContainingAll(
              "the media driver that rank 0 runs for this host",
              driver.toString(),
              OwnFolder.root().toString(),
              "COMM_SECRET_FILE");
    }
  }

  /// So a name that leads out of the folder is none.
  @Test
  void check_folderOfADriver_isFollowedToWhereItIs() throws Exception {
    Path real = Files.createDirectory(root.resolve("real"));
    Path link = Files.createSymbolicLink(root.resolve("link"), real);
    try (DriverFolder folder = DriverFolder.create(real)) {
      Path driver = folder.driver();
      Path said = link.resolve(real.toRealPath().relativize(driver));
      assertThat(DriverFolder.check(link, said, "it")).isEqualTo(driver);
      assertThatThrownBy(() -> DriverFolder.check(link, said.resolveSibling(".."), "it"))
          .isInstanceOf(TransportFailedException.class);
    }
  }

  private static List<byte[]> sayItHasStarted(Session leader, Path driver) {
    return MembersSession.of(leader, "aeron/driver-0", List.of(0, 1))
        .exchange(
            "directory",
            ("started in " + driver).getBytes(StandardCharsets.UTF_8),
            Duration.ofSeconds(20));
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
