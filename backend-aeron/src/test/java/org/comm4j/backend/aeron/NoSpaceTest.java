package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.LossGenerator;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Availability;
import org.comm4j.tck.ChildJvm;
import org.comm4j.tck.Promise;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Where `/dev/shm` is too small, an exception says so in time, and the process goes on.
class NoSpaceTest {
  @TempDir Path temporary;

  /// So that the spaces below are too small.
  private static final CommConfig LARGE_TERMS =
      CommConfig.fromEnvironment(Map.of("COMM_AERON_TERM", "4MiB"));

  /// First the files of the driver itself, then those of what a rank sends.
  @ParameterizedTest
  @ValueSource(strings = {"64k", "10m", "30m"})
  void noSpace_remedyIsNamedAndNothingIsLeft(String space) throws Exception {
    assertThat(runWithSpace(space, "/dev/shm", SumsWithoutSpace.class))
        .startsWith("0:")
        .contains("TransportFailedException", "/dev/shm", "--shm-size", "left: []");
  }

  /// Where there is more for temporary files.
  @ParameterizedTest
  @ValueSource(strings = {"1m", "10m"})
  void noSpaceForDrivers_temporaryFilesHaveIt_areThere(String space) throws Exception {
    assertThat(runWithSpace(space, Sums.class)).isEqualTo("0: [2, 2]%nleft: []%n".formatted());
    assertThat(temporary).isEmptyDirectory();
  }

  /// Without any, the JVM would fail in the middle of a start.
  @Test
  void availability_noSpaceForDrivers_saysHowMuchTheyNeed() throws Exception {
    assertThat(runWithSpace("10m", "/dev/shm", Availabilities.class))
        .containsPattern("1 rank.*Ready")
        .containsPattern(
            "2 ranks.*Unavailable.*/dev/shm has 10485760 bytes free \\(expected: at least 14942208")
        .containsPattern("2 ranks, shared.*Ready");
    assertThat(runWithSpace("10m", Availabilities.class)).doesNotContain("Unavailable");
  }

  /// The driver was there before, and has space for itself.
  @Test
  void noSpaceForAnExternalDriver_itsDirectoryAndTheRemedyAreNamed() throws Exception {
    assertThat(runWithSpace("56m", SumsInAFullDirectory.class))
        .startsWith("0:")
        .contains("TransportFailedException", "/dev/shm/external-driver-", "--shm-size");
  }

  /// Others have taken what is left, and then a driver has something to note.
  @ParameterizedTest
  @EnumSource
  void spaceIsFullLater_ranksGoOn(Trouble trouble) throws Exception {
    assertThat(runWithSpace("100m", SumsWhereSpaceIsFullLater.class, trouble.name()))
        .isEqualTo("0: [2, 2]%n[2, 2] after 0%n".formatted());
  }

  /// Of the network, and of what is on it.
  enum Trouble {
    LOST_DATAGRAMS,
    AN_ERROR
  }

  private String runWithSpace(String space, Class<?> main, String... arguments) throws Exception {
    return runWithSpace(space, temporary.toString(), main, arguments);
  }

  /// @param temporary where the process has its temporary files
  private static String runWithSpace(
      String space, String temporary, Class<?> main, String... arguments) throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"))
            .startsWith("0:"),
        "needs the right to mount a small /dev/shm");
    var command = new ArrayList<>(List.of("unshare", "-m", "sh", "-c"));
    command.add("mount -t tmpfs -o size=%s tmpfs /dev/shm && exec \"$@\"".formatted(space));
    command.add("sh");
    command.addAll(
        AeronGroups.JVM.command(
            List.of(AeronGroups.OPENED, "-Djava.io.tmpdir=" + temporary), main, arguments));
    return ChildJvm.run(command);
  }

  /// In the process itself, whose start is not concerned; a failure is its exit code.
  private static void keepPromise(long startNanos) {
    Promise.NO_SPACE.keep("no space", "to say so", startNanos);
  }

  /// A process that says for how many ranks there is space.
  static final class Availabilities {
    private Availabilities() {}

    public static void main(String[] args) {
      System.out.println("1 rank: " + of(CommConfig.builder(), 1));
      System.out.println("2 ranks: " + of(CommConfig.builder(), 2));
      var shared = CommConfig.builder().option("COMM_AERON_DRIVER", "shared");
      System.out.println("2 ranks, shared: " + of(shared, 2));
    }

    private static Availability of(CommConfig.Builder config, int ranks) {
      return new AeronProvider()
          .availability(config.rank(0).worldSize(ranks).localRank(0).localWorldSize(ranks).build());
    }
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

  /// A process that sums up.
  static final class Sums {
    private Sums() {}

    public static void main(String[] args) throws Exception {
      try (LocalGroup group = new AeronGroups(LARGE_TERMS).communicators(2)) {
        System.out.println(DriverFaultTest.sums(group));
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

  /// A process that sums up where the space has become full.
  static final class SumsWhereSpaceIsFullLater {
    private SumsWhereSpaceIsFullLater() {}

    public static void main(String[] args) throws Exception {
      Trouble trouble = Trouble.valueOf(args[0]);
      var left = new AtomicInteger();
      LossGenerator troubled =
          (_, _, _) -> {
            boolean isHit = left.get() > 0 && left.getAndDecrement() > 0;
            if (isHit && trouble == Trouble.AN_ERROR) {
              throw new IllegalStateException("a test's".repeat(1000)); // more than a page
            }
            return isHit;
          };
      UnaryOperator<MediaDriver.Context> changes =
          context ->
              context.receiveChannelEndpointSupplier((channel, dispatcher, status, with) ->
                  new DebugReceiveChannelEndpoint(
                      channel, dispatcher, status, with, troubled, (_, _, _) -> false));
      try (LocalGroup group =
          new AeronGroups(LARGE_TERMS, rank -> rank == 1 ? changes : UnaryOperator.identity())
              .communicators(2)) {
        System.out.println(DriverFaultTest.sums(group));
        fill(Path.of("/dev/shm/of-others"));
        left.set(3);
        List<String> sums = DriverFaultTest.sums(group);
        for (int i = 0; i < 100 && left.get() > 0; i++) {
          sums = DriverFaultTest.sums(group);
        }
        System.out.println(sums + " after " + left.get());
      }
    }

    private static void fill(Path path) throws IOException {
      try (OutputStream file = Files.newOutputStream(path)) {
        while (true) {
          file.write(new byte[4096]);
        }
      } catch (IOException full) {
        if (Files.getFileStore(path).getUsableSpace() > 0) {
          throw full;
        }
      }
    }
  }
}
