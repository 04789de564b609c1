package org.comm4j.api;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.comm4j.api.Discovery.Found;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.RankLauncher;
import org.comm4j.api.spi.Session;

/// Backends that move nothing: [Threads], [Processes] and [Devices] are on the class path of these
/// tests.
class FakeBackend implements BackendProvider {
  /// `fake-threads`: ranks are threads, every operation is a barrier.
  public static final class Threads extends FakeBackend {
    public Threads() {
      super("fake-threads", RankKind.THREADS, 50);
    }
  }

  /// `fake-net`: ranks are processes, which `start` starts.
  public static final class Processes extends FakeBackend {
    public Processes() {
      super("fake-net", RankKind.PROCESSES, 40);
    }

    @Override
    public Optional<RankLauncher> launcher(int ranks, CommConfig config) {
      var command = List.of("start", "-n", Integer.toString(ranks));
      return Optional.of(new RankLauncher(command, Map.of(), "FAKE_RANK"));
    }
  }

  /// `fake-devices`: ranks are processes, or threads.
  public static final class Devices extends FakeBackend {
    public Devices() {
      super("fake-devices", RankKind.PROCESSES, 30);
    }

    @Override
    public boolean launchesThreads() {
      return true;
    }
  }

  final String name;
  final RankKind kind;
  final int priority;
  Availability availability = Availability.ready();
  Availability reach = Availability.ready();

  FakeBackend(String name, RankKind kind, int priority) {
    this.name = name;
    this.kind = kind;
    this.priority = priority;
  }

  /// As discovery shows it.
  Found found() {
    var plain =
        new BackendInfo(
            name,
            BackendInfo.Status.READY,
            Optional.of(kind),
            priority,
            reaches(),
            version(),
            capabilities(),
            java.util.Map.of(),
            java.util.List.of(),
            Optional.empty(),
            Optional.empty());
    BackendInfo info =
        availability instanceof Availability.Unavailable it
            ? plain.unavailable(it.reason(), it.remedy())
            : plain;
    return new Found(info, () -> info, this, name + "'s jar", options());
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String version() {
    return "1";
  }

  @Override
  public RankKind rankKind() {
    return kind;
  }

  @Override
  public int priority() {
    return priority;
  }

  @Override
  public String reaches() {
    return "nobody";
  }

  @Override
  public Set<Capability> capabilities() {
    return Set.of(Capability.HOST_MEMORY);
  }

  @Override
  public Set<String> options() {
    return Set.of("SPEED");
  }

  @Override
  public Availability availability(CommConfig config) {
    return availability;
  }

  @Override
  public Availability connects(Session session) {
    return reach;
  }

  @Override
  public BackendCommunicator open(Session session, CommConfig config) {
    return new FakeCommunicator(session.rank(), session.size(), name);
  }

  @Override
  public RankGroup launch(int size, CommConfig config) {
    return new FakeGroup(size, name);
  }
}
