package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// A process whose memory runs out in a collective is named by all others, and nothing is left.
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@EnabledOnOs(OS.LINUX)
class OutOfMemoryTest {
  private static final int RANKS = 3;
  private static final int VICTIM = RANKS - 1;

  private final List<Launches> ranks = new ArrayList<>();

  @ParameterizedTest
  @CsvSource({
    "shm, OPERATOR, org.comm4j.api.AbortedException",
    "shm, LIBRARY, java.lang.OutOfMemoryError",
    "aeron, OPERATOR, org.comm4j.api.AbortedException"
  })
  void allReduce_outOfMemoryOnOneRank_isNamedByTheOthers(
      String backend, GreedyRank.Where where, String thrown) throws Exception {
    try (SessionServer server = server()) {
      for (int rank = 0; rank < RANKS; rank++) {
        ranks.add(start(backend, where, rank, server.port()));
      }
      for (Launches survivor : ranks.subList(0, VICTIM)) {
        survivor.line(_ -> true); // it is out of its barrier, which would fail else
      }
      ranks.get(VICTIM).endInput();
      for (Launches survivor : ranks.subList(0, VICTIM)) {
        assertThat(linesOf(survivor))
            .hasSize(3)
            .last()
            .asString()
            .startsWith("failure: Optional[org.comm4j.api.AbortedException: rank 2 ")
            .contains("OutOfMemoryError");
      }
      List<String> lines = linesOf(ranks.get(VICTIM));
      assertThat(lines.get(1)).startsWith("thrown: " + thrown);
      assertThat(lines.get(lines.size() - 2)).startsWith("thrown: java.lang.OutOfMemoryError: ");
      assertThat(lines.getLast())
          .startsWith("failure: Optional[org.comm4j.api.AbortedException: rank 2 ")
          .contains("OutOfMemoryError");
    } finally {
      ranks.forEach(Launches::close);
    }
  }

  /// What a rank prints; it ends in order, and its files are gone.
  private static List<String> linesOf(Launches rank) throws InterruptedException {
    Commands.Done done = rank.await();
    assertThat(done.code()).as(done.out() + done.err()).isZero();
    List<String> lines = done.out().lines().toList();
    assertThat(Path.of(lines.getFirst())).doesNotExist();
    return lines;
  }

  private static SessionServer server() {
    return SessionServer.start(
        InetAddress.getLoopbackAddress(),
        0,
        "job",
        RANKS,
        Authenticator.NONE,
        new SessionServer.Listener() {});
  }

  private static Launches start(String backend, GreedyRank.Where where, int rank, int port)
      throws IOException {
    boolean isVictim = rank == VICTIM;
    String memory = " -Xmx96m -XX:MaxDirectMemorySize=" + (isVictim ? "8m" : "64m");
    Map<String, String> environment =
        Map.of(
            "JDK_JAVA_OPTIONS",
            Launches.JVM_OPTIONS + memory,
            "COMM_BACKEND",
            backend,
            "COMM_RANK",
            Integer.toString(rank),
            "COMM_WORLD_SIZE",
            Integer.toString(RANKS),
            "COMM_MASTER_ADDR",
            "127.0.0.1",
            "COMM_MASTER_PORT",
            Integer.toString(port),
            "COMM_SESSION",
            "job",
            DefaultSessionFactory.HOSTED,
            "launcher");
    return Launches.startRank(
        List.of(), environment, GreedyRank.class, where.name(), Boolean.toString(isVictim));
  }
}
