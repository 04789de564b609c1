package org.comm4j.core.session;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// A group whose ranks are threads of this JVM, each with a session of its own: what a backend that
/// is opened by a session needs for its [org.comm4j.api.spi.BackendProvider#launch].
public final class SessionGroup implements RankGroup {
  private final InMemorySessions sessions;
  private final List<BackendCommunicator> communicators;
  private final Runnable end;

  private SessionGroup(
      InMemorySessions sessions, List<BackendCommunicator> communicators, Runnable end) {
    this.sessions = sessions;
    this.communicators = communicators;
    this.end = end;
  }

  /// What opens one rank's communicator.
  @FunctionalInterface
  public interface Opener {
    /// Opens a rank; called for all ranks at once, each on a thread of its own.
    ///
    /// @param session of that rank
    /// @return its communicator
    BackendCommunicator open(Session session);
  }

  /// Opens a group. When a rank can't be opened the others hear of it, and what they threw is added
  /// to what that one threw, which is thrown here.
  ///
  /// @param sessions closed with the group, also where this fails
  /// @param opener opens each rank
  /// @param end what else to do when all communicators are closed, before the sessions are
  /// @return the group; the caller closes it
  public static SessionGroup open(InMemorySessions sessions, Opener opener, Runnable end) {
    int size = sessions.sessions().size();
    var opened = new @Nullable BackendCommunicator[size];
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    onThreads(
        "comm4j-open",
        size,
        rank -> {
          try {
            opened[rank] = opener.open(sessions.session(rank));
          } catch (Throwable e) {
            failures.add(e);
            sessions.fail(rank, e);
          }
        });
    List<BackendCommunicator> all =
        Arrays.stream(opened)
            .<BackendCommunicator>mapMulti((each, to) -> {
              if (each != null) {
                to.accept(each);
              }
            })
            .toList();
    var group = new SessionGroup(sessions, all, end);
    if (failures.isEmpty()) {
      return group;
    }
    group.close();
    throw first(failures);
  }

  private static RuntimeException first(List<Throwable> failures) {
    Throwable first = failures.getFirst();
    // no exception is suppressed by itself
    failures.stream().filter(each -> each != first).forEach(first::addSuppressed);
    if (first instanceof Error error) {
      throw error;
    }
    return (RuntimeException) first; // an opener throws nothing that is checked
  }

  /// Does something for all ranks at once, and returns when it is done; interrupts reach them.
  private static void onThreads(String name, int size, IntConsumer action) {
    List<Thread> threads =
        IntStream.range(0, size)
            .mapToObj(rank ->
                Thread.ofPlatform()
                    .daemon()
                    .name(name + "-" + rank)
                    .start(() -> action.accept(rank)))
            .toList();
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException _) {
          interrupted = true;
          threads.forEach(Thread::interrupt);
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

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

  /// All ranks at once, since one that has something in flight may wait for another.
  @Override
  public void close() {
    onThreads("comm4j-close", communicators.size(), rank -> communicators.get(rank).close());
    try {
      end.run();
    } finally {
      sessions.close();
    }
  }
}
