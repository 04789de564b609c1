package org.comm4j.backend.local;

import java.util.Collections;
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
import org.comm4j.core.session.Versions;

/// `local`: ranks that are threads of one JVM.
public final class LocalProvider implements BackendProvider {
  static final Set<Capability> CAPABILITIES = capabilitiesOfBoth();

  private static Set<Capability> capabilitiesOfBoth() {
    EnumSet<Capability> all = EnumSet.copyOf(EngineCommunicator.BY_MESSAGES);
    all.add(Capability.SHARED_MEMORY);
    return Collections.unmodifiableSet(all);
  }

  /// Does nothing.
  public LocalProvider() {}

  @Override
  public String name() {
    return "local";
  }

  @Override
  public String version() {
    return Versions.ofJar(LocalProvider.class, "comm4j-backend-local");
  }

  @Override
  public RankKind rankKind() {
    return RankKind.THREADS;
  }

  @Override
  public int priority() {
    return 50;
  }

  @Override
  public String reaches() {
    return "threads of one JVM";
  }

  @Override
  public Set<Capability> capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Set<String> options() {
    return Set.of(WindowOption.NAME);
  }

  @Override
  public void checkOptions(CommConfig config) {
    var _ = WindowOption.LOCAL.bytes(config);
  }

  @Override
  public Availability availability(CommConfig config) {
    return Availability.ready();
  }

  @Override
  public void removeRemains(CommConfig config) {
    LocalTransports.removeRemains();
  }

  @Override
  public RankGroup launch(int size, CommConfig config) {
    List<SharedMemoryTransport> transports =
        LocalTransports.group(
            size,
            WindowOption.LOCAL.bytes(config),
            NativeCalls.find(),
            SharedMemoryTransport.MAX_SLEEP_NANOS);
    return SessionGroup.open(
        InMemorySessions.group(size),
        session -> {
          SharedMemoryTransport transport = transports.get(session.rank());
          return EngineCommunicator.open(name(), session, transport, transport, config);
        },
        () -> transports.forEach(SharedMemoryTransport::close));
  }
}
