package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.Secret;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AuthenticatorTest {
  private static byte[] keyFor(String secret, String purpose) {
    CommConfig config = CommConfig.builder().secret(Secret.of(secret)).build();
    return Authenticator.of(config)
        .keyFor(purpose.getBytes(StandardCharsets.US_ASCII))
        .orElseThrow()
        .getEncoded();
  }

  @Test
  void keyFor_secretAndPurpose_followsFromBoth() {
    byte[] key = keyFor("a secret of the launch", "one");
    assertThat(key).hasSize(32);
    assertThat(keyFor("a secret of the launch", "one")).isEqualTo(key);
    assertThat(keyFor("a secret of the launch", "two")).isNotEqualTo(key);
    assertThat(keyFor("a secret of another one", "one")).isNotEqualTo(key);
  }

  @Test
  void keyFor_noSecret_isNone() {
    assertThat(Authenticator.NONE.keyFor(new byte[] {1})).isEmpty();
  }

  @Test
  void of_fileThatIsNotThere_saysHowToMakeOne() {
    CommConfig config = CommConfig.builder().secretFile(Path.of("/nowhere")).build();
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> Authenticator.of(config))
        .withMessageContainingAll("COMM_SECRET_FILE: /nowhere", "expected: a secret", "umask 77");
  }

  @Test
  void of_fileWithoutOwner_saysWhatToDo(@TempDir Path folder) throws IOException {
    Path archive = folder.resolve("secrets.zip");
    try (var files = FileSystems.newFileSystem(archive, Map.of("create", "true"))) {
      Path file = Files.writeString(files.getPath("secret"), "0123456789abcdef");
      CommConfig config = CommConfig.builder().secretFile(file).build();
      assertThatExceptionOfType(JoinException.class)
          .isThrownBy(() -> Authenticator.of(config))
          .withMessageContainingAll("COMM_SECRET_FILE", "no owner", "COMM_SECRET in its place");
    }
  }

  /// As on macOS.
  @Test
  void uid_noFilesOfProcesses_isThatOfAFileThatIsMade(@TempDir Path folder) throws IOException {
    assertThat(LocalHost.uid(folder.resolve("self"))).isEqualTo(LocalHost.uid());
  }

  @Test
  void of_fileOfAnotherUser_saysWhoseItIsAndNothingOfItsMode(@TempDir Path folder)
      throws IOException {
    assumeThat(LocalHost.uid()).as("only root can give a file away").isZero();
    Path file = Files.writeString(folder.resolve("secret"), "0123456789abcdef");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    Files.setAttribute(file, "unix:uid", 65_534);
    CommConfig config = CommConfig.builder().secretFile(file).build();
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> Authenticator.of(config))
        .withMessageContainingAll("belongs to user 65534", "chown 0 " + file)
        .withMessageNotContaining("chmod");
  }
}
