package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.tck.ChildJvm;
import org.comm4j.tck.Promise;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Where `/dev/shm` is too small, an exception says so in time, and the process goes on.
class NoSpaceTest {
  /// So that the spaces below are too small.
  private static final CommConfig LARGE_TERMS =
      CommConfig.fromEnvironment(Map.of("COMM_AERON_TERM", "4MiB"));

  /// First the files of the driver itself, then those of what a rank sends.
  @ParameterizedTest
  @ValueSource(strings = {"64k", "10m", "30m"})
  void noSpace_remedyIsNamedAndNothingIsLeft(String space) throws Exception {
    assertThat(runWithSpace(space, SumsWithoutSpace.class))
        .startsWith("0:")
        .contains("TransportFailedException", "/dev/shm", "--shm-size", "left: []");
  }

  /// The driver was there before, and has space for itself.
  @Test
  void noSpaceForAnExternalDriver_itsDirectoryAndTheRemedyAreNamed() throws Exception {
    assertThat(runWithSpace("56m", SumsInAFullDirectory.class))
        .startsWith("0:")
        .contains("TransportFailedException", "/dev/shm/external-driver-", "--shm-size");
  }

  private static String runWithSpace(String space, Class<?> main) throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"))
            .startsWith("0:"),
        "needs the right to mount a small /dev/shm");
    var command = new ArrayList<>(List.of("unshare", "-m", "sh", "-c"));
    command.add("mount -t tmpfs -o size=%s tmpfs /dev/shm && exec \"$@\"".formatted(space));
    command.add("sh");
    command.addAll(AeronGroups.JVM.command(List.of(AeronGroups.OPENED), main));
    return ChildJvm.run(command);
  }

  /// In the process itself, whose start is not concerned; a failure is its exit code.
  private static void keepPromise(long startNanos) {
    Promise.NO_SPACE.keep("no space", "to say so", startNanos);
  }

  /// A process that sums up where there is little space.
  static final class SumsWithoutSpace {
    private SumsWithoutSpace() {}

    public static void main(String[] args) throws Exception {
      long start = System.nanoTime();
      try (LocalGroup group = new AeronGroups(LARGE_TERMS).communicators(2)) {
        start = System.nanoTime();
        System.out.println(DriverFaultTest.sums(group));
        keepPromise(start);
      } catch (TransportFailedException e) {
        System.out.println(e);
        keepPromise(start);
      }
      try (Stream<Path> left = Files.list(Path.of("/dev/shm"))) {
        System.out.println("left: " + left.toList());
      }
    }
  }

  /// A process with a media driver that has little space, and ranks that use it.
  static final class SumsInAFullDirectory {
    private SumsInAFullDirectory() {}

    public static void main(String[] args) throws Exception {
      try (ExternalDriver driver = ExternalDriver.start();
          LocalGroup group = new AeronGroups(driver.config(LARGE_TERMS)).communicators(2)) {
        long start = System.nanoTime();
        System.out.println(DriverFaultTest.sums(group));
        keepPromise(start);
      }
    }
  }
}
