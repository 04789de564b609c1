package org.comm4j.tck.example;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;

/// `queue`: ranks as threads of one JVM, over [QueueTransport].
public final class QueueProvider implements BackendProvider {
  @Override
  public String name() {
    return "queue";
  }

  @Override
  public String version() {
    return "1.0";
  }

  @Override
  public RankKind rankKind() {
    return RankKind.THREADS;
  }

  @Override
  public int priority() {
    return 1; // `local` is better at the same
  }

  @Override
  public String reaches() {
    return "threads of one JVM";
  }

  @Override
  public Set<Capability> capabilities() {
    return EnumSet.of(
        Capability.SPLIT,
        Capability.SHRINK,
        Capability.POINT_TO_POINT,
        Capability.USER_DEFINED_OPERATORS,
        Capability.EPILOGUE,
        Capability.ORDERED_REDUCTION,
        Capability.HOST_MEMORY,
        Capability.MISMATCH_DETECTION,
        Capability.FAILURE_DETECTION);
  }

  @Override
  public Availability availability(CommConfig config) {
    return Availability.ready();
  }

  @Override
  public RankGroup launch(int size, CommConfig config) {
    var sessions = InMemorySessions.group(size);
    List<QueueTransport> transports = QueueTransport.group(size);
    List<BackendCommunicator> ranks =
        IntStream.range(0, size)
            .mapToObj(rank ->
                EngineCommunicator.open(
                    name(), sessions.session(rank), transports.get(rank), null, config))
            .toList();
    return new Group(sessions, ranks);
  }

  private record Group(InMemorySessions sessions, List<BackendCommunicator> ranks)
      implements RankGroup {
    @Override
    public int size() {
      return ranks.size();
    }

    @Override
    public BackendCommunicator communicator(int rank) {
      return ranks.get(rank);
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
      ranks.parallelStream().forEach(BackendCommunicator::close);
      sessions.close();
    }
  }
}
