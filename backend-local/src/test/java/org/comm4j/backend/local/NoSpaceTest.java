package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.tck.ChildJvm;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Where `/dev/shm` is too small for `shm`, an exception says so and what to do, whatever it is
/// that needs the memory; no rank waits for ever, and nothing is left.
class NoSpaceTest {
  private static final int LARGE_BYTES = 32 << 20;
  private static final Path FILLER = Path.of("/dev/shm/filler");

  /// What two ranks do where there is too little space for it.
  enum Attempt {
    OPEN("64k"),
    ALLOCATE("16m"),
    SEND("16m"),
    LATE("16m"),
    ON_A_DUPLICATE("16m");

    private final String space;

    Attempt(String space) {
      this.space = space;
    }

    /// What one rank does, before anything else.
    void by(Communicator comm) {
      switch (this) {
        case OPEN -> throw new AssertionError("opened");
        case ALLOCATE -> allocate(comm);
        case SEND -> send(comm);
        case LATE -> {
          meetLate(comm);
          send(comm);
        }
        case ON_A_DUPLICATE -> {
          try (Communicator copy = comm.duplicate()) {
            copy.allReduce(new float[LARGE_BYTES / 4], ReduceOp.SUM);
          }
        }
      }
    }

    private static void send(Communicator comm) {
      if (comm.rank() == 0) {
        comm.send(CommData.of(new byte[LARGE_BYTES]), 1, 0);
      } else {
        comm.receive(CommData.of(new byte[LARGE_BYTES]), 0, 0);
      }
    }

    /// So late that rank 0 asks for it, for which there is no memory.
    private static void meetLate(Communicator comm) {
      if (comm.rank() == 1) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
      }
      try {
        comm.barrier();
      } catch (CommException e) {
        throw new AssertionError("a barrier needs no more memory", e);
      }
    }

    /// The communicator stays usable.
    private static void allocate(Communicator comm) {
      try (CommBuffer buffer = comm.allocate(DataType.INT8, LARGE_BYTES)) {
        throw new AssertionError(buffer.toString());
      } catch (CommException e) {
        long sum = comm.allReduce(1L, ReduceOp.SUM);
        if (sum != 2) {
          throw new AssertionError("the sum is " + sum, e);
        }
        throw e;
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void noSpace_folderAndRemedyAreNamedAndNothingIsLeft(Attempt attempt) throws Exception {
    assertThat(run(attempt.space, Ranks.class, attempt.name()))
        .startsWith("0:")
        .contains("TransportFailedException", "/dev/shm", "--shm-size", "left: []", "mapped: 0")
        .doesNotContain("nothing thrown", "AssertionError");
  }

  /// What the first communicator needs, there is for some of the ranks alone.
  @Test
  void open_noSpaceForSomeRanks_allSaySo() throws Exception {
    assertThat(run("8m", Openings.class).lines().filter(line -> line.contains("rank ")))
        .hasSize(Openings.RANKS)
        .allSatisfy(line ->
            assertThat(line)
                .contains("TransportFailedException", "reserving", "of 8388608 bytes are free"));
  }

  /// However much space there is.
  @Test
  void open_filesMayNotBeSoLarge_saysWhatLimitsThem() throws Exception {
    List<String> command =
        new ArrayList<>(
            List.of("timeout", "60", "bash", "-c", "ulimit -f 200000 && exec \"$@\"", "-"));
    command.addAll(ShmProcessTest.JVM.command(List.of(), Openings.class));
    assertThat(ChildJvm.run(command).lines().filter(line -> line.contains("rank ")))
        .hasSize(Openings.RANKS)
        .allSatisfy(
            line -> assertThat(line).contains("COMM_SHM_WINDOW (1073741824 bytes)", "ulimit -f"));
  }

  /// Which is less than they need, whatever one of them does.
  @Test
  void availability_spaceForFewerRanks_saysHowMuchAllNeed() throws Exception {
    assertThat(run("8m", Availabilities.class))
        .containsPattern(
            "4 ranks: Unavailable.*/dev/shm has 8388608 bytes free \\(expected: at least 9\\d{6}")
        .contains("3 ranks: Ready", "4 ranks with small windows: Ready");
  }

  private static String run(String space, Class<?> program, String... arguments) throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"))
            .startsWith("0:"),
        "needs the right to mount a small /dev/shm");
    List<String> command = new ArrayList<>(List.of("timeout", "60", "unshare", "-m", "sh", "-c"));
    command.add("mount -t tmpfs -o size=%s tmpfs /dev/shm && exec \"$@\"".formatted(space));
    command.add("sh");
    command.addAll(ShmProcessTest.JVM.command(List.of(), program, arguments));
    return ChildJvm.run(command);
  }

