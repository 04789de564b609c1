package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.HostData;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.SessionServer;
import org.comm4j.tck.Promise;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A process that is killed while all ranks are in collectives is known to the others as soon as is
/// promised. They are threads of this JVM, so that the times are of one clock.
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KilledRankTest {
  private static final int RANKS = 3;
  private static final int VICTIM = RANKS - 1;
  private static final int[] COUNTS = {1, 1 << 18, 1_000, 1 << 16, 1}; // one for each kill

  @Test
  void rankIsKilledInACollective_othersKnowWithinThePromise() throws Exception {
    List<Duration> took = new ArrayList<>();
    for (int count : COUNTS) {
      took.addAll(kill(count));
    }
    assertThat(took).hasSize(COUNTS.length * VICTIM);
    Promise.DEATH_KNOWN.keepUsually("F5", "to hear of the death", took);
  }

  /// How long the survivors were in the dark.
  private static List<Duration> kill(int count) throws Exception {
    try (SessionServer server = server();
        ExecutorService threads = Executors.newCachedThreadPool()) {
      Process victim = start(server.port(), count);
      var calls = new CountDownLatch(5 * VICTIM);
      try (BufferedReader out = victim.inputReader()) {
        var ends = new ConcurrentLinkedQueue<Future<Long>>();
        for (int rank = 0; rank < VICTIM; rank++) {
          CommConfig config = CommConfig.fromEnvironment(environment(rank, server.port()));
          ends.add(threads.submit(() -> sumUntilFailure(config, count, calls)));
        }
        assertThat(out.readLine()).isEqualTo("ready");
        assertThat(calls.await(60, TimeUnit.SECONDS)).as("all are at work").isTrue();
        long killed = System.nanoTime();
        victim.destroyForcibly();
        List<Duration> took = new ArrayList<>();
        for (Future<Long> end : ends) {
          took.add(Duration.ofNanos(end.get() - killed));
        }
        return took;
      } finally {
        victim.destroyForcibly();
      }
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

  private static Process start(int port, int count) throws Exception {
    List<String> command =
        AeronGroups.JVM.command(
            List.of(AeronGroups.OPENED, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"), Sums.class);
    command.add(Integer.toString(count));
    var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
    builder.environment().putAll(environment(VICTIM, port));
    return builder.start();
  }

  private static Map<String, String> environment(int rank, int port) {
    return Map.of(
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

  /// All-reduces until the victim is dead.
  ///
  /// @return when that was known, by [System#nanoTime()]
  private static long sumUntilFailure(CommConfig config, int count, CountDownLatch calls) {
    try (Session session = new DefaultSessionFactory().join(config, List.of("aeron"))) {
      BackendCommunicator comm = new AeronProvider().open(session, config);
      try {
        while (true) {
          sum(comm, count);
          calls.countDown();
        }
      } catch (PeerFailedException e) {
        long known = System.nanoTime();
        assertThat(e.ranks()).containsExactly(VICTIM);
        assertThat(e.evidence()).isNotBlank();
        return known;
      } finally {
        comm.close();
      }
    }
  }

  private static void sum(BackendCommunicator comm, int count) {
    HostData data = CommData.of(new int[count]);
    comm.run(new Collective.AllReduce(data, data, ReduceOp.SUM));
  }

  /// A process that does nothing but sum up.
  static final class Sums {
    private Sums() {}

    public static void main(String[] args) {
      CommConfig config = CommConfig.fromEnvironment(System.getenv());
      int count = Integer.parseInt(args[0]);
      try (Session session = new DefaultSessionFactory().join(config, List.of("aeron"))) {
        BackendCommunicator comm = new AeronProvider().open(session, config);
        sum(comm, count);
        System.out.println("ready");
        while (true) {
          sum(comm, count);
        }
      }
    }
  }
}
