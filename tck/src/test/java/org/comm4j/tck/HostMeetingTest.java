package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Ranks of a host that come together to share memory, and some of them close.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class HostMeetingTest {
  private static final int RANKS = 3;

  /// Rank 1 closes after it has come, of which rank 0 hears the other way round; rank 2 closes
  /// later and has not come.
  @Test
  void nodeBarrier_twoClose_secondOneIsNamed() throws Exception {
    var heardOfFirst = new CountDownLatch(1);
    List<MemoryTransport> transports = MemoryTransport.group(RANKS, 4096, 16 << 20);
    try (var sessions = InMemorySessions.group(RANKS);
        var threads = Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory())) {
      List<Future<?>> ends =
          IntStream.range(0, RANKS)
              .<Future<?>>mapToObj(rank ->
                  threads.submit(() -> {
                    Session session = sessions.session(rank);
                    EngineCommunicator world =
                        open(
                            rank == 0 ? late(session, heardOfFirst) : session,
                            transports.get(rank));
                    EngineCommunicator copy = (EngineCommunicator) world.duplicate();
                    if (rank == 0) {
                      assertThatThrownBy(() -> copy.sharedMemory().splitLocal().barrier())
                          .isInstanceOf(AbortedException.class)
                          .hasMessageContaining("rank 2 has closed");
                    } else if (rank == 2) {
                      heardOfFirst.await(30, TimeUnit.SECONDS);
                    }
                    copy.close();
                    world.run(new Collective.Barrier());
                    world.close();
                    return null;
                  }))
              .toList();
      for (Future<?> end : ends) {
        end.get(50, TimeUnit.SECONDS);
      }
    }
  }

  /// That another rank is late makes no close of it.
  @Test
  void nodeBarrier_oneHasLeftAndOneIsLate_leaverIsNamed() {
    List<MemoryTransport> transports = MemoryTransport.group(RANKS, 4096, 16 << 20);
    try (var sessions = InMemorySessions.group(RANKS)) {
      List<EngineCommunicator> worlds =
          sessions.sessions().stream()
              .map(session -> open(session, transports.get(session.rank())))
              .toList();
      worlds.get(2).close();
      sessions.session(2).close();
      assertThatThrownBy(() -> worlds.getFirst().sharedMemory().splitLocal().barrier())
          .isInstanceOfSatisfying(
              PeerFailedException.class, e -> assertThat(e.ranks()).containsExactly(2))
          .hasMessageContaining("left the session");
      worlds.get(1).close();
      worlds.getFirst().close();
    }
  }

  /// Any call among the ranks of a host may be the first.
  @Test
  void register_othersHaveNotCome_isWhatTheWaitIsToldAsPartOf() {
    List<MemoryTransport> transports = MemoryTransport.group(RANKS, 4096, 16 << 20);
    try (var sessions = InMemorySessions.group(RANKS)) {
      EngineCommunicator world =
          open(sessions.session(0), transports.getFirst(), Duration.ofMillis(200));
      assertThatThrownBy(() -> world.gatherInNode("register", CallSignature.Purpose.REGION, 1))
          .isInstanceOf(CollectiveTimeoutException.class)
          .hasMessageContaining("in register of 'world' for rank(s) [1, 2] of its host");
      world.close();
    }
  }

  /// Containers that share everything but their names.
  @Test
  void splitLocal_hostHasTwoNames_isOneHost() throws Exception {
    List<MemoryTransport> transports = MemoryTransport.group(RANKS, 4096, 16 << 20);
    try (var sessions =
            InMemorySessions.group(
                RANKS,
                rank -> new HostIdentity("name-" + rank, rank < RANKS - 1 ? "here" : "there"));
        var threads = Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory())) {
      List<Future<List<Integer>>> found =
          sessions.sessions().stream()
              .map(session ->
                  threads.submit(() -> {
                    EngineCommunicator world = open(session, transports.get(session.rank()));
                    BackendCommunicator local = world.splitLocal();
                    List<Integer> sizes =
                        List.of(
                            world.topology().hosts().size(),
                            local.size(),
                            world.sharedMemory().splitLocal().size());
                    world.run(new Collective.Barrier());
                    world.close();
                    return sizes;
                  }))
              .toList();
      for (int rank = 0; rank < RANKS; rank++) {
        int size = rank < RANKS - 1 ? RANKS - 1 : 1;
        assertThat(found.get(rank).get(30, TimeUnit.SECONDS)).containsExactly(2, size, size);
      }
    }
  }

  private static EngineCommunicator open(Session session, MemoryTransport transport) {
    return open(session, transport, Duration.ofSeconds(20));
  }

  private static EngineCommunicator open(
      Session session, MemoryTransport transport, Duration timeout) {
    CommConfig config = CommConfig.builder().timeout(timeout).build();
    return (EngineCommunicator)
        EngineCommunicator.open("memory", session, transport, transport, config);
  }

  /// A session that shows what rank 1 has given to the meeting only when this rank has heard of its
  /// closing.
  private static Session late(Session session, CountDownLatch heard) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              try {
                Object answer = method.invoke(session, arguments);
                if (method.getName().equals("agree") && ((List<?>) arguments[1]).size() == 1) {
                  heard.countDown();
                }
                return answer;
              } catch (InvocationTargetException e) {
                if (e.getCause() instanceof CollectiveTimeoutException && heard.getCount() == 0) {
                  throw new CollectiveTimeoutException(List.of(2), "rank 2 is missing");
                }
                throw e.getCause();
              }
            });
  }
}
