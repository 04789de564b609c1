package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
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

  private final List<Process> processes = new ArrayList<>();

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
        processes.add(start(backend, where, rank, server.port()));
      }
      for (Process survivor : processes.subList(0, VICTIM)) {
        assertThat(linesOf(survivor))
            .hasSize(3)
            .last()
            .asString()
            .startsWith("failure: Optional[org.comm4j.api.AbortedException: rank 2 ")
            .contains("OutOfMemoryError");
      }
      List<String> lines = linesOf(processes.get(VICTIM));
      assertThat(lines.get(1)).startsWith("thrown: " + thrown);
      assertThat(lines.get(lines.size() - 2)).startsWith("thrown: java.lang.OutOfMemoryError: ");
      assertThat(lines.getLast())
          .startsWith("failure: Optional[org.comm4j.api.AbortedException: rank 2 ")
          .contains("OutOfMemoryError");
    } finally {
      processes.forEach(Process::destroyForcibly);
    }
  }

  /// What a rank prints; it ends in order, and its files are gone.
  private static List<String> linesOf(Process rank) throws Exception {
    try (BufferedReader out = rank.inputReader()) {
      List<String> lines = out.lines().toList();
      assertThat(rank.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(rank.exitValue()).as("%s", lines).isZero();
      assertThat(Path.of(lines.getFirst())).doesNotExist();
      return lines;
    }
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

  private static Process start(String backend, GreedyRank.Where where, int rank, int port)
      throws IOException {
    boolean isVictim = rank == VICTIM;
    List<String> command = Launches.java(GreedyRank.class);
    command.addAll(1, List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(1, List.of("-Xmx96m", "-XX:MaxDirectMemorySize=" + (isVictim ? "8m" : "64m")));
    command.addAll(List.of(where.name(), Boolean.toString(isVictim)));
    var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> name.startsWith("COMM_"));
    environment.put("COMM_BACKEND", backend);
    environment.put("COMM_RANK", Integer.toString(rank));
    environment.put("COMM_WORLD_SIZE", Integer.toString(RANKS));
    environment.put("COMM_MASTER_ADDR", "127.0.0.1");
    environment.put("COMM_MASTER_PORT", Integer.toString(port));
    environment.put("COMM_SESSION", "job");
    environment.put(DefaultSessionFactory.HOSTED, "launcher");
    return builder.start();
  }
}
