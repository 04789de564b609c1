package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Where `/dev/shm` is too small, an exception says so, and the process goes on.
class NoSpaceTest {
  /// First the files of the driver itself, then those of what a rank sends.
  @ParameterizedTest
  @ValueSource(strings = {"64k", "10m", "30m"})
  void noSpace_remedyIsNamedAndNothingIsLeft(String space) throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"))
            .startsWith("0:"),
        "needs the right to mount a small /dev/shm");
    var command = new ArrayList<>(List.of("unshare", "-m", "sh", "-c"));
    command.add("mount -t tmpfs -o size=%s tmpfs /dev/shm && exec \"$@\"".formatted(space));
    command.add("sh");
    command.addAll(ChildJvm.command(List.of(ChildJvm.OPENED), SumsWithoutSpace.class));
    assertThat(ChildJvm.run(command))
        .startsWith("0:")
        .contains("TransportFailedException", "/dev/shm", "--shm-size", "left: []");
  }

  /// A process that sums up where there is little space.
  static final class SumsWithoutSpace {
    private SumsWithoutSpace() {}

    public static void main(String[] args) throws Exception {
      try (LocalGroup group = new AeronGroups(CommConfig.builder().build()).communicators(2)) {
        System.out.println(DriverFaultTest.sums(group));
      } catch (IllegalStateException e) {
        System.out.println(e.getCause());
      }
      try (Stream<Path> left = Files.list(Path.of("/dev/shm"))) {
        System.out.println("left: " + left.toList());
      }
    }
  }
}
