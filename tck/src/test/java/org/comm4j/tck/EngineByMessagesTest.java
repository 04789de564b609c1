package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.Callable;
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
import java.util.function.BiFunction;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

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
  void abort_whileAChildIsMade_breaksItOnAllRanksOrOnNone() throws Exception {
    try (LocalGroup group = open(size(), config())) {
      List<Callable<?>> ranks = new ArrayList<>();
      for (Communicator comm : group.communicators()) {
        ranks.add(() -> {
          AbortedChildren.run(comm);
          return comm;
        });
      }
      Bounded.run("making children", bound(), ranks);
    }
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

  /// Whose user-defined operator has nothing to do with it.
  @Test
  @Timeout(60)
  void userDefined_transportThrowsInItsCall_isNotBlamed() {
    var failure = new IllegalArgumentException("on purpose");
    var isBroken = new AtomicBoolean();
    UnaryOperator<Transport> throwing =
        inner ->
            new BrokenWire(inner) {
              @Override
              public boolean offer(int peer, long[] header, MemorySegment payload) {
                if (isBroken.get()) {
                  throw failure;
                }
                return inner.offer(peer, header, payload);
              }
            };
    try (LocalGroup group = open(CommConfig.builder().build(), throwing)) {
      ReduceOp op = ReduceOp.of("innocent", (_, _, _, _) -> {});
      isBroken.set(true);
      assertThatThrownBy(() -> group.communicator(0).allReduce(new long[] {1}, op))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining(": the library threw " + failure)
          .hasCause(failure);
      isBroken.set(false);
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
    Nap nap = new Nap();
    try (LocalGroup group = open(CommConfig.builder().build(), nap.ofRank0(Sleepy::new))) {
      Communicator here = group.communicator(0);
      Communicator there = group.communicator(1);
      CompletableFuture<Communicator> copying = CompletableFuture.supplyAsync(there::duplicate);
      try (Communicator copyHere = here.duplicate();
          Communicator copyThere = copying.get(30, TimeUnit.SECONDS)) {
        nap.begin();
        int[] got = new int[1];
        CompletableFuture<Void> waiting =
            ThreadChecks.async(Thread.ofPlatform(), () -> copyHere.receive(CommData.of(got), 1, 1));
        nap.await();
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

  /// Another thread gets at once what it waits for, and takes only that further.
  @ParameterizedTest
  @EnumSource
  @Timeout(60)
  void call_whosePayloadAnotherThreadTakes_goesOn(Taken taken) throws Exception {
    Nap nap = new Nap();
    CommConfig config = CommConfig.builder().synchronousSend(taken == Taken.GRANT).build();
    try (LocalGroup group = open(config, nap.ofRank0(Sleepy::new))) {
      Communicator here = group.communicator(0);
      Communicator there = group.communicator(1);
      List<Communicator> copies = duplicates(group);
      nap.begin();
      CompletableFuture<Void> waiting =
          ThreadChecks.async(Thread.ofPlatform(), () -> taken.wait(copies.getFirst()));
      nap.await();
      Request peers = taken.start(copies.getLast());
      assertThat(peers.isDone()).isEqualTo(taken != Taken.GRANT); // has sent what is taken
      Request send = there.start(new PointToPoint.Send(CommData.of(new int[1]), 0, 2));
      CompletableFuture<Void> sending = ThreadChecks.async(Thread.ofPlatform(), send::await);
      here.receive(CommData.of(new int[1]), 1, 2);
      ThreadChecks.join("X7", waiting);
      ThreadChecks.join("X7", sending);
      peers.await();
      copies.forEach(Communicator::close);
    }
  }

  /// What rank 0 gets for the call of a thread that sleeps.
  enum Taken {
    PAYLOAD_OF_COLLECTIVE,
    PART_OF_EXCHANGE,
    PART_OF_CONFINED_EXCHANGE,
    GRANT;

    void wait(Communicator here) {
      try (Arena own = Arena.ofConfined()) { // so no other thread may take the call further
        CommData confined = CommData.of(DataType.INT32, own.allocate(ValueLayout.JAVA_INT));
        CommData plain = CommData.of(new int[1]);
        switch (this) {
          case PAYLOAD_OF_COLLECTIVE -> here.barrier();
          case PART_OF_EXCHANGE -> here.sendReceive(plain, 1, CommData.of(new int[1]), 1, 1);
          case PART_OF_CONFINED_EXCHANGE -> here.sendReceive(plain, 1, confined, 1, 1);
          case GRANT -> here.send(confined, 1, 1);
        }
      }
    }

    Request start(Communicator there) {
      CommData plain = CommData.of(new int[1]);
      return there.start(
          switch (this) {
            case PAYLOAD_OF_COLLECTIVE -> new Collective.Barrier();
            case PART_OF_EXCHANGE, PART_OF_CONFINED_EXCHANGE ->
                new PointToPoint.SendReceive(plain, 0, 1, CommData.of(new int[1]), 0, 1);
            case GRANT -> new PointToPoint.Receive(plain, 0, 1);
          });
    }
  }

  /// A barrier comes after what was started before, which somebody takes back.
  @Test
  @Timeout(60)
  void barrier_receiveTakenBackMeanwhile_goesOn() throws Exception {
    Nap nap = new Nap();
    try (LocalGroup group = open(CommConfig.builder().build(), nap.ofRank0(Sleepy::new))) {
      Communicator here = group.communicator(0);
      Request request = receive(here);
      nap.begin();
      CompletableFuture<Void> waiting = ThreadChecks.async(Thread.ofPlatform(), here::barrier);
      nap.await();
      assertThat(request.cancel()).isTrue();
      CompletableFuture<Void> other =
          ThreadChecks.async(Thread.ofPlatform(), group.communicator(1)::barrier);
      waiting.get(30, TimeUnit.SECONDS);
      other.get(30, TimeUnit.SECONDS);
    }
  }

  /// A rank that may be about to make a communicator keeps what comes for it, but knows what it has
  /// closed: here while it could go on with a shrink.
  @Test
  @Timeout(60)
  void receive_fromWhoHasClosedDuringAProposal_isToldAtOnce() throws Exception {
    try (LocalGroup group = open(CommConfig.builder().build(), UnaryOperator.identity())) {
      Communicator here = group.communicator(0);
      List<Communicator> shrinking = duplicates(group);
      Thread.currentThread().interrupt();
      assertThatThrownBy(shrinking.getFirst()::shrink).isInstanceOf(InterruptedCallException.class);
      assertThat(Thread.interrupted()).isTrue();
      List<Communicator> closed = duplicates(group);
      closed.getFirst().close();
      CompletableFuture<Void> waiting =
          ThreadChecks.async(Thread.ofPlatform(), receive(closed.getLast())::await);
      Request other = receive(here);
      for (long start = System.nanoTime();
          !waiting.isDone() && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(20); ) {
        assertThat(other.isDone()).isFalse(); // takes in what has come
      }
      assertThatThrownBy(() -> waiting.get(0, TimeUnit.SECONDS))
          .hasCauseInstanceOf(AbortedException.class)
          .hasMessageContaining("closed");
      other.cancel();
      closed.getLast().close();
      shrinking.forEach(Communicator::close);
    }
  }

  /// The same where the rank has proposed less than others had before.
  @Test
  @Timeout(60)
  void receive_fromWhoHasClosedBeforeAProposal_isToldAtOnce() throws Exception {
    try (LocalGroup group = open(CommConfig.builder().build(), UnaryOperator.identity())) {
      Communicator here = group.communicator(0);
      Communicator there = group.communicator(1);
      CompletableFuture<Communicator> alone =
          CompletableFuture.supplyAsync(() -> there.split(1, 0).orElseThrow());
      here.split(0, 0).orElseThrow().close();
      for (int i = 0; i < 5; i++) {
        alone.get(30, TimeUnit.SECONDS).duplicate().close();
      }
      List<Communicator> closed = duplicates(group);
      closed.getFirst().close();
      CompletableFuture<Communicator> making = CompletableFuture.supplyAsync(here::duplicate);
      CompletableFuture<Void> waiting =
          ThreadChecks.async(Thread.ofPlatform(), receive(closed.getLast())::await);
      assertThatThrownBy(() -> waiting.get(20, TimeUnit.SECONDS))
          .hasCauseInstanceOf(AbortedException.class)
          .hasMessageContaining("closed");
      there.duplicate().close();
      making.get(30, TimeUnit.SECONDS).close();
      alone.get().close();
      closed.getLast().close();
    }
  }

  private static List<Communicator> duplicates(LocalGroup group) throws Exception {
    CompletableFuture<Communicator> other =
        CompletableFuture.supplyAsync(group.communicator(1)::duplicate);
    return List.of(group.communicator(0).duplicate(), other.get(30, TimeUnit.SECONDS));
  }

  /// The progress thread sleeps in such a transport.
  @Test
  @Timeout(60)
  void future_whoseCallAnotherThreadEnds_completes() throws Exception {
    Nap nap = new Nap();
    try (LocalGroup group = open(CommConfig.builder().build(), nap.ofRank0(Sleepy::new))) {
      Communicator here = group.communicator(0);
      Request other = here.start(new PointToPoint.Receive(CommData.of(new int[1]), 1, 2));
      CompletableFuture<Received> future = receive(here).toCompletableFuture();
      nap.begin();
      nap.await();
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
    Nap nap = new Nap();
    Set<Thread> sleepers = ConcurrentHashMap.newKeySet();
    UnaryOperator<Transport> sleepy =
        nap.ofRank0((inner, itsNap) ->
            new Sleepy(inner, itsNap) {
              @Override
              public void park(long nanos) {
                sleepers.add(Thread.currentThread());
                super.park(nanos);
              }
            });
    try (LocalGroup group = open(CommConfig.builder().build(), sleepy)) {
      Request request = receive(group.communicator(0));
      var _ = request.toCompletableFuture();
      nap.begin();
      nap.await();
      sleepers.clear();
      while (!sleepers.contains(Thread.currentThread())) {
        assertThatThrownBy(() -> request.await(Duration.ofMillis(10)))
            .isInstanceOf(TimeoutException.class);
      }
      request.cancel();
    }
  }

  /// A user who has caught an `InterruptedCallException` closes with the flag set. The thread
  /// sleeps on until it is waited for, or has lost its transport.
  @Test
  @Timeout(60)
  void close_ofAnInterruptedThread_waitsForTheProgressThread() throws Exception {
    Nap nap = new Nap();
    Thread closer = Thread.currentThread();
    CompletableFuture<Boolean> closedUnderIt = new CompletableFuture<>();
    UnaryOperator<Transport> sleepy =
        nap.ofRank0((inner, itsNap) ->
            new Sleepy(inner, itsNap) {
              private volatile boolean isOver;

              @Override
              void sleep() {
                Expect.eventually(
                    "L6", "it is over", () -> isJoining(closer) || closedUnderIt.isDone());
                isOver = true;
              }

              @Override
              public void close() {
                closedUnderIt.complete(!isOver);
                super.close();
              }
            });
    try (LocalGroup group = open(CommConfig.builder().build(), sleepy)) {
      Communicator here = group.communicator(0);
      var _ = receive(here).toCompletableFuture();
      nap.begin();
      nap.await();
      Thread.currentThread().interrupt();
      here.close();
      assertThat(Thread.interrupted()).isTrue();
      assertThat(closedUnderIt.get(30, TimeUnit.SECONDS)).isFalse();
    }
  }

  /// It may block for as long as it likes.
  @Test
  @Timeout(60)
  void close_dependentBlocksTheProgressThread_waitsBriefly() throws Exception {
    CountDownLatch isInside = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    try (LocalGroup group = open(CommConfig.builder().build(), UnaryOperator.identity());
        AutoCloseable _ = mayEnd::countDown) {
      Communicator here = group.communicator(0);
      CompletableFuture<Boolean> dependent =
          receive(here)
              .toCompletableFuture()
              .thenApply(_ -> {
                isInside.countDown();
                Expect.eventually("L1", "the close is over", () -> mayEnd.getCount() == 0);
                return true;
              });
      group.communicator(1).send(CommData.of(5), 0, 1);
      assertThat(isInside.await(30, TimeUnit.SECONDS)).isTrue();

      long start = System.nanoTime();
      here.close();

      Promise.CLOSED.keep("L1", "the close", start);
      assertThat(dependent).isNotDone();
    }
  }

  private static boolean isJoining(Thread thread) {
    return Stream.of(thread.getStackTrace())
        .anyMatch(frame ->
            frame.getClassName().equals(Thread.class.getName())
                && frame.getMethodName().equals("join"));
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

  /// A sleep of rank 0 in its transport, from when a test wants it until the rank wakes it.
  private static final class Nap {
    private final AtomicBoolean tired = new AtomicBoolean();
    private final CountDownLatch asleep = new CountDownLatch(1);

    UnaryOperator<Transport> ofRank0(BiFunction<Transport, Nap, Transport> sleepy) {
      return inner -> inner.rank() == 0 ? sleepy.apply(inner, this) : inner;
    }

    void begin() {
      tired.set(true);
    }

    void await() throws InterruptedException {
      assertThat(asleep.await(30, TimeUnit.SECONDS)).isTrue();
    }
  }

  /// Sleeps once, for the nap.
  private static class Sleepy extends BrokenWire {
    private final Nap nap;
    private final Semaphore bell = new Semaphore(0);

    Sleepy(Transport inner, Nap nap) {
      super(inner);
      this.nap = nap;
    }

    @Override
    public void park(long nanos) {
      if (nap.tired.compareAndSet(true, false)) {
        bell.drainPermits();
        nap.asleep.countDown();
        sleep();
      } else {
        super.park(nanos);
      }
    }

    void sleep() {
      bell.acquireUninterruptibly();
    }

    @Override
    public void wakeUp() {
      bell.release();
      super.wakeUp();
    }
  }

  private static Request receive(Communicator comm) {
    int other = 1 - comm.rank();
    return comm.start(new PointToPoint.Receive(CommData.of(new int[1]), other, 1));
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
