package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A look at a network takes microseconds, so none is made for a call that has all it needs.
@Timeout(60)
class SpinTest {
  private static final Duration LATE = Duration.ofSeconds(1);
  private static final int MOST_LOOKS = 500; // less than one in 2 ms

  @Test
  void run_lastMessageHasCome_looksNoMore() {
    for (int looks = 1; looks <= 20; looks++) {
      try (var sessions = InMemorySessions.group(2)) {
        var transport = new Echo(looks);
        var comm =
            EngineCommunicator.open(
                "test", sessions.session(0), transport, null, CommConfig.builder().build());
        int[] sum = new int[1];
        comm.run(new Collective.AllReduce(CommData.of(21), CommData.of(sum), ReduceOp.SUM));
        assertThat(sum[0]).isEqualTo(42);
        assertThat(transport.looksAfterwards).as("after the message at look %d", looks).isZero();
        comm.close();
      }
    }
  }

  /// It can't sleep in the transport, and is woken by the thread that does.
  @Test
  void receive_virtualThreadWithMemoryOfItsOwn_looksSeldom() throws Exception {
    try (var sessions = InMemorySessions.group(2)) {
      var transport = new Late();
      var comm =
          EngineCommunicator.open(
              "test", sessions.session(0), transport, null, CommConfig.builder().build());
      var received = new CompletableFuture<Integer>();
      Thread waiting =
          Thread.ofVirtual()
              .start(() -> {
                try (Arena arena = Arena.ofConfined()) {
                  MemorySegment data = arena.allocate(ValueLayout.JAVA_INT);
                  comm.run(new PointToPoint.Receive(CommData.of(DataType.INT32, data), 1, 0));
                  received.complete(data.get(ValueLayout.JAVA_INT, 0));
                } catch (Throwable thrown) {
                  received.completeExceptionally(thrown);
                }
              });
      Thread.sleep(LATE);
      int looks = transport.looksOfVirtualThreads.get();
      transport.arrive();
      assertThat(received.get(20, TimeUnit.SECONDS)).isEqualTo(42);
      assertThat(waiting.join(Duration.ofSeconds(20))).isTrue();
      assertThat(looks).as("looks of the thread that waits").isLessThan(MOST_LOOKS);
      comm.close();
    }
  }

  /// Rank 0 of two, for which a message comes when the test says so.
  private static final class Late extends OneOfTwo {
    private final AtomicInteger looksOfVirtualThreads = new AtomicInteger();
    private final Semaphore wakeUps = new Semaphore(0);
    private volatile boolean hasCome;

    Late() {
      super(0);
    }

    void arrive() {
      hasCome = true;
      wakeUp();
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      if (Thread.currentThread().isVirtual()) {
        looksOfVirtualThreads.incrementAndGet();
      }
      if (!hasCome) {
        return 0;
      }
      hasCome = false;
      long[] header = new long[HEADER_LONGS];
      Frame.write(header, Frame.word(Frame.MESSAGE, 0, 0, 0), 0, DataType.INT32.id(), 1, 0);
      handler.onPayload(1, header, MemorySegment.ofArray(new int[] {42}));
      return 1;
    }

    @Override
    public void park(long nanos) {
      try {
        var _ = wakeUps.tryAcquire(nanos, TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void wakeUp() {
      wakeUps.release();
    }
  }

  /// Rank 0 of two; what it sends comes back as rank 1's, at a certain look.
  private static final class Echo extends OneOfTwo {
    private int looksBefore;
    private int looksAfterwards;
    private long @Nullable [] header;
    private @Nullable MemorySegment payload;

    Echo(int looks) {
      super(0);
      looksBefore = looks;
    }

    @Override
    public boolean offer(int peer, long[] sentHeader, MemorySegment sentPayload) {
      header = sentHeader.clone();
      payload = copy(sentPayload);
      return true;
    }

    private static MemorySegment copy(MemorySegment segment) {
      return MemorySegment.ofArray(segment.toArray(ValueLayout.JAVA_BYTE));
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      if (header == null || payload == null) {
        return 0;
      }
      looksBefore--;
      if (looksBefore < 0) {
        looksAfterwards++;
      }
      if (looksBefore != 0) {
        return 0;
      }
      handler.onPayload(1, header, payload);
      return 1;
    }
  }
}
