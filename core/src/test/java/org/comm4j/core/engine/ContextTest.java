package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ContextTest {
  private static final int TAG = 3;

  /// Where the session can't be told that a communicator is broken, others may stay whole. What
  /// comes for them then must not go into the memory of a receive that was thrown out of.
  @Test
  void receiveAtOnce_pollThrows_takesNothingLater() {
    try (var sessions = InMemorySessions.group(2)) {
      var engine =
          new Engine(
              "test",
              deaf(sessions.session(0)),
              new Failing(),
              null,
              CommConfig.builder().build(),
              new Selector(Tuning.none()),
              System::nanoTime);
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
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      throw new TransportFailedException("the network is gone", null);
    }
  }
}
