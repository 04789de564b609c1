package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.comm4j.api.AbortedException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.Shrunk;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The engine on threads that read each other's memory.
class EngineByMemoryTest extends CommunicatorContract {
  private static final int LANES = 64;
  private static final long WINDOW_BYTES = 16 << 20;
  private static final int LONG = 3_000_001;

  /// Threads of `local` run the whole contract by memory.
  @Override
  protected String wanted() {
    return ".*(anyArguments|[FLP]\\d).*";
  }

  @Override
  protected List<Integer> otherSizes() {
    return List.of(3);
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return MemoryGroups.open(size, config, 4096, WINDOW_BYTES);
  }

  @Test
  @Timeout(60)
  void duplicate_noMemoryForALaneOnOneRank_goesByMessagesOnAll() throws Exception {
    eachRank(
        (rank, memory) -> rank == 1 ? new Full(memory, LANES * 6144) : memory,
        world -> {
          assertThat(hasLane(world)).isTrue();
          for (int i = 0; i < 3; i++) {
            EngineCommunicator copy = (EngineCommunicator) world.duplicate();
            copy.run(new Collective.Barrier());
            assertThat(hasLane(copy)).isFalse();
            copy.close();
          }
        });
  }

  @Test
  @Timeout(60)
  void duplicate_memoryIsThereAgain_hasALane() throws Exception {
    AtomicBoolean full = new AtomicBoolean(true);
    eachRank(
        (rank, memory) -> rank == 1 ? new Full(memory, LANES * 6144, full) : memory,
        world -> {
          EngineCommunicator copy = (EngineCommunicator) world.duplicate();
          assertThat(hasLane(copy)).isFalse();
          full.set(false);
          for (long start = System.nanoTime(); !hasLane(copy); ) {
            assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(20));
            copy.close();
            copy = (EngineCommunicator) world.duplicate();
          }
          copy.close();
        });
  }

  /// One rank has the new communicator already; the other one hears that the old one is broken
  /// before it hears that all have it.
  @Test
  @Timeout(60)
  void split_parentBreaksMeanwhile_breaksTheNewOneForAll() throws Exception {
    AtomicBoolean holds = new AtomicBoolean();
    UnaryOperator<Transport> holding =
        inner ->
            inner.rank() == 0
                ? inner
                : new BrokenWire(inner) {
                  @Override
                  public boolean offer(int peer, long[] header, MemorySegment payload) {
                    return holds.get() || inner.offer(peer, header, payload);
                  }
                };
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(20)).build();
    try (LocalGroup group =
        MemoryGroups.open(2, config, 4096, WINDOW_BYTES, holding, UnaryOperator.identity())) {
      Communicator here = group.communicator(0);
      Communicator there = group.communicator(1);
      holds.set(true); // by messages ranks agree on the new one's lane only
      CompletableFuture<Communicator> making = CompletableFuture.supplyAsync(here::duplicate);
      try (Communicator copyThere = there.duplicate()) {
        there.abort("on purpose");
        try (Communicator copyHere = making.get(30, TimeUnit.SECONDS)) {
          assertThat(copyHere.failure()).containsInstanceOf(AbortedException.class);
          assertThatThrownBy(copyThere::barrier)
              .isInstanceOfSatisfying(
                  AbortedException.class, e -> assertThat(e.rank()).isEqualTo(0))
              .hasMessageContaining("on purpose");
        }
      }
    }
  }

  /// One rank has the new communicator already when the other one closes what it is made of.
  @Test
  @Timeout(60)
  void split_parentIsClosedMeanwhile_isClosed() throws Exception {
    UnaryOperator<Transport> holding =
        inner -> inner.rank() == 0 ? inner : new Silent(inner); // its word on the lane is lost
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(20)).build();
    try (LocalGroup group =
        MemoryGroups.open(2, config, 4096, WINDOW_BYTES, holding, UnaryOperator.identity())) {
      Communicator here = group.communicator(0);
      CompletableFuture<Communicator> making = CompletableFuture.supplyAsync(here::duplicate);
      try (Communicator copyThere = group.communicator(1).duplicate()) {
        here.close();
        assertThatThrownBy(() -> making.get(30, TimeUnit.SECONDS))
            .hasCauseInstanceOf(ClosedException.class);
        assertThatThrownBy(copyThere::barrier)
            .isInstanceOfSatisfying(AbortedException.class, e -> assertThat(e.rank()).isZero());
      }
    }
  }

  /// Survivors meet by the session: nothing need come through where it broke.
  @Test
  @Timeout(60)
  void shrink_wayToARankIsBroken_waitsForIt() throws Exception {
    AtomicBoolean isBroken = new AtomicBoolean();
    CountDownLatch tried = new CountDownLatch(1);
    UnaryOperator<Transport> breaking =
        inner ->
            new BrokenWire(inner) {
              @Override
              public boolean offer(int peer, long[] header, MemorySegment payload) {
                if (isBroken.get()) {
                  tried.countDown();
                  throw new TransportFailedException("no way to rank " + peer, null);
                }
                return inner.offer(peer, header, payload);
              }
            };
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(20)).build();
    try (LocalGroup group =
        MemoryGroups.open(2, config, 4096, WINDOW_BYTES, breaking, UnaryOperator.identity())) {
      Communicator here = group.communicator(0);
      here.abort("on purpose");
      isBroken.set(true);
      CompletableFuture<Shrunk> shrinking = CompletableFuture.supplyAsync(here::shrink);
      assertThat(tried.await(30, TimeUnit.SECONDS)).isTrue();
      isBroken.set(false);
      try (Communicator there = group.communicator(1).shrink().communicator();
          Communicator made = shrinking.get(30, TimeUnit.SECONDS).communicator()) {
        assertThat(made.size()).isEqualTo(2);
        assertThat(there.name()).isEqualTo(made.name());
      }
    }
  }

  /// The same where the other rank dies: that is what the new one breaks of, in its own numbers.
  @Test
  @Timeout(60)
  void split_rankDiesMeanwhile_breaksTheNewOneOfThat() throws Exception {
    List<MemoryTransport> transports = MemoryTransport.group(3, 4096, WINDOW_BYTES);
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(20)).build();
    try (InMemorySessions sessions = InMemorySessions.group(3);
        var threads = Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory())) {
      List<EngineCommunicator> worlds =
          sessions.sessions().stream()
              .map(session -> {
                MemoryTransport transport = transports.get(session.rank());
                Transport wire = session.rank() == 2 ? new Silent(transport) : transport;
                return (EngineCommunicator)
                    EngineCommunicator.open("memory", session, wire, transport, config);
              })
              .toList();
      CompletableFuture<?> alone =
          CompletableFuture.runAsync(
              () -> worlds.getFirst().split(0, 0).orElseThrow().close(), threads);
      CompletableFuture<BackendCommunicator> making =
          CompletableFuture.supplyAsync(() -> worlds.get(1).split(1, 0).orElseThrow(), threads);
      var _ = worlds.getLast().split(1, 0).orElseThrow(); // has it; its word on it is lost
      alone.get(30, TimeUnit.SECONDS); // else the death may end that too
      sessions.fail(2, new IllegalStateException("on purpose"));
      assertThat(making.get(30, TimeUnit.SECONDS).failure())
          .isInstanceOfSatisfying(
              PeerFailedException.class,
              e -> {
                assertThat(e.ranks()).containsExactly(1);
                assertThat(e.worldRanks()).containsExactly(2);
              });
    }
  }

  /// What it sends gets lost.
  private static final class Silent extends BrokenWire {
    Silent(Transport inner) {
      super(inner);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return true;
    }
  }

  /// As where its creation failed on the other rank alone, which never says that it needs it no
  /// more.
  @Test
  @Timeout(60)
  void region_closedByTheLeaderUnfenced_givesItsMemoryBack() throws Exception {
    eachRank(
        (_, memory) -> memory,
        world -> {
          long most = WINDOW_BYTES * 3 / 8; // there is no room for two
          SharedMemoryProvider shared = world.sharedMemory();
          SharedRegion<HostData> lost = shared.createRegion(DataType.UINT8, most);
          if (world.rank() == 0) {
            lost.close();
          }
          SharedRegion<HostData> next = shared.createRegion(DataType.UINT8, most);
          next.fence();
          next.close();
        });
  }

  @Test
  @Timeout(60)
  void duplicate_manyBrokenBefore_hasALane() throws Exception {
    eachRank(
        (_, memory) -> memory,
        world -> {
          for (int i = 0; i < 2 * LANES; i++) {
            EngineCommunicator copy = (EngineCommunicator) world.duplicate();
            assertThat(hasLane(copy)).isTrue();
            if (copy.rank() == 0) {
              copy.run(new Collective.Barrier());
              copy.abort(new AbortedException(0, "on purpose", null));
            }
            assertThatThrownBy(() -> runForEver(copy)).isInstanceOf(AbortedException.class);
            copy.close();
          }
        });
  }

  private static void runForEver(EngineCommunicator comm) {
    while (true) {
      comm.run(new Collective.Barrier());
    }
  }

  /// What the receiver would read then may be anything. Others of the same rank are received.
  @Test
  @Timeout(60)
  void send_endedBeforeItWasRead_isNotReceived() throws Exception {
    CyclicBarrier step = new CyclicBarrier(2);
    eachRank(
        (_, memory) -> memory,
        world -> {
          EngineCommunicator copy = (EngineCommunicator) world.duplicate();
          byte[] data = new byte[LONG];
          if (copy.rank() == 0) {
            CommBuffer buffer = copy.allocate(DataType.INT8, LONG);
            Pending send = copy.submit(new PointToPoint.Send(buffer.data(), 1, 5));
            assertThatThrownBy(buffer::close)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("in flight");
            copy.abort(new AbortedException(0, "on purpose", null));
            assertThatThrownBy(() -> send.await(Long.MAX_VALUE))
                .isInstanceOf(AbortedException.class);
            buffer.close();
            await(step);
            try (CommBuffer other = world.allocate(DataType.INT8, LONG)) {
              other.hostData().segment().fill((byte) 7);
              world.run(new PointToPoint.Send(other.data(), 1, 5));
            }
          } else {
            await(step);
            assertThatThrownBy(() -> copy.run(new PointToPoint.Receive(CommData.of(data), 0, 5)))
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("on purpose");
            assertThat(data).containsOnly(0);
            world.run(new PointToPoint.Receive(CommData.of(data), 0, 5));
            assertThat(data).containsOnly(7);
          }
          copy.close();
        });
  }

  private static void await(CyclicBarrier step) {
    try {
      step.await(30, TimeUnit.SECONDS);
    } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  @Timeout(60)
  void open_noMemoryForTheFirstLane_isRefused() {
    assertThatThrownBy(
            () -> eachRank((rank, memory) -> rank == 1 ? new Full(memory, 0) : memory, _ -> {}))
        .cause()
        .isInstanceOf(TransportFailedException.class)
        .hasMessage("no space");
  }

  @Test
  @Timeout(60)
  void memory_cannotBeMapped_isSaidToAllAndNothingIsLost() throws Exception {
    AtomicBoolean full = new AtomicBoolean();
    eachRank(
        (rank, memory) -> rank == 0 ? new Unmappable(memory, full) : memory,
        world -> {
          boolean leader = world.rank() == 0;
          world.sharedMemory().splitLocal().barrier();
          full.set(true);
          for (int i = 0; i < 6; i++) {
            assertThatThrownBy(() -> world.sharedMemory().createRegion(DataType.INT8, 3_000_000))
                .isInstanceOf(TransportFailedException.class);
            if (leader) {
              assertThatThrownBy(() -> world.allocate(DataType.INT8, 3_000_000))
                  .hasMessage("no mapping");
            }
          }
          world.run(new Collective.Barrier());
          full.set(false);
          world.run(new Collective.Barrier());
          world.sharedMemory().createRegion(DataType.INT8, 3_000_000).close();
          world.allocate(DataType.INT8, 3_000_000).close();
        });
  }

  @Test
  @Timeout(60)
  void region_oneRankCannotMapIt_isSaidToAll() throws Exception {
    eachRank(
        (rank, memory) -> rank == 1 ? new Blind(memory) : memory,
        world -> {
          SharedMemoryProvider memory = world.sharedMemory();
          if (world.rank() == 1) {
            assertThatThrownBy(() -> memory.createRegion(DataType.INT8, 1000))
                .isInstanceOf(TransportFailedException.class)
                .hasMessage("no view");
          } else {
            assertThatThrownBy(
                    () -> { // when it has the region, or before
                      try (var region = memory.createRegion(DataType.INT8, 1000)) {
                        region.fence();
                      }
                    })
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("no view");
          }
        });
  }

  private static boolean hasLane(EngineCommunicator comm) {
    return comm.explain(new Collective.Barrier()).algorithm().usesPeerMemory();
  }

  private interface Body {
    void run(EngineCommunicator world);
  }

  private interface Wrapping {
    PeerMemory wrap(int rank, PeerMemory memory);
  }

  /// Runs a body on two ranks.
  private static void eachRank(Wrapping memory, Body body)
      throws ExecutionException, InterruptedException, TimeoutException {
    List<MemoryTransport> transports = MemoryTransport.group(2, 4096, WINDOW_BYTES);
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(20)).build();
    List<Future<?>> ends = new ArrayList<>();
    try (InMemorySessions sessions = InMemorySessions.group(2);
        var threads = Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory())) {
      for (Session session : sessions.sessions()) {
        MemoryTransport transport = transports.get(session.rank());
        ends.add(
            threads.submit(() -> {
              EngineCommunicator world =
                  (EngineCommunicator)
                      EngineCommunicator.open(
                          "memory",
                          session,
                          transport,
                          memory.wrap(session.rank(), transport),
                          config);
              body.run(world);
              world.close();
            }));
      }
      for (Future<?> end : ends) {
        end.get(50, TimeUnit.SECONDS);
      }
    }
  }

  /// Has no memory behind its first bytes: 384 KiB are enough for the flags and one lane.
  private static final class Full extends Passing {
    private final long bytes;
    private final AtomicBoolean now;

    Full(PeerMemory inner, long bytes) {
      this(inner, bytes, new AtomicBoolean(true));
    }

    Full(PeerMemory inner, long bytes, AtomicBoolean now) {
      super(inner);
      this.bytes = bytes;
      this.now = now;
    }

    @Override
    public void reserve(long offset, long count) {
      if (offset > bytes && now.get()) {
        throw new TransportFailedException("no space", null);
      }
      super.reserve(offset, count);
    }
  }

  /// Sees nothing of other ranks' regions.
  private static final class Blind extends Passing {
    Blind(PeerMemory inner) {
      super(inner);
    }

    @Override
    public Extent view(int rank, long offset, long bytes) {
      throw new TransportFailedException("no view", null);
    }
  }

  /// Maps nothing for a while.
  private static final class Unmappable extends Passing {
    private final AtomicBoolean now;

    Unmappable(PeerMemory inner, AtomicBoolean now) {
      super(inner);
      this.now = now;
    }

    @Override
    public Extent map(long offset, long bytes) {
      if (now.get()) {
        throw new TransportFailedException("no mapping", null);
      }
      return super.map(offset, bytes);
    }
  }

  private static class Passing implements PeerMemory {
    private final PeerMemory inner;

    Passing(PeerMemory inner) {
      this.inner = inner;
    }

    @Override
    public long windowBytes() {
      return inner.windowBytes();
    }

    @Override
    public MemorySegment window(int rank) {
      return inner.window(rank);
    }

    @Override
    public void reserve(long offset, long bytes) {
      inner.reserve(offset, bytes);
    }

    @Override
    public Extent map(long offset, long bytes) {
      return inner.map(offset, bytes);
    }

    @Override
    public void wake(int rank) {
      inner.wake(rank);
    }
  }
}
