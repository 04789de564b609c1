package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.spi.CallListener;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(20)
class CheckedCommunicatorTest {
  private final FakeCommunicator backend = new FakeCommunicator(1, 4, "fake-net");
  private final AtomicInteger ended = new AtomicInteger();
  private final CountDownLatch collected = new CountDownLatch(1);
  private final LaunchScope scope = new LaunchScope(ended::incrementAndGet);
  private final Communicator comm = new CheckedCommunicator(backend, scope, CallListeners.NONE);

  // --- arguments ---

  @Test
  void run_wrongRoot_neverReachesTheBackend() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> comm.broadcast(new float[2], 7))
        .withMessageContaining("root: 7")
        .withMessageContaining("0..3");
    assertThat(backend.calls).isEmpty();
    comm.broadcast(new float[2], 3);
    assertThat(backend.calls).containsExactly("broadcast");
  }

  @Test
  @SuppressWarnings("NullAway")
  void argument_null_isRefusedByItsNameAndNeverReachesTheBackend() {
    float[] one = {1};
    double[] two = {1};
    CommData data = CommData.of(one);
    assertNull("operation", () -> comm.run(null));
    assertNull("operation", () -> comm.start(null));
    assertNull("operation", () -> comm.prepare(null));
    assertNull("data", () -> comm.allReduce((float[]) null, ReduceOp.SUM));
    assertNull("data", () -> comm.reduce((double[]) null, ReduceOp.SUM, 0));
    assertNull("data", () -> comm.broadcast((byte[]) null, 0));
    assertNull("input", () -> comm.allGather((float[]) null, one));
    assertNull("output", () -> comm.allGather(two, null));
    assertNull("input", () -> comm.reduceScatter((float[]) null, one, ReduceOp.SUM));
    assertNull("output", () -> comm.reduceScatter(two, null, ReduceOp.SUM));
    assertNull("counts", () -> comm.allGatherV(data, data, (long[]) null));
    assertNull("parts", () -> comm.allGatherV(data, data, (Partition) null));
    assertNull("displacements", () -> comm.allGatherV(data, data, new long[4], null));
    assertNull("counts", () -> comm.reduceScatterV(data, (long[]) null, data, ReduceOp.SUM));
    assertNull("parts", () -> comm.reduceScatterV(data, (Partition) null, data, ReduceOp.SUM));
    assertNull("counts", () -> comm.allToAllV(data, new long[4], data, null));
    assertNull("input", () -> comm.sendReceive(data, 0, null, 0, 0));
    assertNull("output", () -> comm.sendReceive(null, 0, data, 0, 0));
    assertNull("type", () -> comm.allocate(null, 1));
    assertNull("reason", () -> comm.abort(null));
    assertThat(backend.calls).isEmpty();
    assertThat(comm.failure()).isEmpty();
  }

  private static void assertNull(String name, ThrowingCallable call) {
    assertThatNullPointerException().isThrownBy(call).withMessage(name);
  }

  @Test
  void run_closedArena_isRefusedByName() {
    Arena arena = Arena.ofShared();
    CommData data = CommData.of(DataType.FLOAT32, arena.allocate(16));
    arena.close();

    assertThatIllegalArgumentException()
        .isThrownBy(() -> comm.broadcast(data, 0))
        .withMessageContaining("data: FLOAT32 × 4")
        .withMessageContaining("closed");
    assertThat(backend.calls).isEmpty();
  }

  @Test
  void run_confinedArena_isFineOnItsThreadOnly() throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      CommData data = CommData.of(DataType.FLOAT32, arena.allocate(16));
      comm.broadcast(data, 0);

      assertThat(onThread("other", () -> comm.broadcast(data, 0)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("confined to another thread than 'other'");
    }
    assertThat(backend.calls).containsExactly("broadcast");
  }

  @Test
  void run_sameRecordAgain_isRefusedOnceItsMemoryIsClosed() {
    Arena arena = Arena.ofShared();
    var operation = new Collective.Broadcast(CommData.of(DataType.FLOAT32, arena.allocate(16)), 0);
    comm.run(operation);
    comm.run(operation);
    arena.close();

    assertThatIllegalArgumentException()
        .isThrownBy(() -> comm.run(operation))
        .withMessageContaining("closed");
    assertThat(backend.calls).containsExactly("broadcast", "broadcast");
  }

  @Test
  void run_sameWrongRecordAgain_isRefusedAgain() {
    var operation = new Collective.Broadcast(CommData.of(new float[2]), 7);

    for (int call = 0; call < 3; call++) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> comm.run(operation))
          .withMessageContaining("root: 7");
    }
    assertThat(backend.calls).isEmpty();
  }

  @Test
  void start_confinedArena_isRefused() {
    try (Arena arena = Arena.ofConfined()) {
      var operation =
          new Collective.Broadcast(CommData.of(DataType.FLOAT32, arena.allocate(16)), 0);
      PersistentRequest prepared = comm.prepare(operation);

      assertThatIllegalArgumentException()
          .isThrownBy(() -> comm.start(operation))
          .withMessageContaining("confined arena")
          .withMessageContaining("fine in blocking calls");
      assertThatIllegalArgumentException().isThrownBy(prepared::start);
      prepared.run();
    }
    assertThat(backend.calls).containsExactly("broadcast");
  }

  @Test
  void run_memoryThatTheRankIgnores_isNotChecked() {
    Arena arena = Arena.ofShared();
    CommData closed = CommData.of(DataType.FLOAT32, arena.allocate(16));
    arena.close();

    comm.reduce(CommData.of(new float[4]), closed, ReduceOp.SUM, 0);

    assertThat(backend.calls).containsExactly("reduce");
  }

  @Test
  void run_deviceData_isUnsupportedInTheHost() {
    CommData data = CommData.ofUnsafeDeviceAddress(DataType.FLOAT32, 4096, 4, 0);

    assertThatExceptionOfType(UnsupportedException.class)
        .isThrownBy(() -> comm.broadcast(data, 0))
        .withMessageContaining("fake-net");
    assertThat(comm.failure()).isEmpty();
  }

  @Test
  void split_negativeColor_isRefused() {
    assertThatIllegalArgumentException().isThrownBy(() -> comm.split(-2, 0));
    assertThat(comm.split(Communicator.NO_COLOR, 0)).isEmpty();
  }

  // --- threads ---

  @Test
  void run_whileAnotherThreadIsInside_namesBothThreads() throws Exception {
    var inside = new CountDownLatch(1);
    var leave = new CountDownLatch(1);
    backend.onRun =
        _ -> {
          inside.countDown();
          awaitUninterruptibly(leave);
          return null;
        };
    var first = new FutureTask<>(() -> comm.broadcast(new float[1], 0), true);
    Thread.ofPlatform().name("first").start(first);
    awaitUninterruptibly(inside);

    assertThat(onThread("second", () -> comm.allReduce(1.0, ReduceOp.SUM)))
        .isInstanceOf(ConcurrentUseException.class)
        .hasMessageContaining("'first'")
        .hasMessageContaining("'second'")
        .hasMessageContaining("allReduce");

    leave.countDown();
    assertThat(first.get()).isTrue();
    backend.onRun = _ -> null;
    comm.broadcast(new float[1], 0);
    assertThat(comm.failure()).isEmpty();
  }

  @Test
  void run_fromInsideAnOperator_saysSo() {
    List<Throwable> thrown = new ArrayList<>();
    Request request = comm.start(new Collective.Broadcast(CommData.of(new float[1]), 0));
    backend.onRun =
        _ -> {
          thrown.add(catchThrowable(comm::sync));
          thrown.add(catchThrowable(request::await));
          thrown.add(catchThrowable(comm::close));
          assertThat(request.isDone()).isFalse();
          return null;
        };

    comm.broadcast(new float[1], 0);

    assertThat(thrown)
        .hasSize(3)
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOf(ConcurrentUseException.class)
                .hasMessageContaining("inside")
                .hasMessageContaining("operator"));
    assertThat(comm.isClosed()).isFalse();
  }

  @Test
  void run_fromWhatDependsOnAFuture_saysSo() {
    Request request = comm.start(new Collective.Broadcast(CommData.of(new float[1]), 0));
    List<Throwable> thrown = new ArrayList<>();
    var future =
        request.toCompletableFuture().thenRun(() -> thrown.add(catchThrowable(comm::barrier)));
    backend.pending().end(null);

    future.join();
    assertThat(thrown).singleElement().isInstanceOf(ConcurrentUseException.class);
    comm.barrier();
  }

  /// What depends on one future may end another request, and another thread may do so too.
  @Test
  void call_fromWhatDependsOnAFutureWhileOthersComplete_isRefused() {
    Request outer = comm.start(new Collective.Barrier());
    Request inner = comm.start(new Collective.Barrier());
    Request other = comm.start(new Collective.Barrier());
    List<Throwable> thrown = new ArrayList<>();
    var _ = inner.toCompletableFuture();
    var _ = other.toCompletableFuture();
    var _ =
        outer
            .toCompletableFuture()
            .thenRun(() -> {
              backend.pendings.get(1).end(null);
              thrown.add(catchThrowable(comm::barrier));
              CompletableFuture.runAsync(() -> backend.pendings.get(2).end(null)).join();
              thrown.add(catchThrowable(comm::barrier));
            });

    backend.pendings.get(0).end(null);

    assertThat(inner.isDone()).isTrue();
    assertThat(other.isDone()).isTrue();
    assertThat(thrown).hasSize(2).hasOnlyElementsOfType(ConcurrentUseException.class);
    comm.barrier();
  }

  @Test
  void call_whoseBackendRefusesToSayWhetherItFailed_letsOthersIn() {
    var refusal = new ConcurrentUseException("from an operator");
    var refusing = new AtomicInteger(1);
    var asked =
        new FakeCommunicator(0, 1, "fake") {
          @Override
          public @Nullable CommException failure() {
            if (refusing.getAndDecrement() > 0) {
              throw refusal;
            }
            return null;
          }
        };
    Communicator other = new CheckedCommunicator(asked, scope, CallListeners.NONE);

    assertThat(catchThrowable(other::barrier)).isSameAs(refusal);
    other.barrier();
    other.close();

    assertThat(asked.calls).containsExactly("sync", "barrier", "close");
  }

  // --- failures ---

  @Test
  void run_broken_throwsTheSameExceptionWithoutTheBackend() {
    var failure = new PeerFailedException(List.of(2), List.of(2), "gone", null);
    backend.failure = failure;

    assertThatThrownBy(() -> comm.broadcast(new float[1], 0)).isSameAs(failure);
    assertThatThrownBy(comm::barrier).isSameAs(failure);
    assertThatThrownBy(comm::duplicate).isSameAs(failure);
    assertThat(backend.calls).isEmpty();
    assertThat(comm.failure()).containsSame(failure);
  }

  @Test
  void shrink_broken_works() {
    backend.failure = new PeerFailedException(List.of(2), List.of(2), "gone", null);

    Shrunk shrunk = comm.shrink();

    assertThat(shrunk.oldRanks()).containsExactly(1);
    comm.close();
    assertThat(ended).hasValue(0);
    shrunk.communicator().barrier();
    shrunk.communicator().close();
    assertThat(ended).hasValue(1);
  }

  @Test
  void run_outOfMemory_breaksTheCommunicatorForTheOthersToo() {
    var error = new OutOfMemoryError("test");
    backend.onRun =
        _ -> {
          throw error;
        };

    assertThatThrownBy(() -> comm.broadcast(new float[1], 0)).isSameAs(error);

    assertThat(backend.calls).containsExactly("broadcast", "abort");
    assertThat(comm.failure().orElseThrow())
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("OutOfMemoryError")
        .hasCause(error);
  }

  @Test
  void run_refusedByTheBackend_leavesItUsable() {
    backend.onRun =
        _ -> {
          throw new UnsupportedException("no");
        };

    assertThatExceptionOfType(UnsupportedException.class)
        .isThrownBy(() -> comm.broadcast(new float[1], 0));

    assertThat(comm.failure()).isEmpty();
  }

  @Test
  void allocate_noSpace_leavesItUsable() {
    assertThatExceptionOfType(TransportFailedException.class)
        .isThrownBy(() -> comm.allocate(DataType.FLOAT32, 8));
    assertThatIllegalArgumentException().isThrownBy(() -> comm.allocate(DataType.FLOAT32, -1));
    assertThat(comm.failure()).isEmpty();
  }

  @Test
  void abort_whileAnotherThreadIsInside_endsItsCall() throws Exception {
    var inside = new CountDownLatch(1);
    waitForFailureInside(inside);
    var call = new FutureTask<>(() -> catchThrowable(() -> comm.broadcast(new float[1], 0)));
    Thread.ofPlatform().start(call);
    awaitUninterruptibly(inside);

    comm.abort("enough");

    assertThat(call.get())
        .isInstanceOf(AbortedException.class)
        .hasMessage("rank 1 aborted the communicator: enough");
    comm.abort("twice");
    assertThat(comm.failure().orElseThrow()).hasMessageContaining("enough");
  }

  @Test
  void abortProcess_checksTheCode() {
    assertThatIllegalArgumentException().isThrownBy(() -> comm.abortProcess(0));
    comm.abortProcess(3);
    assertThat(backend.calls).containsExactly("abortProcess 3");
  }

  // --- order ---

  @Test
  void barrier_completesWhatWasStartedFirst() {
    comm.barrier();
    assertThat(backend.calls).containsExactly("sync", "barrier");
  }

  @Test
  void receive_givesWhatTheBackendGot() {
    backend.onRun = _ -> new Received(3, 9, 2);
    assertThat(comm.receive(CommData.of(new float[2]), Communicator.ANY_SOURCE, 9))
        .isEqualTo(new Received(3, 9, 2));
    assertThat(comm.probe(3, 9).count()).isEqualTo(2);
  }

  // --- the end ---

  @Test
  void close_twice_reachesTheBackendOnce() {
    comm.close();
    comm.close();

    assertThat(backend.calls).containsExactly("close");
    assertThat(comm.isClosed()).isTrue();
    assertThat(ended).hasValue(1);
  }

  @Test
  void closed_everyCall_isAClosedException() {
    Request request = comm.start(new Collective.Barrier());
    PersistentRequest prepared = comm.prepare(new Collective.Barrier());
    backend.pending().end(null);
    comm.close();

    for (Runnable call :
        List.<Runnable>of(
            comm::barrier,
            comm::sync,
            comm::duplicate,
            comm::shrink,
            comm::topology,
            comm::sharedMemory,
            prepared::run,
            prepared::start,
            () -> comm.allocate(DataType.INT8, 1),
            () -> comm.abortProcess(1))) {
      assertThatExceptionOfType(ClosedException.class)
          .isThrownBy(call::run)
          .withMessageContaining("communicator 'fake' (rank 1 of 4, backend 'fake-net') is closed");
    }
    request.await();
    comm.abort("late");
    assertThat(comm.failure()).isEmpty();
    assertThat(comm.rank()).isEqualTo(1);
    assertThat(comm.capabilities().supports(Capability.SPLIT)).isTrue();
  }

  @Test
  void streamSync_reachesABrokenBackendButNoClosedOne() {
    assertThat(comm.streamSync()).isEmpty();
    List<String> calls = new ArrayList<>();
    StreamSync.Event event = () -> calls.add("close");
    backend.streamSync =
        (StreamSync)
            Proxy.newProxyInstance(
                StreamSync.class.getClassLoader(),
                new Class<?>[] {StreamSync.class},
                (_, method, _) -> {
                  calls.add(method.getName());
                  return method.getName().equals("createEvent") ? event : null;
                });
    StreamSync sync = comm.streamSync().orElseThrow();
    assertThat(comm.streamSync()).containsSame(sync);
    List<ThrowingCallable> all =
        List.of(
            sync::createEvent,
            () -> sync.record(event, 7),
            () -> sync.recordOnCommunicator(event),
            () -> sync.communicatorWait(event),
            () -> sync.streamWait(7, event));

    assertThat(all).allSatisfy(call -> assertThat(catchThrowable(call)).isNull());
    comm.abort("broken");
    assertThat(all).allSatisfy(call -> assertThat(catchThrowable(call)).isNull());
    comm.close();

    assertThat(all)
        .allSatisfy(call -> assertThat(catchThrowable(call)).isInstanceOf(ClosedException.class));
    assertThat(catchThrowable(sync::sync)).isInstanceOf(ClosedException.class);
    assertThat(calls)
        .hasSize(2 * all.size())
        .startsWith("createEvent", "record", "recordOnCommunicator", "communicatorWait")
        .endsWith("streamWait");
  }

  @Test
  void close_pendingOperation_isGivenTimeAndThenEndsWithClosed() {
    Request request = comm.start(new Collective.Broadcast(CommData.of(new float[1]), 0));
    var future = request.toCompletableFuture();

    comm.close();

    // 0.3 s are for other threads, 0.8 s the backend's and 0.5 s the session's
    assertThat(backend.pending().askedNanos).isBetween(1L, TimeUnit.MILLISECONDS.toNanos(400));
    assertThatExceptionOfType(ClosedException.class)
        .isThrownBy(request::await)
        .withMessageContaining("broadcast");
    assertThat(request.isDone()).isTrue();
    assertThat(future).isCompletedExceptionally();
    assertThat(backend.calls).endsWith("close");
  }

  /// Nobody can tell how long its message would take, and no peer needs it.
  @ParameterizedTest
  @MethodSource("arrivals")
  void close_unmatchedArrival_endsWithClosedWithoutAWait(Operation arrival) {
    Request request = comm.start(arrival);
    var future = request.toCompletableFuture();

    comm.close();

    assertThat(backend.pending().askedNanos).isZero();
    assertThatExceptionOfType(ClosedException.class)
        .isThrownBy(request::await)
        .withMessageContaining(arrival.label());
    assertThat(future).isCompletedExceptionally();
    assertThat(backend.calls).endsWith("close");
  }

  static Stream<Operation> arrivals() {
    return Stream.of(
        new PointToPoint.Receive(CommData.of(new float[1]), 1, 3), new PointToPoint.Probe(1, 3));
  }

  /// Or a message that comes meanwhile would go to one that is behind the one it is for.
  @Test
  void close_severalReceives_takesTheLastBackFirst() {
    List<Integer> looked = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int number = i;
      comm.start(new PointToPoint.Receive(CommData.of(new float[1]), 1, 3));
      backend.pendings.getLast().whenLookedAt(() -> looked.add(number));
    }

    comm.close();

    assertThat(looked).hasSize(40).isSortedAccordingTo(Comparator.reverseOrder());
  }

  @Test
  void close_backendFailsToTakeAReceiveBack_closesAllTheSame() {
    Request request = comm.start(new PointToPoint.Receive(CommData.of(new float[1]), 1, 3));
    backend
        .pending()
        .whenLookedAt(() -> {
          throw new IllegalStateException("a test's");
        });

    comm.close();

    assertThat(backend.calls).endsWith("close");
    assertThatThrownBy(request::await).hasStackTraceContaining("a test's");
  }

  @Test
  void close_matchedReceive_isGivenTime() {
    Request request = comm.start(new PointToPoint.Receive(CommData.of(new float[1]), 1, 3));
    backend.pending().match();
    backend.pending().whenAwaited(() -> backend.pending().end(null));

    comm.close();

    request.await();
  }

  @Test
  void close_receiveWhoseMessageIsThere_endsWell() {
    Request request = comm.start(new PointToPoint.Receive(CommData.of(new float[1]), 1, 3));
    backend.pending().whenLookedAt(() -> backend.pending().end(null));

    comm.close();

    request.await();
  }

  /// What others wait for goes first, and its message may come meanwhile.
  @Test
  void close_receiveBesideACollective_isGivenItsTime() {
    Request receive = comm.start(new PointToPoint.Receive(CommData.of(new float[1]), 1, 3));
    Request broadcast = comm.start(new Collective.Broadcast(CommData.of(new float[1]), 0));
    backend
        .pendings
        .getLast()
        .whenAwaited(() -> {
          backend.pendings.getFirst().end(null);
          backend.pendings.getLast().end(null);
        });

    comm.close();

    broadcast.await();
    receive.await();
  }

  @Test
  void close_otherThreadAwaitsAReceive_endsItWithClosed() throws Exception {
    Request request = comm.start(new PointToPoint.Receive(CommData.of(new float[1]), 1, 3));
    var awaited = new CountDownLatch(1);
    backend.pending().whenAwaited(awaited::countDown);
    var waiting = new FutureTask<>(() -> catchThrowable(request::await));
    Thread.ofPlatform().start(waiting);
    awaitUninterruptibly(awaited);

    comm.close();

    assertThat(waiting.get(20, TimeUnit.SECONDS)).isInstanceOf(ClosedException.class);
    assertThat(backend.pending().isDone()).isTrue(); // it was taken back
  }

  /// A backend's wait that sees the flag breaks the communicator for all.
  @Test
  void close_interrupted_isTheSameAndKeepsTheFlag() {
    Request request = comm.start(new Collective.Barrier());
    Thread.currentThread().interrupt();

    comm.close();

    assertThat(Thread.interrupted()).isTrue();
    assertThatExceptionOfType(ClosedException.class).isThrownBy(request::await).withNoCause();
  }

  @Test
  void close_pendingOperationThatEndsInTime_endsWell() {
    Request request = comm.start(new Collective.Broadcast(CommData.of(new float[1]), 0));
    backend.pending().whenAwaited(() -> backend.pending().end(null));

    comm.close();

    request.await();
    assertThat(request.isDone()).isTrue();
  }

  @Test
  void close_whileAnotherThreadIsInside_endsItsCall() throws Exception {
    var inside = new CountDownLatch(1);
    waitForFailureInside(inside);
    var call = new FutureTask<>(() -> catchThrowable(() -> comm.broadcast(new float[1], 0)));
    Thread.ofPlatform().name("waiter").start(call);
    awaitUninterruptibly(inside);

    comm.close();

    assertThat(call.get())
        .isInstanceOf(ClosedException.class)
        .cause()
        .hasMessageContaining("while thread 'waiter' was in a call");
    assertThat(backend.calls).containsExactly("broadcast", "abort", "close");
  }

  /// It is one of the communicator's calls, whoever has the region.
  @Test
  void fence_ofTwoThreads_refusesTheSecondAndEndsWithTheClose() throws Exception {
    var inside = new CountDownLatch(1);
    backend.sharedMemory =
        (SharedMemoryProvider)
            Proxy.newProxyInstance(
                SharedMemoryProvider.class.getClassLoader(),
                new Class<?>[] {SharedMemoryProvider.class},
                (_, _, _) -> region(inside));
    SharedRegion<HostData> region = comm.sharedMemory().createRegion(DataType.INT8, 1);
    var call = new FutureTask<>(() -> catchThrowable(region::fence));
    Thread.ofPlatform().name("waiter").start(call);
    awaitUninterruptibly(inside);

    for (ThrowingCallable second : List.<ThrowingCallable>of(region::fence, comm::barrier)) {
      assertThatExceptionOfType(ConcurrentUseException.class)
          .isThrownBy(second)
          .withMessageContaining("'waiter'")
          .withMessageContaining(Thread.currentThread().getName());
    }
    assertThat(call.isDone()).isFalse();
    comm.close();

    assertThat(call.get()).isInstanceOf(ClosedException.class).hasMessageContaining("fence");
    region.close();
    assertThat(backend.calls).containsExactly("fence", "abort", "close", "close");
  }

  /// One whose first fence waits until the communicator breaks.
  private Object region(CountDownLatch inside) {
    return Proxy.newProxyInstance(
        SharedRegion.class.getClassLoader(),
        new Class<?>[] {SharedRegion.class},
        (_, method, _) -> {
          backend.calls.add(method.getName());
          if (method.getName().equals("fence") && inside.getCount() > 0) {
            waitForFailureInside(inside);
            return backend.onRun.apply(new Collective.Barrier());
          }
          return null;
        });
  }

  @Test
  void close_whileAnotherThreadDoesNotLeave_isLeftToIt() throws Exception {
    var inside = new CountDownLatch(1);
    var leave = new CountDownLatch(1);
    backend.onRun =
        _ -> {
          inside.countDown();
          awaitUninterruptibly(leave);
          Thread.currentThread().interrupt();
          return null;
        };
    var call =
        new FutureTask<>(() -> {
          comm.broadcast(new float[1], 0);
          return Thread.currentThread().isInterrupted();
        });
    Thread.ofPlatform().start(call);
    awaitUninterruptibly(inside);

    comm.close();
    assertThat(backend.calls).doesNotContain("close");
    leave.countDown();
    assertThat(call.get()).isTrue();

    assertThat(backend.calls).endsWith("close");
    assertThat(ended).hasValue(1);
  }

  @Test
  void close_whileAnotherThreadAwaits_wakesIt() throws Exception {
    Request request = comm.start(new Collective.Broadcast(CommData.of(new float[1]), 0));
    var call = new FutureTask<>(() -> catchThrowable(request::await));
    Thread thread = Thread.ofPlatform().start(call);
    while (thread.isAlive() && thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }

    comm.close();

    assertThat(call.get()).isInstanceOf(ClosedException.class);
  }

  @Test
  void close_child_leavesTheLaunchToTheOthers() {
    Communicator child = comm.duplicate();
    comm.close();
    assertThat(ended).hasValue(0);
    child.close();
    assertThat(ended).hasValue(1);
  }

  @Test
  void collectedUnclosed_warnsOnceAndReleases() throws Exception {
    var dropped = new FakeCommunicator(0, 1, "dropped-unclosed"); // other tests drop some, too
    List<String> warnings = new ArrayList<>();
    var handler =
        new Handler() {
          @Override
          public void publish(LogRecord entry) {
            synchronized (warnings) {
              if (entry.getMessage().contains(dropped.backend)) {
                warnings.add(entry.getMessage());
              }
            }
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger("org.comm4j.api");
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    try {
      makeAndDrop(dropped);
      for (int i = 0; i < 200 && ended.get() == 0; i++) {
        System.gc();
        collected.await(20, TimeUnit.MILLISECONDS);
      }
    } finally {
      logger.removeHandler(handler);
      logger.setUseParentHandlers(true);
    }

    assertThat(dropped.calls).containsExactly("barrier", "close");
    assertThat(warnings).singleElement().asString().contains("dropped without close()");
  }

  private void makeAndDrop(FakeCommunicator dropped) {
    var own =
        new LaunchScope(() -> {
          ended.incrementAndGet();
          collected.countDown();
        });
    new CheckedCommunicator(dropped, own, CallListeners.NONE).run(new Collective.Barrier());
  }

  // --- listeners ---

  @Test
  void run_listenerEnabled_hearsOfTheCallAndItsFailure() {
    List<String> heard = new ArrayList<>();
    var listening = new CheckedCommunicator(backend, scope, listeners(true, heard));

    listening.broadcast(new float[1], 0);
    Request request = listening.start(new Collective.Barrier());
    backend.pending().end(null);
    request.await();
    request.await();
    backend.onRun =
        _ -> {
          throw new UnsupportedException("no");
        };
    assertThatThrownBy(() -> listening.broadcast(new float[1], 0)).hasMessage("no");
    assertThatThrownBy(() -> listening.broadcast(new float[1], 9)).hasMessageContaining("root");

    assertThat(heard)
        .containsExactly("fake 1 broadcast null", "fake 1 barrier null", "fake 1 broadcast no");
  }

  @Test
  void run_listenerSilentOrBroken_doesNotMatter() {
    List<String> heard = new ArrayList<>();
    new CheckedCommunicator(backend, scope, listeners(false, heard)).barrier();
    assertThat(heard).isEmpty();

    CallListener brokenAtOnce =
        (_, _, _) -> {
          throw new IllegalStateException("broken listener");
        };
    CallListener brokenAtTheEnd =
        (_, _, _) ->
            _ -> {
              throw new IllegalStateException("broken listener");
            };
    var listeners = new CallListeners(List.of(brokenAtOnce, brokenAtTheEnd, listener(true, heard)));
    new CheckedCommunicator(backend, scope, listeners).barrier();
    assertThat(heard).containsExactly("fake 1 barrier null");
  }

  private static CallListeners listeners(boolean wants, List<String> heard) {
    return new CallListeners(List.of(listener(wants, heard)));
  }

  private static CallListener listener(boolean wants, List<String> heard) {
    return (communicator, rank, operation) ->
        wants
            ? failure -> {
              String why = failure == null ? null : failure.getMessage();
              heard.add(communicator + " " + rank + " " + operation.label() + " " + why);
            }
            : null;
  }

  // --- allocation ---

  @Test
  void run_reusedRecord_allocatesNothing() {
    var threads =
        (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
    var quiet =
        new FakeCommunicator(0, 1, "fake-net") {
          @Override
          public @Nullable Received run(Operation operation) {
            return null;
          }
        };
    var measured = new CheckedCommunicator(quiet, scope, CallListeners.NONE);
    var operation =
        new Collective.AllReduce(
            CommData.of(DataType.FLOAT32, MemorySegment.ofArray(new float[8])),
            CommData.of(new float[8]),
            ReduceOp.SUM);
    PersistentRequest prepared = measured.prepare(operation);
    for (int i = 0; i < 20_000; i++) {
      measured.run(operation);
      prepared.run();
    }

    long before = threads.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < 1000; i++) {
      measured.run(operation);
      prepared.run();
    }
    // the smallest object in one call of each kind would be 16 bytes; the JVM itself takes some
    // once
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(1000 * 16);
  }

  // --- tools ---

  private void waitForFailureInside(CountDownLatch inside) {
    backend.onRun =
        _ -> {
          inside.countDown();
          while (true) {
            CommException failure = backend.failure;
            if (failure != null) {
              throw failure;
            }
            Thread.onSpinWait();
          }
        };
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Throwable onThread(String name, Runnable action) throws Exception {
    var task = new FutureTask<>(() -> catchThrowable(action::run));
    Thread.ofPlatform().name(name).start(task);
    return task.get();
  }
}
