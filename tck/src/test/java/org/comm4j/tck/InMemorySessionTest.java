package org.comm4j.tck;

import java.time.Duration;
import java.util.List;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;

/// Sessions of threads.
final class InMemorySessionTest extends SessionContract {
  @Override
  protected Group open(int size) {
    return new Group(InMemorySessions.group(size).sessions(), null);
  }

  @Override
  protected Group openWithVictim(int size, Duration liveness) {
    InMemorySessions sessions = InMemorySessions.group(size);
    return new Group(
        sessions.sessions().subList(0, size - 1), new ThreadVictim(sessions, size - 1));
  }

  private record ThreadVictim(InMemorySessions sessions, int rank) implements Victim {
    private Session session() {
      return sessions.session(rank);
    }

    @Override
    public void exchange(String key, byte[] bytes) {
      contribute(() -> session().exchange(key, bytes, Duration.ofSeconds(30)));
    }

    @Override
    public void agree(String key, List<Integer> members, byte[] bytes) {
      contribute(() -> session().agree(key, members, bytes, Duration.ofSeconds(30)));
    }

    private static void contribute(Runnable call) {
      var thread = new Thread(call);
      thread.setDaemon(true);
      thread.setUncaughtExceptionHandler((_, _) -> {});
      thread.start();
      while (thread.getState() != Thread.State.TIMED_WAITING && thread.isAlive()) {
        Thread.onSpinWait();
      }
    }

    @Override
    public void kill() {
      sessions.fail(rank, new IllegalStateException("thrown on purpose"));
    }

    @Override
    public boolean canStop() {
      return false;
    }

    @Override
    public void stop() {
      throw new UnsupportedOperationException("a session in memory has no process to stop");
    }

    @Override
    public void resume() {
      throw new UnsupportedOperationException("a session in memory has no process to resume");
    }

    @Override
    public String awaitEvicted() {
      return String.valueOf(session().news().evicted());
    }

    @Override
    public void close() {
      session().close();
    }
  }
}
