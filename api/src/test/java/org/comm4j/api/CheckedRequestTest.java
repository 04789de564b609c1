package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.comm4j.api.FakeCommunicator.FakePending;
import org.comm4j.api.spi.CallListener;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class CheckedRequestTest {
  private static final Operation RECEIVE =
      new PointToPoint.Receive(CommData.of(new float[4]), 0, 1);
  private static final Operation BARRIER = new Collective.Barrier();

  private final FakeCommunicator backend = new FakeCommunicator(1, 4, "fake-net");
  private final Communicator comm =
      new CheckedCommunicator(backend, new LaunchScope(() -> {}), CallListeners.NONE);

  @Test
  void await_ended_returnsAndMayBeRepeated() {
    Request request = comm.start(BARRIER);
    backend.pending().end(null);
    request.await();
    request.await();
    assertThat(request.isDone()).isTrue();
  }

  @Test
  void await_timeout_leavesRequestAndCommunicatorUsable() throws Exception {
    Request request = comm.start(BARRIER);

    assertThatExceptionOfType(TimeoutException.class)
        .isThrownBy(() -> request.await(Duration.ofMillis(60)))
        .withMessageContaining("barrier")
        .withMessageContaining("within 0.06 s");
    assertThatExceptionOfType(TimeoutException.class)
        .isThrownBy(() -> request.await(Duration.ZERO));
    assertThatIllegalArgumentException().isThrownBy(() -> request.await(Duration.ofNanos(-1)));
    assertThatNullPointerException().isThrownBy(() -> request.await(null)).withMessage("timeout");

    assertThat(comm.failure()).isEmpty();
    comm.sync();
    backend.pending().end(null);
    request.await(Duration.ofDays(1_000_000));
  }

  @Test
  void await_failed_throwsTheSameEachTime() {
    Request request = comm.start(BARRIER);
    var failure = new PeerFailedException(List.of(2), List.of(2), "gone", null);
    backend.pending().fail(failure);

    assertThat(request.isDone()).isTrue();
    assertThatThrownBy(request::await).isSameAs(failure);
    assertThatThrownBy(request::await).isSameAs(failure);
    assertThatIllegalStateException().isThrownBy(request::result).withCause(failure);
  }

  @Test
  void await_refusedByTheBackend_leavesRequestAndCommunicatorUsable() {
    Request request = comm.start(BARRIER);
    var refusal = new ConcurrentUseException("a user-defined operator waits");
    backend.pending().fail(refusal);
    assertThatThrownBy(request::await).isSameAs(refusal);

    assertThat(comm.failure()).isEmpty();
    backend.pending().end(null);
    request.await();
    assertThat(request.isDone()).isTrue();
  }

  @Test
  void await_onAnotherThreadBesideCalls_works() throws Exception {
    Request request = comm.start(BARRIER);
    var waiter = new FutureTask<>(request::await, true);
    Thread.ofPlatform().start(waiter);
    comm.broadcast(new float[1], 0);
    backend.pending().end(null);
    assertThat(waiter.get()).isTrue();
  }

  @Test
  void await_fromTwoThreads_namesBoth() throws Exception {
    Request request = comm.start(BARRIER);
    var waiter = new FutureTask<>(request::await, true);
    Thread thread = Thread.ofPlatform().name("first").start(waiter);
    while (thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }

    assertThatExceptionOfType(ConcurrentUseException.class)
        .isThrownBy(request::await)
        .withMessageContaining("'first'")
        .withMessageContaining(Thread.currentThread().getName());
    assertThat(request.isDone()).isFalse();

    backend.pending().end(null);
    waiter.get();
  }

  /// The looks of calls at what else has ended are no waits: they move the backend along, perhaps
  /// for long.
  @Test
  void await_whileACallLooksAtIt_waits() throws Exception {
    Request request = comm.start(BARRIER);
    FakePending pending = backend.pending();
    var looks = new CountDownLatch(1);
    var mayGoOn = new CountDownLatch(1);
    pending.whenLookedAt(() -> {
      looks.countDown();
      mayGoOn.await();
    });
    var caller = new FutureTask<>(comm::sync, true);
    Thread.ofPlatform().start(caller);
    looks.await();
    var waiter = new FutureTask<>(request::await, true);
    startUntilItWaits(waiter);

    mayGoOn.countDown();
    caller.get();
    pending.end(null);
    waiter.get();
    assertThat(request.isDone()).isTrue();
  }

  @Test
  void await_insideALook_isRefused() throws Exception {
    Request request = comm.start(BARRIER);
    var refused = new ArrayList<Throwable>();
    backend
        .pending()
        .whenLookedAt(() -> {
          try {
            request.await();
          } catch (ConcurrentUseException e) {
            refused.add(e);
          }
        });

    comm.sync();

    assertThat(refused).hasSize(1);
  }

  @Test
  void result_ofAReceive_isWhatItGot() {
    Request request = comm.start(RECEIVE);
    assertThatIllegalStateException()
        .isThrownBy(request::result)
        .withMessageContaining("has not ended");
    backend.pending().end(new Received(0, 1, 4));
    assertThat(request.result()).isEqualTo(new Received(0, 1, 4));
  }

  @Test
  void result_ofACollective_isRefused() {
    Request request = comm.start(BARRIER);
    backend.pending().end(null);
    request.await();
    assertThatIllegalStateException()
        .isThrownBy(request::result)
        .withMessageContaining("no result");
  }

  @Test
  void cancel_receive_isTakenBack() {
    Request request = comm.start(RECEIVE);
    var future = request.toCompletableFuture();

    assertThat(request.cancel()).isTrue();

    assertThat(request.cancel()).isFalse();
    assertThatExceptionOfType(CancellationException.class).isThrownBy(request::await);
    assertThat(request.isDone()).isTrue();
    assertThat(future).isCancelled();
    assertThatExceptionOfType(CancellationException.class).isThrownBy(future::join);
    assertThat(request.toCompletableFuture()).isCancelled();
    assertThatIllegalStateException().isThrownBy(request::result);
  }

  @Test
  void cancel_whileAnotherThreadAwaits_endsItsWait() throws Exception {
    Request request = comm.start(RECEIVE);
    var waiter = new FutureTask<>(request::await, true);
    startUntilItWaits(waiter);

    assertThat(request.cancel()).isTrue();

    assertThatThrownBy(waiter::get).hasCauseInstanceOf(CancellationException.class);
    assertThat(comm.failure()).isEmpty();
  }

  @Test
  void future_madeWhileAnotherThreadAwaits_completes() throws Exception {
    Request request = comm.start(BARRIER);
    var waiter = new FutureTask<>(request::await, true);
    startUntilItWaits(waiter);

    var future = request.toCompletableFuture();

    assertThatExceptionOfType(ConcurrentUseException.class).isThrownBy(request::await);
    backend.pending().end(null);
    assertThat(future.get()).isNull();
    assertThat(waiter.get()).isTrue();
  }

  /// As a wait of the backend that can't be cut into slices.
  @Test
  void cancel_whoAwaitsDoesNotGiveWay_isRefused() throws Exception {
    Request request = comm.start(RECEIVE);
    var isInside = new CountDownLatch(1);
    var mayGoOn = new CountDownLatch(1);
    backend
        .pending()
        .whenAwaited(() -> {
          isInside.countDown();
          try {
            mayGoOn.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        });
    var waiter = new FutureTask<>(request::await, true);
    Thread.ofPlatform().start(waiter);
    isInside.await();

    assertThatExceptionOfType(ConcurrentUseException.class).isThrownBy(request::cancel);

    mayGoOn.countDown();
    backend.pending().end(null);
    waiter.get();
  }

  @Test
  void cancel_matchedReceive_goesOn() {
    Request request = comm.start(RECEIVE);
    backend.pending().match();
    assertThat(request.cancel()).isFalse();
    backend.pending().end(new Received(0, 1, 4));
    request.await();
  }

  @Test
  void cancel_collective_isRefused() {
    Request request = comm.start(BARRIER);
    assertThatIllegalStateException()
        .isThrownBy(request::cancel)
        .withMessageContaining("barrier can't be taken back");
  }

  @Test
  void future_completesWithoutAnybodyWaiting() {
    Request request = comm.start(RECEIVE);
    var future = request.toCompletableFuture();
    var again = request.toCompletableFuture();
    backend.pending().end(new Received(0, 1, 4));
    assertThat(future).isCompletedWithValue(new Received(0, 1, 4));
    assertThat(again).isCompletedWithValue(new Received(0, 1, 4));
    assertThat(request.isDone()).isTrue();
  }

  @Test
  void future_ofAnEndedOperation_isComplete() {
    Request request = comm.start(BARRIER);
    backend.pending().end(null);
    assertThat(request.toCompletableFuture()).isCompletedWithValue(null);
    assertThat(request.toCompletableFuture()).isCompleted();
  }

  @Test
  void future_cancelledByItsOwner_takesNothingBack() {
    Request request = comm.start(RECEIVE);
    assertThat(request.toCompletableFuture().cancel(true)).isTrue();
    backend.pending().end(new Received(0, 1, 4));
    assertThat(request.toCompletableFuture()).isCompletedWithValue(new Received(0, 1, 4));
  }

  @Test
  void future_failed_hasTheCause() {
    Request request = comm.start(BARRIER);
    var future = request.toCompletableFuture();
    var failure = new TransportFailedException("link down", null);
    backend.pending().fail(failure);
    assertThatThrownBy(future::join).hasCause(failure);
  }

  @Test
  void future_whileAThreadAwaits_completes() throws Exception {
    for (int i = 0; i < 200; i++) {
      Request request = comm.start(BARRIER);
      FakePending pending = backend.pendings.getLast();
      var future = request.toCompletableFuture();
      var polling =
          new FutureTask<>(
              () -> {
                while (!request.isDone()) {
                  Thread.onSpinWait();
                }
              },
              true);
      Thread.ofPlatform().start(polling);
      pending.end(null);
      polling.get();
      future.get();
    }
  }

  /// Both threads find that there is no future yet, and wait for one that looks at the request.
  @Test
  void future_madeByTwoThreads_completesForBoth() throws Exception {
    Request request = comm.start(BARRIER);
    var makers =
        List.of(
            new FutureTask<>(request::toCompletableFuture),
            new FutureTask<>(request::toCompletableFuture));
    backend.pending().whenLookedAt(() -> makers.forEach(CheckedRequestTest::startUntilItWaits));
    request.isDone();
    for (var maker : makers) {
      maker.get();
    }

    backend.pending().end(null);

    for (var maker : makers) {
      assertThat(maker.get()).isCompleted();
    }
  }

  private static void startUntilItWaits(Runnable task) {
    Thread thread = Thread.ofPlatform().start(task);
    while (thread.isAlive() && thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
  }

  /// A backend's close need not call back.
  @Test
  void future_closedWhileAThreadLooks_completes() throws Exception {
    Request request = comm.start(BARRIER);
    var future = request.toCompletableFuture();
    backend
        .pending()
        .whenLookedAt(() -> {
          Thread closing = Thread.ofPlatform().start(comm::close);
          while (((CheckedCommunicator) comm).gate().enterBeside()) {
            ((CheckedCommunicator) comm).gate().leaveBeside();
            Thread.onSpinWait();
          }
          closing.join(1000); // it leaves the last of it to who is inside
        });

    request.isDone();

    assertThatThrownBy(future::get).hasCauseInstanceOf(ClosedException.class);
  }

  /// As where no thread can be made that would move the operation along.
  @Test
  void future_backendCannotCallBack_isMadeAgain() {
    Request request = comm.start(BARRIER);
    backend.pending().failNextCallBack(new OutOfMemoryError("no threads"));
    assertThatThrownBy(request::toCompletableFuture).isInstanceOf(OutOfMemoryError.class);
    var future = request.toCompletableFuture();

    backend.pending().end(null);

    assertThat(future).isCompleted();
  }

  @Test
  void start_manyForgotten_areNotKept() {
    for (int i = 0; i < 10_000; i++) {
      Request request = comm.start(BARRIER);
      backend.pendings.getLast().end(null);
      backend.pendings.clear();
      assertThat(request).isNotNull();
    }
    assertThat(((CheckedCommunicator) comm).inFlight()).isLessThan(200);
  }

  @Test
  void start_endedAtOnce_isDoneHeardAndNotKept() throws Exception {
    backend.endsSendsAtOnce = true;
    List<String> heard = new ArrayList<>();
    CallListener listener =
        (communicator, rank, operation) ->
            failure ->
                heard.add("%s %d %s %b".formatted(communicator, rank, operation.label(), failure));
    var listening =
        new CheckedCommunicator(
            backend, new LaunchScope(() -> {}), new CallListeners(List.of(listener)));
    Request request = listening.start(new PointToPoint.Send(CommData.of(new float[4]), 0, 1));
    assertThat(request.isDone()).isTrue();
    request.await();
    assertThat(request.toCompletableFuture().get()).isNull();
    assertThat(listening.inFlight()).isZero();
    assertThat(heard).containsExactly(backend.name() + " 1 send false");
  }

  @Test
  void prepared_startedTwice_isRefusedUntilTheFirstHasEnded() {
    PersistentRequest prepared = comm.prepare(BARRIER);
    Request first = prepared.start();

    assertThatIllegalStateException()
        .isThrownBy(prepared::start)
        .withMessageContaining("still in flight");
    assertThatIllegalStateException().isThrownBy(prepared::run);

    backend.pending().end(null);
    first.await();
    prepared.start();
    assertThat(prepared.operation()).isSameAs(BARRIER);
  }

  /// Both may look at the last start before either has begun its own.
  @Test
  void prepared_startedByTwoThreadsAtOnce_isInFlightOnce() throws Exception {
    for (int round = 0; round < 2000; round++) {
      var once = new FakeCommunicator(1, 4, "fake-net");
      PersistentRequest prepared =
          new CheckedCommunicator(once, new LaunchScope(() -> {}), CallListeners.NONE)
              .prepare(BARRIER);
      var ready = new AtomicInteger();
      Thread other = Thread.ofPlatform().start(() -> startWithAnother(prepared, ready));
      startWithAnother(prepared, ready);
      other.join();
      assertThat(once.pendings).hasSize(1);
    }
  }

  private static void startWithAnother(PersistentRequest prepared, AtomicInteger ready) {
    ready.incrementAndGet();
    while (ready.get() < 2) {
      Thread.onSpinWait();
    }
    try {
      prepared.start();
    } catch (ConcurrentUseException | IllegalStateException _) {
      // the other one was first
    }
  }

  @Test
  void prepare_wrongShape_isRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> comm.prepare(new Collective.Broadcast(CommData.of(new float[1]), 4)));
  }

  @Test
  void waitAny_returnsOneThatHasEnded() {
    Request first = comm.start(BARRIER);
    Request second = comm.start(BARRIER);
    Thread.ofPlatform().start(() -> backend.pendings.get(1).end(null));
    assertThat(Request.waitAny(List.of(first, second))).isEqualTo(1);
  }

  @Test
  void waitAny_interrupted_leavesItToTheOperation() {
    Request request = comm.start(BARRIER);
    Thread.currentThread().interrupt();
    try {
      assertThat(Request.waitAny(List.of(request))).isEqualTo(0);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
    assertThat(catchThrowable(request::await)).isInstanceOf(InterruptedCallException.class);
  }

  /// What is awaited already is not waited for here, and it has not ended.
  @Test
  void waitAny_interruptedWhileAnotherThreadAwaits_isRefused() throws Exception {
    Request request = comm.start(BARRIER);
    var waiter = new FutureTask<>(request::await, true);
    startUntilItWaits(waiter);
    Thread.currentThread().interrupt();
    try {
      assertThatExceptionOfType(ConcurrentUseException.class)
          .isThrownBy(() -> Request.waitAny(List.of(request)));
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
    backend.pending().end(null);
    waiter.get();
  }

  @Test
  void wait_forNothing_namesItsPlace() {
    Request request = comm.start(BARRIER);
    List<Request> requests = Arrays.asList(request, null);
    assertThatNullPointerException()
        .isThrownBy(() -> Request.waitAll(requests))
        .withMessage("requests[1]: null (expected: a request)");
    backend.pending().end(null);
    assertThatNullPointerException()
        .isThrownBy(() -> Request.waitAny(requests))
        .withMessage("requests[1]: null (expected: a request)");
  }

  /// Nothing ends while it waits: its thread has what moves operations along.
  @Test
  void wait_insideAnOperator_isRefused() {
    Request first = comm.start(RECEIVE);
    Request ofAnotherRank =
        new CheckedCommunicator(backend, new LaunchScope(() -> {}), CallListeners.NONE)
            .start(RECEIVE);
    List<Request> both = List.of(first, ofAnotherRank);

    for (Runnable wait :
        List.<Runnable>of(
            () -> awaitNow(ofAnotherRank),
            () -> Request.waitAny(both),
            () -> Request.waitAll(both))) {
      assertThatExceptionOfType(ConcurrentUseException.class)
          .isThrownBy(() -> insideAnOperator(wait))
          .withMessageContaining("user-defined operator");
    }
  }

  private static void awaitNow(Request request) {
    try {
      request.await(Duration.ZERO);
    } catch (TimeoutException e) {
      throw new AssertionError("it waits", e);
    }
  }

  private static void insideAnOperator(Runnable action) {
    var element = CommData.of(new long[1]).segment();
    OperatorCalls.marked((_, _, _, _) -> action.run()).combine(element, element, DataType.INT64, 1);
  }

  /// What peers may have a part in gets a moment to end by itself, what nobody has is taken back.
  @Test
  void waitAll_interrupted_leavesOtherCommunicatorsUsable() {
    LaunchScope scope = ((CheckedCommunicator) comm).scope();
    var sibling = new FakeCommunicator(1, 4, "fake-net");
    Communicator other = new CheckedCommunicator(sibling, scope, CallListeners.NONE);
    Request first = comm.start(BARRIER);
    Request barrier = other.start(BARRIER);
    Request receive = other.start(RECEIVE);
    FakePending pending = sibling.pendings.get(0);
    pending.whenLookedAt(() -> pending.whenLookedAt(() -> pending.end(null)));
    Thread.currentThread().interrupt();

    try {
      assertThatExceptionOfType(InterruptedCallException.class)
          .isThrownBy(() -> Request.waitAll(List.of(first, barrier, receive)));
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }

    assertThatExceptionOfType(InterruptedCallException.class).isThrownBy(first::await);
    barrier.await();
    assertThatExceptionOfType(CancellationException.class).isThrownBy(receive::await);
    assertThat(other.failure()).isEmpty();
  }

  /// The data of none is used when it returns, and the interrupt is not to wait for a deadline.
  @Test
  void waitAll_interruptedAndAnotherDoesNotEnd_breaksThatToo() {
    Request first = comm.start(BARRIER);
    Request second = comm.start(BARRIER);
    Thread.currentThread().interrupt();

    try {
      assertThatExceptionOfType(InterruptedCallException.class)
          .isThrownBy(() -> Request.waitAll(List.of(first, second)));
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }

    assertThatExceptionOfType(InterruptedCallException.class).isThrownBy(second::await);
  }

  @Test
  void waitAll_throwsTheFirstFailure() {
    Request first = comm.start(BARRIER);
    Request second = comm.start(BARRIER);
    var failure = new TransportFailedException("link down", null);
    backend.pendings.get(0).end(null);
    backend.pendings.get(1).fail(failure);
    assertThatThrownBy(() -> Request.waitAll(List.of(first, second))).isSameAs(failure);
  }

  /// Nobody writes into the data of those behind it any more, either.
  @Test
  void waitAll_oneFails_waitsForTheOthers() {
    Request first = comm.start(RECEIVE);
    Request second = comm.start(RECEIVE);
    first.cancel();
    FakePending pending = backend.pendings.get(1);
    pending.whenAwaited(() -> pending.end(null));

    assertThatExceptionOfType(CancellationException.class)
        .isThrownBy(() -> Request.waitAll(List.of(first, second)));

    assertThat(pending.askedNanos).isPositive();
    assertThat(second.isDone()).isTrue();
  }

  /// As where memory runs out in a backend.
  @Test
  void waitAll_oneEndsInAnError_waitsForTheOthers() {
    Request first = comm.start(RECEIVE);
    Request second = comm.start(RECEIVE);
    var error = new OutOfMemoryError("test");
    backend
        .pendings
        .getFirst()
        .whenAwaited(() -> {
          throw error;
        });
    FakePending pending = backend.pendings.get(1);
    pending.whenAwaited(() -> pending.end(null));

    assertThatThrownBy(() -> Request.waitAll(List.of(first, second))).isSameAs(error);

    assertThat(pending.askedNanos).isPositive();
    assertThat(second.isDone()).isTrue();
  }
}
