package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.PointToPoint.SendReceive;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EngineCommunicatorTest {
  /// Else each provider would have to.
  @Test
  void open_badTuning_closesTheTransport(@TempDir Path folder) throws Exception {
    Path tuning = Files.writeString(folder.resolve("tuning"), "allReduce = none-of-ours");
    CommConfig config = CommConfig.builder().tuning(tuning).build();
    var transport = new Counting();
    try (var sessions = InMemorySessions.group(2)) {
      assertThatIllegalArgumentException()
          .isThrownBy(
              () -> EngineCommunicator.open("test", sessions.session(0), transport, null, config))
          .withMessageContaining(tuning.toString());
    }
    assertThat(transport.closes).isEqualTo(1);
  }

  /// As where a peer is to be told that a region is closed, and there is no memory for that.
  @Test
  void close_memoryCanNotBeGivenBack_closesTheTransport() throws Exception {
    var transport = new Counting();
    try (var sessions = InMemorySessions.group(2)) {
      var communicator =
          (EngineCommunicator)
              EngineCommunicator.open(
                  "test", sessions.session(0), transport, null, CommConfig.builder().build());
      Engine engine = communicator.engine();
      try (var _ = engine.lock()) {
        engine.giveBack(() -> {
          throw new TransportFailedException("no space", null);
        });
      }
      communicator.close();
    }
    assertThat(transport.closes).isEqualTo(1);
  }

  /// By another thread of its rank: nothing comes by the transport, which would wake it.
  @ParameterizedTest
  @ValueSource(classes = {Receive.class, Probe.class, SendReceive.class})
  void send_toMyself_wakesWhoWaitsForIt(Class<?> kind) throws Exception {
    var transport = new Sleeping();
    try (var sessions = InMemorySessions.group(2);
        var threads = Executors.newSingleThreadExecutor()) {
      var communicator =
          EngineCommunicator.open(
              "test", sessions.session(0), transport, null, CommConfig.builder().build());
      Future<Boolean> waiting =
          threads.submit(() -> {
            try (Arena own = Arena.ofConfined()) { // so no other thread may receive into it
              CommData data = CommData.of(DataType.INT32, own.allocate(ValueLayout.JAVA_INT));
              Operation awaited =
                  kind == Receive.class
                      ? new Receive(data, 0, 3)
                      : kind == Probe.class
                          ? new Probe(0, 3)
                          : new SendReceive(CommData.of(new int[1]), 0, 4, data, 0, 3);
              return communicator.submit(awaited).await(Long.MAX_VALUE);
            }
          });
      transport.sleeps.orTimeout(20, TimeUnit.SECONDS).join();
      communicator.submit(new Send(CommData.of(7), 0, 3));
      try {
        assertThat(waiting.get(20, TimeUnit.SECONDS)).isTrue();
      } finally {
        transport.wakeUp();
        communicator.close();
      }
    }
  }

  /// Another thread ends the call while its own comes to say that it was interrupted.
  @Test
  void await_interruptedAsTheCallEnds_breaksNothing() throws Exception {
    try (var sessions = InMemorySessions.group(2);
        var threads = Executors.newSingleThreadExecutor()) {
      var communicator =
          (EngineCommunicator)
              EngineCommunicator.open(
                  "test", sessions.session(0), new Counting(), null, CommConfig.builder().build());
      Engine engine = communicator.engine();
      var call = (Call) communicator.submit(new Receive(CommData.of(new int[1]), 1, 3));
      Future<Boolean> waiting;
      try (var _ = engine.lock()) {
        waiting =
            threads.submit(() -> {
              Thread.currentThread().interrupt();
              return call.await(Long.MAX_VALUE);
            });
        for (long start = System.nanoTime();
            !engine.isWanted() && System.nanoTime() - start < 20_000_000_000L; ) {
          Thread.onSpinWait(); // until that thread wants the lock to break the communicator
        }
        call.complete(null);
      }
      assertThat(waiting.get(20, TimeUnit.SECONDS)).isTrue();
      assertThat(communicator.failure()).isNull();
      communicator.close();
    }
  }

  /// Rank 0, to which nothing comes.
  private abstract static class Silent extends OneOfTwo {
    Silent() {
      super(0);
    }

    @Override
    public final boolean offer(int peer, long[] header, MemorySegment payload) {
      return false;
    }

    @Override
    public final int poll(PayloadHandler handler, int limit) {
      return 0;
    }
  }

  /// Sleeps until it is woken.
  private static final class Sleeping extends Silent {
    private final CompletableFuture<Boolean> sleeps = new CompletableFuture<>();
    private final Semaphore wakes = new Semaphore(0);

    @Override
    public void park(long nanos) {
      sleeps.complete(true);
      wakes.acquireUninterruptibly();
    }

    @Override
    public void wakeUp() {
      wakes.release();
    }
  }

  private static final class Counting extends Silent {
    private int closes;

    @Override
    public void close() {
      closes++;
    }
  }
}
