package org.comm4j.backend.local;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.OpenFiles;
import org.comm4j.core.session.Versions;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.PeerMemory;

/// `shm`: ranks that are processes of one host, over POSIX shared memory.
public final class ShmProvider implements BackendProvider {
  static final Path ROOT = Path.of("/dev/shm");
  private static final Path PTRACE_SCOPE = Path.of("/proc/sys/kernel/yama/ptrace_scope");
  private static final Path STATUS = Path.of("/proc/self/status");

  /// What a rank of a small group needs at the least: control lines, a ring, flags, staging.
  private static final long LEAST_FREE_BYTES = 5 << 20;

  /// Does nothing.
  public ShmProvider() {}

  @Override
  public String name() {
    return "shm";
  }

  @Override
  public String version() {
    return Versions.ofJar(ShmProvider.class, "comm4j-backend-local");
  }

  @Override
  public RankKind rankKind() {
    return RankKind.PROCESSES;
  }

  @Override
  public int priority() {
    return 60;
  }

  @Override
  public String reaches() {
    return "processes of one host";
  }

  @Override
  public Set<Capability> capabilities() {
    return LocalProvider.CAPABILITIES;
  }

  @Override
  public Set<String> options() {
    return Set.of(WindowOption.NAME, SingleCopyOption.NAME);
  }

  @Override
  public void checkOptions(CommConfig config) {
    var _ = WindowOption.SHM.bytes(config);
    var _ = SingleCopyOption.of(config);
  }

  @Override
  public Availability availability(CommConfig config) {
    if (!System.getProperty("os.name").equals("Linux")) {
      return Availability.unavailable(
          "it needs Linux, this is " + System.getProperty("os.name"),
          "use backend 'local', whose ranks are threads, or one that reaches other hosts");
    }
    long windowBytes = WindowOption.SHM.bytes(config);
    long opening = openingBytes(config.localWorldSize().orElse(1), windowBytes);
    return availability(ROOT, Math.max(LEAST_FREE_BYTES, opening));
  }

  /// What all ranks of a host have reserved when they have opened.
  static long openingBytes(int ranks, long windowBytes) {
    if (ranks == 1) {
      return 0;
    }
    long window = Math.max(PeerMemory.READY_BYTES, EngineCommunicator.firstBytes(windowBytes));
    return ranks * (new BlockLayout(ranks, windowBytes).controlBytes() + window);
  }

  /// @param wanted how many bytes
  static Availability availability(Path root, long wanted) {
    if (!Files.isDirectory(root)) {
      return Availability.unavailable(root + " is not there", ShmDirectory.remedyWithout(root));
    }
    try {
      FileStore store = Files.getFileStore(root);
      if (!Files.isWritable(root)) {
        return store.isReadOnly()
            ? Availability.unavailable(
                root + " is mounted read-only", "as root: mount -o remount,rw " + root)
            : Availability.unavailable(
                root + " can't be written to by this user", "as root: chmod 1777 " + root);
      }
      long free = store.getUsableSpace();
      if (free < wanted) {
        return Availability.unavailable(
            "%s has %d bytes free (expected: at least %d)".formatted(root, free, wanted),
            "free space there or make it larger (with Docker --shm-size)");
      }
      return Availability.ready();
    } catch (IOException e) {
      return Availability.unavailable(
          "%s can't be read: %s%s".formatted(root, e, OpenFiles.remedy(e)),
          "see what it is with df " + root);
    }
  }

  @Override
  public Map<String, String> details(CommConfig config) {
    return Map.of(
        "single copy",
        SingleCopy.outlook(SingleCopyOption.of(config), NativeCalls.find(), PTRACE_SCOPE, STATUS));
  }

  @Override
  public Availability connects(Session session) {
    HostIdentity here = session.member(0).host();
    for (int rank = 1; rank < session.size(); rank++) {
      HostIdentity there = session.member(rank).host();
      if (!there.id().equals(here.id())) {
        return Availability.unavailable(
            "ranks 0 and %d don't share memory: they run on '%s' and '%s', or in different containers or for different users"
                .formatted(rank, here.name(), there.name()),
            "use a backend that reaches other hosts, as 'aeron' (comm4j-backend-aeron on each rank's class path), or start all ranks on one");
      }
    }
    return Availability.ready();
  }

  @Override
  public void removeRemains(CommConfig config) {
    if (!Files.isDirectory(ROOT)) {
      return; // another system
    }
    try {
      ShmDirectory.reap(ShmDirectory.base(ROOT), Long.MAX_VALUE);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public BackendCommunicator open(Session session, CommConfig config) {
    HostTransport transport = new ShmTransports().open(session, config, true);
    return EngineCommunicator.open(name(), session, transport, transport, config);
  }
}
