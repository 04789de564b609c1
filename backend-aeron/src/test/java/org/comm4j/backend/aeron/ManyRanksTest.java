package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.session.OwnFolder;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/// Many ranks in one JVM, each with a driver of its own, take the memory that [Dimensions] says.
class ManyRanksTest {
  private static final int LOOPBACK = 65_508;
  private static final int MEBIBYTE = 1 << 20;
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofMinutes(3)).build();

  private final Queue<Path> folders = new ConcurrentLinkedQueue<>();

  @AfterAll
  static void nothingIsLeft() {
    AeronGroups.checkNothingIsLeft();
  }

  /// Each talks to few others.
  @Test
  void allReduce_of64Ranks_isRightAndTakesLessThanItMay() throws Exception {
    needs(1L << 30);
    long bytes = run(64, ManyRanksTest::allReduce);
    assertThat(bytes).isLessThan(Dimensions.of(OptionsTest.NONE, 64, LOOPBACK).bytesPerRank(64));
  }

  /// Each talks to all others.
  @Test
  void allToAll_of16Ranks_isRightAndTakesWhatItMay() throws Exception {
    needs(1L << 30);
    long bytes = run(16, ManyRanksTest::allToAll);
    long most = Dimensions.of(OptionsTest.NONE, 16, LOOPBACK).bytesPerRank(16);
    assertThat(bytes).isBetween(most - MEBIBYTE, most);
  }

  private static void needs(long bytes) throws Exception {
    long free = Files.getFileStore(OwnFolder.root()).getUsableSpace();
    assumeTrue(
        free > bytes,
        "needs %d MiB in %s, there are %d"
            .formatted(bytes / MEBIBYTE, OwnFolder.root(), free / MEBIBYTE));
  }

  /// @return how much memory the rank took that took most
  private long run(int ranks, Consumer<Communicator> call) throws Exception {
    var groups =
        new AeronGroups(
            CONFIG,
            _ ->
                context -> {
                  folders.add(Path.of(context.aeronDirectoryName()));
                  return context;
                });
    try (LocalGroup group = groups.communicators(ranks)) {
      DriverFaultTest.onEach(
          group.communicators(),
          comm -> {
            call.accept(comm);
            return comm.rank();
          });
      assertThat(folders).hasSize(ranks);
      long most = 0;
      for (Path each : folders) {
        most = Math.max(most, bytes(each));
      }
      return most;
    }
  }

  private static void allReduce(Communicator comm) {
    int[] data = new int[MEBIBYTE / Integer.BYTES];
    for (int i = 0; i < data.length; i++) {
      data[i] = i + comm.rank();
    }
    comm.allReduce(data, ReduceOp.SUM);
    for (int i = 0; i < data.length; i++) {
      int expected = comm.size() * i + comm.size() * (comm.size() - 1) / 2;
      if (data[i] != expected) {
        throw new AssertionError("element %d: %d, not %d".formatted(i, data[i], expected));
      }
    }
  }

  private static void allToAll(Communicator comm) {
    int count = MEBIBYTE / Integer.BYTES / comm.size();
    int[] sent = new int[count * comm.size()];
    for (int i = 0; i < sent.length; i++) {
      sent[i] = i * (comm.rank() + 1);
    }
    int[] received = new int[sent.length];
    comm.allToAll(CommData.of(sent), CommData.of(received));
    for (int i = 0; i < received.length; i++) {
      int expected = (comm.rank() * count + i % count) * (i / count + 1);
      if (received[i] != expected) {
        throw new AssertionError("element %d: %d, not %d".formatted(i, received[i], expected));
      }
    }
  }

  /// What a folder takes of the file system.
  private static long bytes(Path folder) throws Exception {
    Process du = new ProcessBuilder("du", "-sk", folder.toString()).start();
    String text = new String(du.getInputStream().readAllBytes(), Charset.defaultCharset());
    assertThat(du.waitFor()).isZero();
    return Long.parseLong(text.split("\\s", 2)[0]) << 10;
  }
}
