package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.PeerMemoryContract;
import org.comm4j.tck.TransportContract;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;

/// The contracts on shared memory files, with ranks that are threads here but share only what
/// processes would: everybody maps everything. Nothing may be left in the file system.
class ShmTransportTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long WINDOW_BYTES = 4 << 20;

  private Path root;
  private @Nullable InMemorySessions sessions;

  @BeforeEach
  void makeRoot() throws IOException {
    root = Files.createTempDirectory(Path.of("/dev/shm"), "comm4j-test-");
  }

  @AfterEach
  void nothingIsLeft() throws IOException {
    if (sessions != null) {
      sessions.close();
    }
    try (var left = Files.list(root)) {
      assertThat(left).isEmpty();
    }
    Files.delete(root);
  }

  private List<SharedMemoryTransport> open(
      int size, Optional<NativeCalls> calls, long maxSleepNanos) throws Exception {
    var group = InMemorySessions.group(size);
    sessions = group;
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var opening = new ArrayList<Future<SharedMemoryTransport>>();
      for (int rank = 0; rank < size; rank++) {
        var rendezvous = new ShmRendezvous(group.session(rank), root, TIMEOUT, true);
        opening.add(
            threads.submit(
                () -> rendezvous.open(WINDOW_BYTES, calls, SingleCopyOption.ON, maxSleepNanos)));
      }
      var transports = new ArrayList<SharedMemoryTransport>();
      for (Future<SharedMemoryTransport> each : opening) {
        transports.add(each.get());
      }
      return transports;
    }
  }

  @Nested
  class WithNativeAccess extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) throws Exception {
      return open(size, NativeCalls.find(), Long.MAX_VALUE);
    }

    /// Others go on reading what a killed process has mapped.
    @Override
    protected boolean kill(Transport rank) {
      return true;
    }

    @Override
    protected List<Path> folders() {
      return List.of(root);
    }
  }

  @Nested
  class WithoutNativeAccess extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) throws Exception {
      return open(size, Optional.empty(), SharedMemoryTransport.MAX_SLEEP_NANOS);
    }
  }

  @Nested
  class Windows extends PeerMemoryContract {
    @Override
    protected List<Peer> peers(int size) throws Exception {
      return open(size, NativeCalls.find(), Long.MAX_VALUE).stream()
          .map(one -> new Peer(one, one))
          .toList();
    }
  }

  @Nested
  class WindowsWithoutNativeAccess extends PeerMemoryContract {
    @Override
    protected List<Peer> peers(int size) throws Exception {
      return open(size, Optional.empty(), SharedMemoryTransport.MAX_SLEEP_NANOS).stream()
          .map(one -> new Peer(one, one))
          .toList();
    }
  }
}
