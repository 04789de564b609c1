package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How a rank sleeps, and what several threads of it do at the same time.
class SharedMemoryTransportTest {
  private static final long PARK_NS = 1_000_000;

  private final AtomicInteger sleeps = new AtomicInteger();
  private final AtomicLong sleptNs = new AtomicLong(); // the last time
  private final FakeMemory memory = new FakeMemory();
  private final SharedMemoryTransport transport =
      new SharedMemoryTransport(
          0,
          memory.layout,
          memory,
          WindowOption.LOCAL,
          new CountingDoorbell(),
          SleepFence.symmetric(),
          Long.MAX_VALUE);

  @AfterEach
  void close() {
    transport.close();
  }

  @Test
  void park_nothingHappens_sleepsNoLonger() {
    park();
    park();
    assertThat(sleptNs).hasValue(PARK_NS);
  }

  @Test
  void park_anotherThreadAnnounced_looksFirst() {
    park();
    onAnotherThread(() -> {
      park();
      assertThat(sleeps).hasValue(0);
      park();
      assertThat(sleeps).hasValue(1);
    });
    park();
    assertThat(sleeps).as("who has looked").hasValue(2);
  }

  @Test
  void park_wokenBeforeAnotherAnnounced_looksAgain() {
    park();
    transport.wake(0);
    onAnotherThread(this::park);
    park();
    assertThat(sleeps).hasValue(0);
    park();
    assertThat(sleeps).hasValue(1);
  }

  @Test
  void close_nativeCallHasTheMemory_triesAgainLater() throws Exception {
    memory.busy = 2;
    transport.close();
    assertThat(memory.closed.await(20, TimeUnit.SECONDS)).isTrue();
  }

  private void park() {
    transport.park(PARK_NS);
  }

  private static void onAnotherThread(Runnable action) {
    CompletableFuture.runAsync(action, task -> Thread.ofPlatform().start(task)).join();
  }

  /// Comes back at once, as at the end of the time.
  private final class CountingDoorbell implements Doorbell {
    @Override
    public void sleep(int rank, MemorySegment word, long nanos) {
      sleeps.incrementAndGet();
      sleptNs.set(nanos);
    }

    @Override
    public void ring(int rank, MemorySegment word) {}
  }

  /// Of two ranks in one arena.
  private static final class FakeMemory implements RankMemory {
    final BlockLayout layout = new BlockLayout(2, BlockLayout.PAGE_BYTES);
    final CountDownLatch closed = new CountDownLatch(1);
    int busy; // so often it can't be closed; guarded by the transport
    private final Arena arena = Arena.ofAuto();
    private final MemorySegment[] blocks = {block(), block()};

    private MemorySegment block() {
      return arena.allocate(layout.blockBytes(), BlockLayout.PAGE_BYTES);
    }

    @Override
    public MemorySegment block(int rank) {
      return blocks[rank];
    }

    @Override
    public void reserve(long offset, long bytes) {}

    @Override
    public MemorySegment view(int peer, long offset, long bytes, Arena owner) {
      return MemorySegment.ofAddress(blocks[peer].address() + offset)
          .reinterpret(bytes, owner, null);
    }

    @Override
    public void close() {
      if (busy-- > 0) {
        throw new IllegalStateException("Session is acquired by 1 clients"); // as an arena does
      }
      closed.countDown();
    }
  }
}
