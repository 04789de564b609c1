package org.comm4j.tck.example;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.SessionGroup;

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
    List<QueueTransport> transports = QueueTransport.group(size);
    return SessionGroup.open(
        InMemorySessions.group(size),
        session ->
            EngineCommunicator.open(name(), session, transports.get(session.rank()), null, config),
        () -> {});
  }
}
