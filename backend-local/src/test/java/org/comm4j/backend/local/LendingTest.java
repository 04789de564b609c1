package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Ranks of one JVM read each other's memory where it is: what must not come of that.
@Timeout(60)
class LendingTest {
  private static final int COUNT = 10_000; // more than comes with a flag
  private static final int ATTEMPTS = 100;
  private static final int COLLECTIONS = 100;
  private static final long WAIT_SECONDS = 30;

  private ExecutorService other;

  @BeforeEach
  void start() {
    other = Executors.newSingleThreadExecutor();
  }

  @AfterEach
  void stop() {
    other.shutdownNow();
  }

  /// A rank that breaks its communicator may close its memory at once: its peer, which reads it,
  /// hears of the break and not of the memory. A third rank does not come, so nothing ends before.
  @Test
  void abort_thenMemoryClosed_peerIsAborted() throws Exception {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      try (LocalGroup group = group(3);
          Arena arena = Arena.ofShared()) {
        Future<float[]> sum = other.submit(allReduce(group.communicators().get(1)));
        HostData output = filled(arena, 0);
        Request request;
        try (Arena mine = Arena.ofShared()) {
          request = start(group, filled(mine, 1), output);
          group.communicators().getFirst().abort("enough");
        }
        assertThatThrownBy(request::await).isInstanceOf(AbortedException.class);
        assertThatThrownBy(() -> sum.get(WAIT_SECONDS, TimeUnit.SECONDS))
            .isInstanceOf(ExecutionException.class)
            .cause()
            .isInstanceOf(AbortedException.class)
            .hasMessageContaining("rank 0")
            .hasMessageContaining("enough");
      }
    }
  }

  /// Without a break it is a mistake, and whoever reads it says whose.
  @Test
  void memoryClosed_duringTheCall_isAnErrorThatNamesTheRank() {
    try (LocalGroup group = group(2);
        Arena arena = Arena.ofShared()) {
      Request request;
      try (Arena mine = Arena.ofShared()) {
        request = start(group, filled(mine, 1), filled(arena, 0));
      }
      assertThatThrownBy(() -> allReduce(group.communicators().get(1)).call())
          .satisfies(LendingTest::isOfRank0);
      assertThatThrownBy(request::await).satisfies(LendingTest::isOfRank0);
    }
  }

  private static void isOfRank0(Throwable thrown) {
    assertThat(thrown)
        .isInstanceOfSatisfying(
            AbortedException.class, aborted -> assertThat(aborted.rank()).isZero())
        .hasMessageContaining("memory of rank 0's")
        .hasMessageContaining("was closed while");
  }

  @Test
  void allReduce_ended_doesNotKeepTheMemory() throws Exception {
    try (LocalGroup group = group(2)) {
      Future<float[]> sum = other.submit(allReduce(group.communicators().get(1)));
      WeakReference<float[]> input = reduced(group);
      assertThat(sum.get(WAIT_SECONDS, TimeUnit.SECONDS)).containsOnly(2);

      for (int i = 0; i < COLLECTIONS && input.get() != null; i++) {
        System.gc();
      }

      assertThat(input.get()).isNull();
    }
  }

  @Test
  void allReduce_broken_doesNotKeepTheMemory() {
    try (LocalGroup group = group(2)) {
      WeakReference<float[]> input = aborted(group);

      for (int i = 0; i < COLLECTIONS && input.get() != null; i++) {
        System.gc();
      }

      assertThat(input.get()).isNull();
    }
  }

  /// Memory of no arena may be freed by hand as soon as the call has failed, so nobody may read it
  /// then: it is copied, and a root need not wait for who reads it.
  @Test
  void broadcast_memoryOfNoArena_isCopied() throws Exception {
    try (LocalGroup group = group(2)) {
      HostData data = filled(Arena.global(), 1);
      group.communicators().getFirst().start(new Collective.Broadcast(data, 0)).await();
      data.segment().fill((byte) 0);

      float[] received = new float[COUNT];
      Communicator there = group.communicators().get(1);
      other.submit(() -> there.broadcast(received, 0)).get(WAIT_SECONDS, TimeUnit.SECONDS);

      assertThat(received).containsOnly(1);
    }
  }

  /// So it is with direct buffers: libraries free theirs by hand.
  @Test
  void broadcast_directBuffer_isCopied() throws Exception {
    try (LocalGroup group = group(2)) {
      var data = ByteBuffer.allocateDirect(Float.BYTES * COUNT).order(ByteOrder.nativeOrder());
      group
          .communicators()
          .getFirst()
          .run(new Collective.Broadcast(CommData.of(data.asFloatBuffer()), 0));

      float[] received = ones();
      Communicator there = group.communicators().get(1);
      other.submit(() -> there.broadcast(received, 0)).get(WAIT_SECONDS, TimeUnit.SECONDS);

      assertThat(received).containsOnly(0);
    }
  }

  /// So is memory that one thread alone may touch.
  @Test
  void broadcast_memoryOfOneThread_isCopied() throws Exception {
    try (LocalGroup group = group(2);
        Arena arena = Arena.ofConfined()) {
      HostData data = filled(arena, 1);
      group.communicators().getFirst().run(new Collective.Broadcast(data, 0));

      float[] received = new float[COUNT];
      Communicator there = group.communicators().get(1);
      other.submit(() -> there.broadcast(received, 0)).get(WAIT_SECONDS, TimeUnit.SECONDS);

      assertThat(received).containsOnly(1);
    }
  }

  private static LocalGroup group(int size) {
    return ThreadGroups.open(new LocalProvider(), size, CommConfig.builder().build());
  }

  /// What rank 0 has given to a call that has ended; nothing on the stack holds it any more.
  private static WeakReference<float[]> reduced(LocalGroup group) {
    float[] input = ones();
    start(group, CommData.of(input), CommData.of(new float[COUNT])).await();
    return new WeakReference<>(input);
  }

  /// As [#reduced], of a call that was aborted.
  private static WeakReference<float[]> aborted(LocalGroup group) {
    float[] input = ones();
    Request request = start(group, CommData.of(input), CommData.of(new float[COUNT]));
    group.communicators().getFirst().abort("enough");
    assertThatThrownBy(request::await).isInstanceOf(AbortedException.class);
    return new WeakReference<>(input);
  }

  private static Request start(LocalGroup group, CommData input, CommData output) {
    return group
        .communicators()
        .getFirst()
        .start(new Collective.AllReduce(input, output, ReduceOp.SUM));
  }

  /// What a peer's thread does.
  private static Callable<float[]> allReduce(Communicator comm) {
    return () -> {
      float[] sum = new float[COUNT];
      comm.allReduce(CommData.of(ones()), CommData.of(sum), ReduceOp.SUM);
      return sum;
    };
  }

  private static float[] ones() {
    float[] ones = new float[COUNT];
    Arrays.fill(ones, 1);
    return ones;
  }

  private static HostData filled(Arena arena, float value) {
    MemorySegment segment = arena.allocate(ValueLayout.JAVA_FLOAT, COUNT);
    for (int i = 0; i < COUNT; i++) {
      segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }
    return CommData.of(DataType.FLOAT32, segment);
  }
}