  private static void fill(Path file) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      while (true) {
        channel.write(ByteBuffer.allocate(4096));
      }
    } catch (IOException e) {
      if (!String.valueOf(e.getMessage()).contains("No space left")) {
        throw e;
      }
    }
  }

  /// A process with some ranks, which says how each has opened.
  static final class Openings {
    static final int RANKS = 4;

    private Openings() {}

    public static void main(String[] args) throws Exception {
      CommConfig config = CommConfig.builder().build();
      try (var sessions = InMemorySessions.group(RANKS);
          var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
        List<Future<BackendCommunicator>> openings = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
          Session session = sessions.session(rank);
          openings.add(threads.submit(() -> new ShmProvider().open(session, config)));
        }
        for (int rank = 0; rank < RANKS; rank++) {
          try {
            openings.get(rank).get().close();
            System.out.println("rank " + rank + ": opened");
          } catch (ExecutionException e) {
            System.out.println("rank " + rank + ": " + e.getCause());
          }
        }
      }
    }
  }

  /// A process that says for how many ranks there is space.
  static final class Availabilities {
    private Availabilities() {}

    public static void main(String[] args) {
      System.out.println("3 ranks: " + of(CommConfig.builder(), 3));
      System.out.println("4 ranks: " + of(CommConfig.builder(), 4));
      var small = CommConfig.builder().option("COMM_SHM_WINDOW", "16MiB");
      System.out.println("4 ranks with small windows: " + of(small, 4));
    }

    private static Availability of(CommConfig.Builder config, int ranks) {
      return new ShmProvider()
          .availability(config.rank(0).worldSize(ranks).localRank(0).localWorldSize(ranks).build());
    }
  }

  /// A process with two ranks, which says what each has thrown and what is left.
  static final class Ranks {
    private Ranks() {}

    public static void main(String[] args) throws Exception {
      Attempt attempt = Attempt.valueOf(args[0]);
      try (LocalGroup group =
              ThreadGroups.open(new ShmProvider(), 2, CommConfig.builder().build());
          var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
        if (attempt != Attempt.ALLOCATE) {
          fill(FILLER); // what is needed at once is there already
        }
        List<Callable<Void>> ranks = new ArrayList<>();
        for (Communicator comm : group.communicators()) {
          ranks.add(() -> {
            attempt.by(comm);
            return null;
          });
        }
        for (Future<Void> rank : threads.invokeAll(ranks)) {
          System.out.println(
              rank.state() == Future.State.FAILED ? rank.exceptionNow() : "nothing thrown");
        }
      } catch (CommException e) {
        System.out.println(e);
      }
      Files.deleteIfExists(FILLER);
      try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
        System.out.println("mapped: " + maps.filter(each -> each.contains("/dev/shm/")).count());
      }
      try (Stream<Path> left = Files.list(Path.of("/dev/shm"))) {
        System.out.println("left: " + left.filter(each -> !isEmptyFolder(each)).toList());
      }
    }

    /// The user's, which stays for the next session.
    private static boolean isEmptyFolder(Path folder) {
      String[] entries = folder.toFile().list();
      return entries != null && entries.length == 0;
    }
  }
}
