package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// A rank whose memory runs out in a collective fails alone, and all others hear of it: here they
/// are threads of this JVM, and that one is a process.
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@EnabledOnOs(OS.LINUX)
class OutOfMemoryTest {
  private static final int RANKS = 3;
  private static final int VICTIM = RANKS - 1;

  @ParameterizedTest
  @CsvSource({
    "shm, OPERATOR, org.comm4j.api.AbortedException",
    "shm, LIBRARY, java.lang.OutOfMemoryError",
    "aeron, OPERATOR, org.comm4j.api.AbortedException"
  })
  void allReduce_outOfMemoryOnOneRank_isNamedByTheOthers(
      String backend, GreedyRank.Where where, String thrown) throws Exception {
    try (SessionServer server = server();
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      Process victim = start(backend, where, server.port());
      try (BufferedReader out = victim.inputReader()) {
        List<Callable<CommException>> survivors = new ArrayList<>();
        for (int rank = 0; rank < VICTIM; rank++) {
          CommConfig config = CommConfig.fromEnvironment(environment(backend, rank, server.port()));
          survivors.add(() -> failure(backend, config, where.call(false)));
        }
        for (Future<CommException> each : threads.invokeAll(survivors)) {
          assertThat(each.get())
              .isInstanceOfSatisfying(
                  AbortedException.class, e -> assertThat(e.rank()).isEqualTo(VICTIM))
              .hasMessageContainingAll("rank " + VICTIM, "OutOfMemoryError");
        }
        List<String> lines = out.lines().toList();
        assertThat(victim.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(victim.exitValue()).as("%s", lines).isZero();
        assertThat(lines).hasSizeGreaterThan(2);
        assertThat(Path.of(lines.getFirst())).doesNotExist();
        assertThat(lines.get(1)).startsWith("thrown: " + thrown);
        assertThat(lines.get(lines.size() - 2)).startsWith("thrown: java.lang.OutOfMemoryError: ");
        assertThat(lines.getLast())
            .startsWith("failure: Optional[org.comm4j.api.AbortedException: rank 2 ")
            .contains("OutOfMemoryError");
      } finally {
        victim.destroyForcibly();
      }
    }
  }

  /// What a survivor's call throws, and each one after it.
  private static CommException failure(String backend, CommConfig config, Collective call) {
    try (Session session = new DefaultSessionFactory().join(config, List.of(backend))) {
      BackendCommunicator comm = provider(backend).open(session, config);
      try {
        comm.run(new Collective.Barrier());
        assertThatThrownBy(
                () -> {
                  comm.run(call);
                  comm.run(
                      new Collective.Barrier()); // the call itself may not need that rank any more
                })
            .isInstanceOf(CommException.class);
        return Objects.requireNonNull(comm.failure());
      } finally {
        comm.close();
      }
    }
  }

  private static BackendProvider provider(String name) {
    return ServiceLoader.load(BackendProvider.class).stream()
        .map(ServiceLoader.Provider::get)
        .filter(each -> each.name().equals(name))
        .findFirst()
        .orElseThrow();
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

  private static Process start(String backend, GreedyRank.Where where, int port) throws Exception {
    List<String> command = Launches.java(GreedyRank.class);
    command.addAll(
        1,
        List.of(
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xmx96m", // for two arrays of 16 MiB
            "-XX:MaxDirectMemorySize=8m"));
    command.add(where.name());
    var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().keySet().removeIf(name -> name.startsWith("COMM_"));
    builder.environment().putAll(environment(backend, VICTIM, port));
    return builder.start();
  }

  private static Map<String, String> environment(String backend, int rank, int port) {
    return Map.of(
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
  }
}
