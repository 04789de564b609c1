package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What the thread does that moves along what nobody waits for, where it can't go on for a while.
@Timeout(60)
class ProgressTest {
  private static final long PATIENCE_S = 20;

  private final InMemorySessions sessions = InMemorySessions.group(2);
  private final AtomicInteger turns = new AtomicInteger(); // without memory that are to come
  private boolean closed; // the transport
  private final BackendCommunicator communicator =
      EngineCommunicator.open(
          "test", full(sessions.session(0)), new Full(), null, CommConfig.builder().build());

  @AfterEach
  void close() {
    communicator.close();
    sessions.close();
  }

  @Test
  void onEnd_turnsFindNoMemory_endsAndPeersAreToldOnceThereIsSome() throws Exception {
    Pending receive = communicator.submit(new Receive(CommData.of(new int[1]), 1, 3));
    var peerIsTold = new CompletableFuture<Boolean>();
    var _ = sessions.session(1).onNews(() -> peerIsTold.complete(true));
    var ended = new CompletableFuture<Boolean>();

    turns.set(3);
    receive.onEnd(() -> ended.complete(true));

    assertThat(ended.get(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
    assertThat(communicator.failure())
        .isInstanceOf(TransportFailedException.class)
        .hasRootCauseInstanceOf(OutOfMemoryError.class);
    assertThat(peerIsTold.get(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
    assertThat(sessions.session(1).news().aborts()).hasSize(1);
  }

  @Test
  void close_peersAreNotYetTold_tellsThem() {
    Pending receive = communicator.submit(new Receive(CommData.of(new int[1]), 1, 3));
    turns.set(2); // that of the call, and what peers are told
    assertThatThrownBy(() -> receive.await(Long.MAX_VALUE)).isInstanceOf(OutOfMemoryError.class);
    assertThat(sessions.session(1).news().aborts()).isEmpty();

    communicator.close();

    assertThat(sessions.session(1).news().aborts()).hasSize(1);
  }

  @Test
  void close_stillNoMemory_endsAllTheSame() {
    Pending receive = communicator.submit(new Receive(CommData.of(new int[1]), 1, 3));
    turns.set(3); // as before, and again
    assertThatThrownBy(() -> receive.await(Long.MAX_VALUE)).isInstanceOf(OutOfMemoryError.class);

    assertThatThrownBy(communicator::close).isInstanceOf(OutOfMemoryError.class);

    assertThat(closed).isTrue();
  }

  @Test
  void onEnd_actionBeforeThrows_isCalled() throws Exception {
    Pending receive = communicator.submit(new Receive(CommData.of(new int[1]), 1, 3));
    var ended = new CompletableFuture<Boolean>();
    receive.onEnd(() -> {
      throw new OutOfMemoryError("a test's");
    });
    receive.onEnd(() -> ended.complete(true));

    receive.cancel();

    assertThat(ended.get(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
    assertThat(communicator.failure()).isNull();
  }

  /// Fails in each turn while there is no memory.
  private final class Full extends OneOfTwo {
    Full() {
      super(0);
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      if (turns.get() > 0) {
        throw new OutOfMemoryError("a test's");
      }
      return 0;
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return false;
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  /// The same session, but that it can't tell of an abort while there is no memory.
  private Session full(Session session) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              if (method.getName().equals("abort") && turns.getAndDecrement() > 0) {
                throw new OutOfMemoryError("for what peers are told");
              }
              try {
                return method.invoke(session, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
