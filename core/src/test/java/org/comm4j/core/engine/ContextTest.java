package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class ContextTest {
  private static final int TAG = 3;
  private static final int MORE_THAN_CREDIT = 2 << 20;

  /// Where the session can't be told that a communicator is broken, others may stay whole. What
  /// comes for them then must not go into the memory of a receive that was thrown out of.
  @Test
  void receiveAtOnce_pollThrows_takesNothingLater() {
    try (var sessions = InMemorySessions.group(2)) {
      var engine = engine(deaf(sessions.session(0)), new Failing());
      engine.lock();
      try {
        engine.addContext(0, "world", new int[] {0, 1});
        Context receiving = engine.addContext(2, "copy", new int[] {0, 1});
        int[] data = {7};
        assertThatThrownBy(
                () -> receiving.receiveAtOnce(new PointToPoint.Receive(CommData.of(data), 1, TAG)))
            .hasMessage("the session is lost");
        assertThat(receiving.failure()).isNull();

        long[] header = new long[5];
        Frame.write(
            header, Frame.word(Frame.MESSAGE, 0, TAG, 2), 0, DataType.INT32.id(), data.length, 0);
        boolean kept = receiving.deliver(1, header, MemorySegment.ofArray(new int[] {8}));
        assertThat(data).containsExactly(7);
        assertThat(kept).as("kept for the next receive").isTrue();
      } finally {
        engine.unlock();
      }
    }
  }

  /// Rank 1 has left in order (F11), and has not only closed (F13), however late its goodbye is.
  @Test
  void remove_ofTheLast_isToldByTheSessionAlone() {
    try (var ranks = new Ranks()) {
      Context world = ranks.add(0, 2);
      Context copy = ranks.add(0, 4);
      ranks.add(1, 2);
      ranks.add(1, 4);
      ranks.ask(world);
      ranks.ask(copy);

      ranks.close(1, 4);
      ranks.poll(0);
      assertThat(copy.lacking(List.of(1), "a test")).isInstanceOf(AbortedException.class);

      ranks.close(1, 2);
      ranks.ask(world);
      ranks.poll(0);
      assertThat(world.hasLeft(1)).as("whether it is told of a close").isFalse();

      ranks.leave(1);
      assertThat(world.hasLeft(1)).isTrue();
      assertThat(world.lacking(List.of(1), "a test")).isInstanceOf(PeerFailedException.class);
    }
  }

  /// @param isOfTheEngine or else of a backend, which closes it on its own
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void remove_ofTheLastWithWhatTheLibraryMadeOfIt_isToldByTheSessionAlone(boolean isOfTheEngine) {
    try (var ranks = new Ranks()) {
      ranks.add(0, 2);
      Context node = ranks.add(0, 4);
      Context world = ranks.add(1, 2);
      Context part = ranks.add(1, 4);
      if (isOfTheEngine) {
        world.children().makingTogether(part);
      }
      ranks.ask(node);

      world.beginClose();
      ranks.close(1, 4);
      ranks.poll(0);
      assertThat(node.hasLeft(1)).isFalse();
    }
  }

  /// As another thread does whose close makes a call end.
  @Test
  void close_ofTheLastByLeaveCall_isToldByTheSessionAlone() {
    try (var ranks = new Ranks()) {
      Context world = ranks.add(0, 2);
      Context last = ranks.add(1, 2);
      ranks.ask(world);
      last.close();
      ranks.ask(world);
      ranks.poll(0);
      assertThat(world.hasLeft(1)).isFalse();
    }
  }

  /// The session says more: in the middle of what it has closed.
  @Test
  void remove_duringASend_isToldByTheSessionAlone() {
    try (var ranks = new Ranks()) {
      ranks.add(0, 2);
      ranks.add(1, 2);
      Context receiving = ranks.add(0, 4);
      Context sending = ranks.add(1, 4);
      ranks.ask(receiving);
      var send = new PointToPoint.Send(CommData.of(new byte[MORE_THAN_CREDIT]), 0, TAG);
      sending.start(sending.messages().send(send, true, null), false);

      ranks.close(1, 4);
      ranks.ask(receiving);
      ranks.poll(0);
      assertThat(receiving.hasLeft(1)).as("whether it is told of a close").isFalse();

      ranks.takeNews(0);
      assertThat(receiving.failure()).hasMessageContaining("closed 'test' during send");
    }
  }

  /// Two ranks, moved along by the test.
  private static final class Ranks implements AutoCloseable {
    private final InMemorySessions sessions = InMemorySessions.group(2);
    private final List<Queue<Frames>> queues = List.of(new ArrayDeque<>(), new ArrayDeque<>());
    private final List<Engine> engines =
        IntStream.range(0, 2).mapToObj(rank -> engine(sessions.session(rank), end(rank))).toList();
    private final Map<Context, Engine> made = new LinkedHashMap<>();

    private record Frames(long[] header, byte[] payload) {}

    Context add(int rank, long id) {
      Context added = engines.get(rank).addContext(id, "test", new int[] {0, 1});
      made.put(added, engines.get(rank));
      return added;
    }

    /// Rank 0 asks rank 1 whether it is there.
    void ask(Context of) {
      of.inquiries().ask(1);
      poll(1);
    }

    void poll(int rank) {
      engines.get(rank).poll();
    }

    void takeNews(int rank) {
      engines.get(rank).takeNews();
    }

    void close(int rank, long id) {
      Engine engine = engines.get(rank);
      Context closed =
          made.keySet().stream()
              .filter(each -> each.id() == id && each.engine() == engine)
              .findFirst()
              .orElseThrow();
      engine.remove(closed, new ArrayList<>());
    }

    void leave(int rank) {
      sessions.session(rank).close();
      engines.forEach(Engine::takeNews);
    }

    @Override
    public void close() {
      made.forEach((context, engine) -> engine.remove(context, new ArrayList<>()));
      sessions.close();
    }

    private OneOfTwo end(int rank) {
      return new OneOfTwo(rank) {
        @Override
        public boolean offer(int peer, long[] header, MemorySegment payload) {
          return queues
              .get(peer)
              .add(new Frames(header.clone(), payload.toArray(ValueLayout.JAVA_BYTE)));
        }

        @Override
        public int poll(PayloadHandler handler, int limit) {
          Queue<Frames> queue = queues.get(rank);
          int polled = 0;
          for (Frames next = queue.poll(); next != null; next = queue.poll(), polled++) {
            handler.onPayload(1 - rank, next.header(), MemorySegment.ofArray(next.payload()));
          }
          return polled;
        }
      };
    }
  }

  private static Engine engine(Session session, OneOfTwo transport) {
    return new Engine(
        "test",
        session,
        transport,
        null,
        CommConfig.builder().build(),
        new Selector(Tuning.none()),
        System::nanoTime);
  }

  /// A session that can't tell anybody that a communicator is broken.
  private static Session deaf(Session session) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              if (method.getName().equals("abort")) {
                throw new IllegalStateException("the session is lost");
              }
              try {
                return method.invoke(session, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /// Rank 0 of two, whose polls fail.
  private static final class Failing extends OneOfTwo {
    Failing() {
      super(0);
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      throw new TransportFailedException("the network is gone", null);
    }
  }
}
