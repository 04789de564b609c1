package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class SessionFilesTest {
  @TempDir Path root;
  private Path directory;

  @BeforeEach
  void makeDirectory() throws IOException {
    directory = root.resolve("sessions");
    var _ = LogFile.requireDirectory(directory);
  }

  private CommConfig config() {
    return CommConfig.builder()
        .option(DefaultSessionFactory.DIRECTORY, directory.toString())
        .build();
  }

  private Path file(String name, Duration age) throws IOException {
    Path file =
        Files.createFile(
            directory.resolve(name),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.setLastModifiedTime(file, FileTime.from(Instant.now().minus(age)));
    return file;
  }

  @Test
  void sweep_filesOfKilledRanks_goAndAGivenDirectoryStays() throws IOException {
    Path left = file("left.session", Duration.ofHours(1));
    assertThat(SessionFiles.abandoned(directory)).containsExactly(left);
    SessionFiles.sweep(config());
    assertThat(directory).isEmptyDirectory();
    Files.delete(directory);
    SessionFiles.sweep(config());
    assertThat(SessionFiles.abandoned(directory)).isEmpty();
  }

  @Test
  void sweep_filesOfOthersWithOurEnding_stay() throws IOException {
    Path notes = file("notes.session", Duration.ZERO);
    Files.writeString(notes, "what the session of Tuesday was about");
    Files.setLastModifiedTime(notes, FileTime.from(Instant.now().minus(Duration.ofHours(1))));
    SessionFiles.sweep(config());
    assertThat(notes).exists();
  }

  @Test
  void sweep_whatIsInUseOrBeginning_stays() throws IOException {
    Path left = file("left.session", Duration.ofHours(1));
    Path used = file("used.session", Duration.ofHours(1));
    Path beginning = file("beginning.session", Duration.ZERO);
    Path other = file("other", Duration.ofHours(1));
    LogFile open = Objects.requireNonNull(LogFile.open(used));
    try {
      assertThat(SessionFiles.abandoned(directory)).containsExactly(left);
      SessionFiles.sweep(config());
      assertThat(directory.toFile().list())
          .containsExactlyInAnyOrder("used.session", "beginning.session", "other");
    } finally {
      open.close();
    }
    assertThat(beginning).exists();
    assertThat(other).exists();
  }

  /// In a directory that others may enter nothing can be trusted.
  @Test
  void sweep_directoryOpenToOthers_isLeftAlone() throws IOException {
    Path left = file("left.session", Duration.ofHours(1));
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThat(SessionFiles.abandoned(directory)).isEmpty();
    SessionFiles.sweep(config());
    assertThat(left).exists();
  }
}
