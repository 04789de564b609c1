package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.CommConfig;
import org.comm4j.tck.PeerMemoryContract;
import org.comm4j.tck.TransportContract;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/// The contracts on memory of one JVM, with native access and without it. Ranks sleep until they
/// are woken, so that a lost wake-up fails the test.
class LocalTransportTest {
  private static final long WINDOW_BYTES = 4 << 20;

  private static List<SharedMemoryTransport> anonymous(int size) {
    var calls = NativeCalls.find();
    assumeTrue(calls.isPresent(), "no native access");
    return LocalTransports.group(size, WINDOW_BYTES, calls, Long.MAX_VALUE);
  }

  private static List<SharedMemoryTransport> files(int size) {
    return LocalTransports.group(size, WINDOW_BYTES, Optional.empty(), Long.MAX_VALUE);
  }

  /// An interrupt closes the channels that the interrupted thread uses.
  @Test
  void files_onAnInterruptedThread_areMapped() {
    Thread.currentThread().interrupt();
    try {
      List<SharedMemoryTransport> made = files(2);
      assertThat(Thread.interrupted()).as("left as it was").isTrue();
      made.getFirst().window(1).set(JAVA_BYTE, 0, (byte) 1);
      made.forEach(SharedMemoryTransport::close);
    } finally {
      var _ = Thread.interrupted();
    }
  }

  @Test
  void files_leftByAKilledProcess_areRemoved() throws IOException {
    Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "comm4j-local-");
    Files.createFile(folder.resolve("rank-0"));
    Files.createFile(folder.resolve("lock")); // which nobody has
    files(1).forEach(SharedMemoryTransport::close);
    assertThat(folder).doesNotExist();
  }

  @Test
  void removeRemains_leftByAKilledProcess_removesIt() throws IOException {
    Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "comm4j-local-");
    Files.createFile(folder.resolve("lock"));
    new LocalProvider().removeRemains(CommConfig.builder().build());
    assertThat(folder).doesNotExist();
  }

  @Nested
  class Anonymous extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) {
      return anonymous(size);
    }
  }

  @Nested
  class InFiles extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) {
      return files(size);
    }
  }

  @Nested
  class AnonymousWindows extends PeerMemoryContract {
    @Override
    protected List<Peer> peers(int size) {
      return anonymous(size).stream().map(one -> new Peer(one, one)).toList();
    }
  }

  @Nested
  class WindowsInFiles extends PeerMemoryContract {
    @Override
    protected List<Peer> peers(int size) {
      return files(size).stream().map(one -> new Peer(one, one)).toList();
    }
  }
}
