package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.tck.SharedMemoryContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;

/// Ranks of one host share regions, as those of a host among several do, and all their messages go
/// by UDP: [Windows] has no way for any.
class OneHostRegionsTest extends SharedMemoryContract {
  @Override
  protected CommConfig config() {
    return super.config().toBuilder().option("COMM_AERON_TERM", "262144").build();
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return open(size, config, Windows::open);
  }

  private static LocalGroup open(int size, CommConfig config, HostTransports shared) {
    return ThreadGroups.open(
        size, session -> AeronProvider.open(session, config, Optional.of(shared)));
  }

  @Test
  void open_oneHost_hasSharedMemoryForRegions() throws Exception {
    assertThat(hasSharedMemory(config(), Windows::open)).isTrue();
  }

  @Test
  void open_memoryIsNotWanted_hasNone() throws Exception {
    CommConfig config = config().toBuilder().option("COMM_AERON_SHARED", "false").build();
    assertThat(hasSharedMemory(config, Windows::open)).isFalse();
  }

  /// Such as on a system that has no such memory: this backend needs none.
  @Test
  void open_memoryOfOneRankFails_allGoOnWithout() throws Exception {
    HostTransports broken =
        (session, config, forCollectives) -> {
          HostTransport opened = Windows.open(session, config, forCollectives);
          if (session.rank() == 1) {
            opened.close();
            throw new TransportFailedException("there is none here", null);
          }
          return opened;
        };
    assertThat(hasSharedMemory(config(), broken)).isFalse();
  }

  /// On all ranks, which can talk in any case.
  private static boolean hasSharedMemory(CommConfig config, HostTransports shared)
      throws Exception {
    try (LocalGroup group = open(3, config, shared)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("3");
      List<Boolean> all =
          group.communicators().stream()
              .map(comm -> comm.capabilities().supports(Capability.SHARED_MEMORY))
              .distinct()
              .toList();
      assertThat(all).hasSize(1);
      return all.getFirst();
    }
  }

  /// Windows in files, of ranks that have no other way to each other.
  private static final class Windows implements HostTransport {
    private static final long BYTES = 16 << 20;

    private final Session host;
    private final FileChannel own;
    private final Arena life = Arena.ofShared();
    private final List<MemorySegment> windows = new ArrayList<>();

    private Windows(Session host, CommConfig config) throws IOException {
      this.host = host;
      Path mine = Files.createTempFile("window", "");
      own = FileChannel.open(mine, StandardOpenOption.READ, StandardOpenOption.WRITE);
      List<byte[]> all =
          host.exchange(
              "windows", mine.toString().getBytes(StandardCharsets.UTF_8), config.joinTimeout());
      for (byte[] each : all) {
        windows.add(map(Path.of(new String(each, StandardCharsets.UTF_8))));
      }
      host.barrier("mapped", config.joinTimeout());
      Files.delete(mine);
    }

    static HostTransport open(Session host, CommConfig config, boolean forCollectives) {
      assertThat(forCollectives).isFalse();
      try {
        return new Windows(host, config);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private MemorySegment map(Path file) throws IOException {
      try (var channel =
          FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        return channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES, life);
      }
    }

    @Override
    public long windowBytes() {
      return BYTES;
    }

    @Override
    public MemorySegment window(int rank) {
      return windows.get(rank);
    }

    @Override
    public void reserve(long offset, long bytes) {}

    @Override
    public Extent map(long offset, long bytes) {
      Arena arena = Arena.ofShared();
      MemorySegment part;
      try {
        part = own.map(FileChannel.MapMode.READ_WRITE, offset, bytes, arena);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return extent(part, arena);
    }

    @Override
    @SuppressWarnings("restricted") // the memory outlives the view, in this test
    public Extent view(int rank, long offset, long bytes) {
      Arena arena = Arena.ofShared();
      return extent(window(rank).asSlice(offset, bytes).reinterpret(arena, null), arena);
    }

    private static Extent extent(MemorySegment part, Arena arena) {
      return new Extent() {
        @Override
        public MemorySegment segment() {
          return part;
        }

        @Override
        public void close() {
          if (arena.scope().isAlive()) {
            arena.close();
          }
        }
      };
    }

    @Override
    public void wake(int rank) {}

    @Override
    public int rank() {
      return host.rank();
    }

    @Override
    public int size() {
      return host.size();
    }

    @Override
    public int maxPayloadBytes(int peer) {
      throw new AssertionError("nothing goes this way");
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      throw new AssertionError("nothing goes this way");
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      throw new AssertionError("nothing comes this way");
    }

    @Override
    public void park(long nanos) {
      throw new AssertionError("nothing comes this way");
    }

    @Override
    public void wakeUp() {}

    @Override
    public void close() {
      try {
        own.close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      life.close();
    }
  }
}
