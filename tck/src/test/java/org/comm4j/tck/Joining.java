package org.comm4j.tck;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.tck.SessionContract.Group;

/// Has ranks join, as threads of this JVM and as processes.
final class Joining {
  private static final int FIRST_PORT = 10_000;
  private static final int LEAST_PORTS = 10_000;
  private static final int PORTS_OF_A_PROCESS = 251;
  private static final AtomicInteger PORTS = new AtomicInteger();

  private Joining() {}

  /// All ranks here.
  static Group group(CommConfig.Builder config) {
    return new Group(sessions(config, worldSize(config)), null);
  }

  /// All but the last rank here, that one as a process.
  static Group groupWithProcess(CommConfig.Builder config) {
    int last = worldSize(config) - 1;
    RankProcess process = RankProcess.start(rank(config, last));
    List<Session> sessions = sessions(config, last);
    String answer = process.line();
    if (!answer.startsWith("joined")) {
      throw new AssertionError(answer);
    }
    return new Group(sessions, process);
  }

  /// The same for another rank.
  static CommConfig rank(CommConfig.Builder config, int rank) {
    return config.build().toBuilder().rank(rank).build();
  }

  private static int worldSize(CommConfig.Builder config) {
    return config.build().worldSize().orElseThrow();
  }

  private static List<Session> sessions(CommConfig.Builder config, int count) {
    var sessions = new ArrayList<Session>();
    for (Object outcome : join(count, rank -> rank(config, rank))) {
      if (!(outcome instanceof Session session)) {
        throw new AssertionError((JoinException) outcome);
      }
      sessions.add(session);
    }
    return sessions;
  }

  /// Has some join at once.
  ///
  /// @return for each its session or its [JoinException]
  static List<Object> join(int count, IntFunction<CommConfig> configs) {
    ExecutorService executor = Executors.newFixedThreadPool(count);
    try {
      List<Future<Object>> futures =
          IntStream.range(0, count)
              .mapToObj(i -> executor.submit(() -> join(configs.apply(i))))
              .toList();
      var outcomes = new ArrayList<Object>();
      for (Future<Object> future : futures) {
        outcomes.add(future.get(50, TimeUnit.SECONDS));
      }
      return outcomes;
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    } catch (Exception e) {
      throw new AssertionError(e);
    } finally {
      executor.shutdownNow();
    }
  }

  static Object join(CommConfig config) {
    try {
      return new DefaultSessionFactory().join(config, List.of("x"));
    } catch (JoinException e) {
      return e;
    }
  }

  /// A port that is free, and that nobody gets by chance before it is used: below those that the
  /// kernel gives to whoever asks for any, where it leaves some. Which one, this process's id and a
  /// count say, so that processes that look at once take others.
  static int freePort() {
    int ports = Math.max(LEAST_PORTS, firstOfKernel() - FIRST_PORT);
    for (int tried = 0; tried < ports; tried++) {
      long next = ProcessHandle.current().pid() * PORTS_OF_A_PROCESS + PORTS.getAndIncrement();
      int port = FIRST_PORT + (int) (next % ports);
      try (var socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return socket.getLocalPort();
      } catch (BindException e) {
        // Somebody has it.
      } catch (IOException e) {
        throw new AssertionError(e);
      }
    }
    throw new AssertionError("no port is free from %d on, of %d".formatted(FIRST_PORT, ports));
  }

  /// Where nothing says it, as low as any system has it.
  private static int firstOfKernel() {
    try {
      String range = Files.readString(Path.of("/proc/sys/net/ipv4/ip_local_port_range"));
      return Integer.parseInt(range.strip().split("\\s", 2)[0]);
    } catch (IOException e) {
      return 32_768;
    }
  }
}
