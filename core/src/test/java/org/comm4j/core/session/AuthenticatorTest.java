package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.net.InetAddress;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

  /// Documentation's own address, which nobody has.
  @ParameterizedTest
  @CsvSource({"true, true", "1, true", "True, true", "false, false", "0, false"})
  void of_insecure_permitsOtherHosts(String value, boolean isPermitted) throws IOException {
    CommConfig config = CommConfig.builder().option(Authenticator.INSECURE, value).build();
    InetAddress address = InetAddress.ofLiteral("192.0.2.1");
    assertThat(Authenticator.of(config).permits(address)).isEqualTo(isPermitted);
  }

  @Test
  void of_insecureIsNoFlag_isAJoinException() {
    CommConfig config = CommConfig.builder().option(Authenticator.INSECURE, "yes").build();
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> Authenticator.of(config))
        .withMessage("COMM_SESSION_INSECURE: 'yes' (expected: 1 or true, 0 or false)")
        .extracting(JoinException::reason)
        .isEqualTo(JoinException.Reason.CONFIGURATION);
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
