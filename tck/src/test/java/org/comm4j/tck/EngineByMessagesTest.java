package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.Request;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The engine on threads, by messages alone.
class EngineByMessagesTest extends CommunicatorContract {
  /// `aeron` runs the whole contract by messages.
  @Override
  protected List<Integer> otherSizes() {
    return List.of(3);
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return MemoryGroups.open(size, config, 1024, 0);
  }

  @Test
  @Timeout(60)
  void future_transportThrowsAnything_failsWithTheCause() throws Exception {
    AtomicReference<Error> thrown = new AtomicReference<>();
    UnaryOperator<Transport> throwing =
        inner ->
            new BrokenWire(inner) {
              @Override
              public int poll(PayloadHandler handler, int limit) {
                if (thrown.get() != null) {
                  throw thrown.get();
                }
                return inner.poll(handler, limit);
              }
            };
    try (LocalGroup group = open(CommConfig.builder().build(), throwing)) {
      Communicator comm = group.communicator(0);
      CompletableFuture<?> future = receive(comm).toCompletableFuture();
      thrown.set(new AssertionError("on purpose"));
      assertThatThrownBy(() -> future.get(30, TimeUnit.SECONDS))
          .isInstanceOf(ExecutionException.class)
          .cause()
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining("on purpose")
          .hasCause(thrown.get());
      assertThat(comm.failure()).containsInstanceOf(TransportFailedException.class);
    }
  }

