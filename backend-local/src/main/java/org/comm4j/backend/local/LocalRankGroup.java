package org.comm4j.backend.local;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;

/// A group of ranks that are threads of this JVM: one session, transport and engine per rank.
final class LocalRankGroup implements RankGroup {
  private final InMemorySessions sessions;
  private final List<SharedMemoryTransport> transports;
  private final List<BackendCommunicator> communicators = new ArrayList<>();

  private LocalRankGroup(InMemorySessions sessions, List<SharedMemoryTransport> transports) {
    this.sessions = sessions;
    this.transports = transports;
  }

  static LocalRankGroup launch(String backend, int size, CommConfig config) {
    var sessions = InMemorySessions.group(size);
    List<SharedMemoryTransport> transports =
        LocalTransports.group(
            size,
            WindowOption.LOCAL.bytes(config),
            NativeCalls.find(),
            SharedMemoryTransport.MAX_SLEEP_NANOS);
    var group = new LocalRankGroup(sessions, transports);
    try {
      for (int rank = 0; rank < size; rank++) {
        SharedMemoryTransport transport = transports.get(rank);
        group.communicators.add(
            EngineCommunicator.open(backend, sessions.session(rank), transport, transport, config));
      }
      return group;
    } catch (RuntimeException e) {
      group.close();
      throw e;
    }
  }

  @Override
  public int size() {
    return transports.size();
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
    List<Thread> closing =
        communicators.stream()
            .map(each -> Thread.ofPlatform().daemon().name("comm4j-close").start(each::close))
            .toList();
    boolean interrupted = false;
    for (Thread thread : closing) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    transports.forEach(SharedMemoryTransport::close);
    sessions.close();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
