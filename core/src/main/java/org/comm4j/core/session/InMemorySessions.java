package org.comm4j.core.session;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.Session.Member;

/// The sessions of ranks that are threads of one JVM. They need no thread, port or file: whoever
/// calls hands his event to all ranks and runs their actions for news.
///
/// Thread-safe. A rank dies when somebody says so ([#fail]).
public final class InMemorySessions implements AutoCloseable {
  private final ReentrantLock lock = new ReentrantLock();
  private final List<ReplicatedSession> sessions;

  private InMemorySessions(
      int size,
      IntFunction<HostIdentity> hosts,
      List<String> backends,
      LongSupplier nanoTime,
      IntConsumer halt) {
    String id = randomId();
    long pid = ProcessHandle.current().pid();
    Set<Integer> processors = Processors.ofThisThread();
    List<Member> members =
        IntStream.range(0, size)
            .mapToObj(rank -> new Member(rank, hosts.apply(rank), pid, processors, backends))
            .toList();
    this.sessions =
        IntStream.range(0, size)
            .mapToObj(
                rank -> new ReplicatedSession(rank, id, members, new Part(rank), nanoTime, halt))
            .toList();
  }

  /// A group whose timeouts are on the clock of [System#nanoTime()].
  ///
  /// @param size how many ranks, at least 1
  public static InMemorySessions group(int size) {
    return group(size, System::nanoTime, ReplicatedSession::haltProcess);
  }

  /// A group with a clock of its own.
  ///
  /// @param size how many ranks, at least 1
  /// @param nanoTime monotonic; waiters look at it at least every 20 ms of real time
  /// @param halt what [Session#abortProcesses] does once for each rank, given the exit code
  public static InMemorySessions group(int size, LongSupplier nanoTime, IntConsumer halt) {
    HostIdentity here = LocalHost.identity();
    return group(size, _ -> here, nanoTime, halt);
  }

  /// A group of ranks that pretend to be on several hosts.
  ///
  /// @param size how many ranks, at least 1
  /// @param hosts where each rank is
  public static InMemorySessions group(int size, IntFunction<HostIdentity> hosts) {
    return group(size, hosts, System::nanoTime, ReplicatedSession::haltProcess);
  }

  private static InMemorySessions group(
      int size, IntFunction<HostIdentity> hosts, LongSupplier nanoTime, IntConsumer halt) {
    if (size < 1) {
      throw new IllegalArgumentException("size: %d (expected: at least 1)".formatted(size));
    }
    return new InMemorySessions(size, hosts, List.of(), nanoTime, halt);
  }

  /// The session of a rank that is the only one.
  static Session alone(List<String> backends) {
    HostIdentity here = LocalHost.identity();
    return new InMemorySessions(
            1, _ -> here, backends, System::nanoTime, ReplicatedSession::haltProcess)
        .session(0);
  }

  /// The sessions of all ranks, in order.
  public List<Session> sessions() {
    return List.copyOf(sessions);
  }

  /// A rank's session.
  public Session session(int rank) {
    return sessions.get(sessions.getFirst().member(rank).rank());
  }

  /// Tells everyone that a rank has died. Its own session is evicted.
  ///
  /// @param cause what it threw
  public void fail(int rank, Throwable cause) {
    sessions.getFirst().member(rank);
    append(new Event.Fail(rank, "threw " + cause, cause));
  }

  /// Closes the sessions of all ranks.
  @Override
  public void close() {
    sessions.forEach(Session::close);
  }

  static String randomId() {
    var bytes = new byte[16];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  private void append(Event event) {
    var untold = new ArrayList<ReplicatedSession>();
    lock.lock();
    try {
      for (ReplicatedSession session : sessions) {
        if (session.deliver(event)) {
          untold.add(session);
        }
      }
    } finally {
      lock.unlock();
    }
    untold.forEach(ReplicatedSession::tellNews);
  }

  /// What one rank adds to the history.
  private final class Part implements ReplicatedSession.History {
    private final int rank;
    private boolean left;

    Part(int rank) {
      this.rank = rank;
    }

    @Override
    public void append(Event event) {
      InMemorySessions.this.append(event);
    }

    @Override
    public void close() {
      lock.lock();
      try {
        if (left) {
          return;
        }
        left = true;
      } finally {
        lock.unlock();
      }
      append(new Event.Leave(rank));
    }
  }
}
