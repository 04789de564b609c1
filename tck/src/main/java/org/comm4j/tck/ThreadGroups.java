package org.comm4j.tck;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntFunction;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;

/// Groups whose ranks are threads of this JVM, also of backends whose ranks usually are processes:
/// their sessions are in memory then.
public final class ThreadGroups {
  private static final long OPEN_SECONDS = 60;

  private ThreadGroups() {}

  /// What opens one rank's communicator.
  @FunctionalInterface
  public interface Opener {
    /// Opens a rank; called on a thread of its own, for all ranks at once.
    ///
    /// @param session of that rank
    /// @return its communicator
    /// @throws Exception if it can't
    BackendCommunicator open(Session session) throws Exception;
  }

  /// Opens a group of a provider, whatever its ranks are.
  ///
  /// @param provider need not be found by discovery
  /// @param size how many ranks
  /// @param config of all ranks
  /// @return the group; the caller closes it
  public static LocalGroup open(BackendProvider provider, int size, CommConfig config) {
    return provider.rankKind() == RankKind.THREADS
        ? LocalGroup.of(provider.launch(size, config))
        : open(size, session -> provider.open(session, config));
  }

  /// Opens a group rank by rank.
  ///
  /// @param size how many ranks
  /// @param opener opens each
  /// @return the group; the caller closes it
  public static LocalGroup open(int size, Opener opener) {
    return open(InMemorySessions.group(size), opener);
  }

  /// Opens a group whose ranks pretend to be on several hosts.
  ///
  /// @param size how many ranks
  /// @param hosts where each rank is
  /// @param opener opens each
  /// @return the group; the caller closes it
  public static LocalGroup open(int size, IntFunction<HostIdentity> hosts, Opener opener) {
    return open(InMemorySessions.group(size, hosts), opener);
  }

  private static LocalGroup open(InMemorySessions sessions, Opener opener) {
    int size = sessions.sessions().size();
    List<Future<BackendCommunicator>> opening = new ArrayList<>();
    List<BackendCommunicator> communicators = new ArrayList<>();
    try (var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().daemon().factory())) {
      for (Session session : sessions.sessions()) {
        opening.add(threads.submit(() -> opener.open(session)));
      }
      for (Future<BackendCommunicator> each : opening) {
        communicators.add(each.get(OPEN_SECONDS, TimeUnit.SECONDS));
      }
    } catch (ExecutionException | TimeoutException | InterruptedException e) {
      communicators.forEach(BackendCommunicator::close);
      sessions.close();
      String reason =
          switch (e) {
            case ExecutionException failed -> String.valueOf(failed.getCause());
            case TimeoutException _ ->
                "rank %d took longer than %d s".formatted(communicators.size(), OPEN_SECONDS);
            default -> String.valueOf(e);
          };
      throw new IllegalStateException(
          "a group of %d ranks can't be opened: %s".formatted(size, reason), e);
    }
    return LocalGroup.of(new SessionGroup(sessions, communicators));
  }

  private record SessionGroup(InMemorySessions sessions, List<BackendCommunicator> communicators)
      implements RankGroup {
    @Override
    public int size() {
      return communicators.size();
    }

    @Override
    public BackendCommunicator communicator(int rank) {
      return communicators.get(rank);
    }

    @Override
    public void fail(int rank, Throwable cause) {
      sessions.fail(rank, cause);
    }

    @Override
    public void leave(int rank) {
      sessions.session(rank).close();
    }

    @Override
    public void close() {
      communicators.forEach(BackendCommunicator::close);
      sessions.close();
    }
  }
}