  @Test
  @Timeout(60)
  void virtualThread_progressThreadHangs_timesOut() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    UnaryOperator<Transport> hanging =
        inner ->
            new BrokenWire(inner) {
              @Override
              public void park(long nanos) {
                try {
                  end.await();
                } catch (InterruptedException _) {
                  Thread.currentThread().interrupt();
                }
              }
            };
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(1)).build();
    try (LocalGroup group = open(config, hanging);
        AutoCloseable _ = end::countDown) {
      CompletableFuture<Void> waiting =
          ThreadChecks.async(Thread.ofVirtual(), () -> receive(group.communicator(0)).await());
      assertThatThrownBy(() -> waiting.get(30, TimeUnit.SECONDS))
          .hasCauseInstanceOf(CollectiveTimeoutException.class);
    }
  }

  /// One thread waits in a transport that wakes it only when told to, and another one takes in what
  /// it waits for.
  @Test
  @Timeout(60)
  void call_endedByAnotherThread_wakesItsOwn() throws Exception {
    AtomicBoolean tired = new AtomicBoolean();
    CountDownLatch asleep = new CountDownLatch(1);
    UnaryOperator<Transport> sleepy =
        inner -> inner.rank() == 0 ? new Sleepy(inner, tired, asleep) : inner;
    try (LocalGroup group = open(CommConfig.builder().build(), sleepy)) {
      Communicator here = group.communicator(0);
      Communicator there = group.communicator(1);
      CompletableFuture<Communicator> copying = CompletableFuture.supplyAsync(there::duplicate);
      try (Communicator copyHere = here.duplicate();
          Communicator copyThere = copying.get(30, TimeUnit.SECONDS)) {
        tired.set(true);
        int[] got = new int[1];
        CompletableFuture<Void> waiting =
            ThreadChecks.async(Thread.ofPlatform(), () -> copyHere.receive(CommData.of(got), 1, 1));
        assertThat(asleep.await(30, TimeUnit.SECONDS)).isTrue();
        CompletableFuture<Void> sending =
            ThreadChecks.async(
                Thread.ofPlatform(),
                () -> {
                  copyThere.send(CommData.of(5), 0, 1);
                  there.barrier();
                });
        here.barrier();
        sending.get(30, TimeUnit.SECONDS);
        waiting.get(30, TimeUnit.SECONDS);
        assertThat(got).containsExactly(5);
      }
    }
  }

  /// The progress thread sleeps in such a transport.
  @Test
  @Timeout(60)
  void future_whoseCallAnotherThreadEnds_completes() throws Exception {
    AtomicBoolean tired = new AtomicBoolean();
    CountDownLatch asleep = new CountDownLatch(1);
    UnaryOperator<Transport> sleepy =
        inner -> inner.rank() == 0 ? new Sleepy(inner, tired, asleep) : inner;
    try (LocalGroup group = open(CommConfig.builder().build(), sleepy)) {
      Communicator here = group.communicator(0);
      Request other = here.start(new PointToPoint.Receive(CommData.of(new int[1]), 1, 2));
      CompletableFuture<Received> future = receive(here).toCompletableFuture();
      tired.set(true);
      assertThat(asleep.await(30, TimeUnit.SECONDS)).isTrue();
      group.communicator(1).send(CommData.of(5), 0, 1);
      assertThat(other.isDone()).isFalse(); // takes in what has come

      assertThat(future.get(10, TimeUnit.SECONDS)).isEqualTo(new Received(1, 1, 1));
      other.cancel();
    }
  }

  /// The progress thread sleeps in such a transport, and nobody else could.
  @Test
  @Timeout(60)
  void await_whileTheProgressThreadSleeps_sleepsInItsPlace() throws Exception {
    AtomicBoolean tired = new AtomicBoolean();
    CountDownLatch asleep = new CountDownLatch(1);
    Set<Thread> sleepers = ConcurrentHashMap.newKeySet();
    UnaryOperator<Transport> sleepy =
        inner ->
            inner.rank() == 0
                ? new Sleepy(inner, tired, asleep) {
                  @Override
                  public void park(long nanos) {
                    sleepers.add(Thread.currentThread());
                    super.park(nanos);
                  }
                }
                : inner;
    try (LocalGroup group = open(CommConfig.builder().build(), sleepy)) {
      Request request = receive(group.communicator(0));
      var _ = request.toCompletableFuture();
      tired.set(true);
      assertThat(asleep.await(30, TimeUnit.SECONDS)).isTrue();
      sleepers.clear();
      while (!sleepers.contains(Thread.currentThread())) {
        assertThatThrownBy(() -> request.await(Duration.ofMillis(10)))
            .isInstanceOf(TimeoutException.class);
      }
      request.cancel();
    }
  }

  /// A user who has caught an `InterruptedCallException` closes with the flag set.
  @Test
  @Timeout(60)
  void close_ofAnInterruptedThread_waitsForTheProgressThread() throws Exception {
    AtomicBoolean tired = new AtomicBoolean();
    CountDownLatch asleep = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    CompletableFuture<Boolean> closedUnderIt = new CompletableFuture<>();
    UnaryOperator<Transport> sleepy =
        inner ->
            inner.rank() == 0
                ? new Sleepy(inner, tired, asleep) {
                  @Override
                  public void park(long nanos) {
                    boolean sleeps = tired.get();
                    super.park(nanos);
                    if (sleeps) {
                      closedUnderIt.complete(await(closed, 200));
                    }
                  }

                  @Override
                  public void close() {
                    closed.countDown();
                    super.close();
                  }
                }
                : inner;
    try (LocalGroup group = open(CommConfig.builder().build(), sleepy)) {
      Communicator here = group.communicator(0);
      var _ = receive(here).toCompletableFuture();
      tired.set(true);
      assertThat(asleep.await(30, TimeUnit.SECONDS)).isTrue();
      Thread.currentThread().interrupt();
      here.close();
      assertThat(Thread.interrupted()).isTrue();
      assertThat(closedUnderIt.get(30, TimeUnit.SECONDS)).isFalse();
    }
  }

  private static boolean await(CountDownLatch latch, long millis) {
    try {
      return latch.await(millis, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  @Timeout(60)
  void await_shortTime_sleepsNoLonger() {
    Duration time = Duration.ofMillis(2);
    Queue<Long> sleeps = new ConcurrentLinkedQueue<>();
    UnaryOperator<Transport> noting =
        inner ->
            new BrokenWire(inner) {
              @Override
              public void park(long nanos) {
                sleeps.add(nanos);
                super.park(nanos);
              }
            };
    try (LocalGroup group = open(CommConfig.builder().build(), noting)) {
      Request request = receive(group.communicator(0));
      sleeps.clear(); // those of opening
      for (int i = 0; i < 50; i++) {
        assertThatThrownBy(() -> request.await(time)).isInstanceOf(TimeoutException.class);
      }
      assertThat(sleeps).isNotEmpty().allMatch(nanos -> nanos <= time.toNanos());
      assertThat(request.cancel()).isTrue();
    }
  }

  @Test
  @Timeout(60)
  void calls_manyWaitForLong_areOneWarning() {
    AtomicLong later = new AtomicLong();
    try (LocalGroup group = open(() -> System.nanoTime() + later.get());
        var log = new LogLines("org.comm4j.core.engine")) {
      Communicator comm = group.communicator(0);
      List<Request> requests = Stream.generate(() -> receive(comm)).limit(20).toList();
      later.set(TimeUnit.SECONDS.toNanos(31));
      for (int i = 0; i < 20; i++) {
        assertThatThrownBy(() -> requests.getLast().await(Duration.ofMillis(25)))
            .isInstanceOf(TimeoutException.class);
      }
      assertThat(log.lines())
          .singleElement()
          .asString()
          .matches(
              "rank 0 has waited 3\\d s in receive.*, and in 19 other call.s., of 'world' for .*");
      requests.forEach(Request::cancel);
    }
  }

  /// Sleeps once, when told to, until this rank wakes it.
  private static class Sleepy extends BrokenWire {
    private final AtomicBoolean tired;
    private final CountDownLatch asleep;
    private final Semaphore bell = new Semaphore(0);

    Sleepy(Transport inner, AtomicBoolean tired, CountDownLatch asleep) {
      super(inner);
      this.tired = tired;
      this.asleep = asleep;
    }

    @Override
    public void park(long nanos) {
      if (tired.compareAndSet(true, false)) {
        bell.drainPermits();
        asleep.countDown();
        bell.acquireUninterruptibly();
      } else {
        super.park(nanos);
      }
    }

    @Override
    public void wakeUp() {
      bell.release();
      super.wakeUp();
    }
  }

  private static Request receive(Communicator comm) {
    return comm.start(new PointToPoint.Receive(CommData.of(new int[1]), 1, 1));
  }

  private static LocalGroup open(LongSupplier clock) {
    List<MemoryTransport> transports = MemoryTransport.group(2, 1024, 0);
    return ThreadGroups.open(
        2,
        session ->
            EngineCommunicator.open(
                "memory",
                session,
                transports.get(session.rank()),
                null,
                CommConfig.builder().build(),
                new Selector(Tuning.none()),
                clock));
  }

  private static LocalGroup open(CommConfig config, UnaryOperator<Transport> wire) {
    return MemoryGroups.open(2, config, 1024, 0, wire, UnaryOperator.identity());
  }
}
