package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PeerMemory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The engine on threads that read each other's memory.
class EngineByMemoryTest extends CommunicatorContract {
  private static final int LANES = 64;
  private static final long WINDOW_BYTES = 16 << 20;

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return MemoryGroups.open(size, config, 4096, WINDOW_BYTES);
  }

  @Test
  @Timeout(60)
  void duplicate_noMemoryForALaneOnOneRank_goesByMessagesOnAll() throws Exception {
    eachRank(
        (rank, memory) -> rank == 1 ? new Full(memory) : memory,
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

  /// Has memory for the flags and the first lane only.
  private record Full(PeerMemory inner) implements PeerMemory {
    @Override
    public long windowBytes() {
      return inner.windowBytes();
    }

    @Override
    public java.lang.foreign.MemorySegment window(int rank) {
      return inner.window(rank);
    }

    @Override
    public void reserve(long offset, long bytes) {
      if (offset > LANES * 4096) {
        throw new TransportFailedException("no space", null);
      }
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
