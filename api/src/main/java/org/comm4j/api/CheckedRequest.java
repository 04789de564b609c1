package org.comm4j.api;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// The one [Request]. It has an owner word of its own, so it may be awaited beside calls on the
/// communicator; whoever holds the word and sees the end *settles* the request, once.
///
/// Waiting is cut into slices, between which it looks whether the communicator has been closed, so
/// that a backend's close need not wake anybody.
final class CheckedRequest implements Request {
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(80);

  /// Stands for whoever holds the word only to look: a thread that comes to wait waits for that.
  private static final Thread LOOKING = Thread.ofPlatform().unstarted(() -> {});

  private static final int LOOKS = 100; // at the word, before a thread sleeps

  /// How long a thread that looks at most waits for one that waits to give way. A backend's native
  /// wait may not be cut into slices.
  private static final long VISIT_NANOS = 10 * SLICE_NANOS;

  /// How it ended.
  private record Outcome(@Nullable Received received, @Nullable Throwable failure) {
    static final Outcome WELL = new Outcome(null, null);
  }

  private final CheckedCommunicator communicator;
  private final Gate gate;
  private final Operation operation;
  private final Pending pending;
  private final CallListeners.@Nullable Heard heard;
  private final long number;
  private final AtomicReference<@Nullable Thread> owner = new AtomicReference<>();
  private final AtomicInteger visitors = new AtomicInteger(); // who want the word for a look
  private @Nullable Thread looker; // while the word is LOOKING; written by who holds it
  private @Nullable Thread waiter; // also while it gives way; written by who holds the word
  private volatile @Nullable Outcome outcome;
  private volatile @Nullable CompletableFuture<Received> future;

  /// Whether the backend has called back; the next one to hold the word settles.
  private volatile boolean calledBack;

  CheckedRequest(
      CheckedCommunicator communicator,
      Operation operation,
      Pending pending,
      CallListeners.@Nullable Heard heard,
      long number) {
    this.communicator = communicator;
    this.gate = communicator.gate();
    this.operation = operation;
    this.pending = pending;
    this.heard = heard;
    this.number = number;
  }

  /// {@return how many requests its communicator had started before}
  long number() {
    return number;
  }

  /// {@return what the communicators of its rank stand on}
  LaunchScope scope() {
    return communicator.scope();
  }

  /// Settles it where nobody else knows of it yet.
  void endedAtOnce() {
    outcome = Outcome.WELL;
    tellListeners(null);
  }

  @Override
  public void await() {
    awaitNanos(Long.MAX_VALUE);
  }

  @Override
  public void await(Duration timeout) throws TimeoutException {
    Objects.requireNonNull(timeout, "timeout");
    if (timeout.isNegative()) {
      throw new IllegalArgumentException(
          "timeout: " + Values.seconds(timeout) + " (expected: zero or more)");
    }
    if (!awaitNanos(saturatedNanos(timeout))) {
      throw new TimeoutException(
          "%s on %s has not ended within %s; it goes on and may be awaited again"
              .formatted(operation.label(), gate, Values.seconds(timeout)));
    }
  }

  private static long saturatedNanos(Duration timeout) {
    try {
      return timeout.toNanos();
    } catch (ArithmeticException _) {
      return Long.MAX_VALUE;
    }
  }

  private boolean awaitNanos(long nanos) {
    if (outcome == null) {
      if (OperatorCalls.isRunning()) { // before a label is made
        OperatorCalls.refuse(operation.label() + " awaited");
      }
      acquire(Thread.currentThread());
      try {
        waitUntilSettled(nanos);
      } finally {
        waiter = null;
        release();
      }
    }
    Outcome ended = outcome;
    if (ended != null && ended.failure() != null) {
      throw CheckedCommunicator.rethrow(ended.failure());
    }
    return ended != null;
  }

  /// Holding the word.
  private void waitUntilSettled(long nanos) {
    long start = nanos == Long.MAX_VALUE ? 0 : System.nanoTime();
    long left = nanos;
    do {
      advance(Math.min(left, SLICE_NANOS));
      if (visitors.get() > 0) {
        giveWay();
      }
      if (nanos != Long.MAX_VALUE) {
        left = nanos - (System.nanoTime() - start);
      }
    } while (outcome == null && left > 0);
  }

  /// Lets those in who only look, for example to take the operation back. Holding the word.
  private void giveWay() {
    Thread me = waiter;
    if (me == null) {
      return; // close() waits here, which nobody need look at any more
    }
    free();
    while (visitors.get() > 0 || !owner.compareAndSet(null, me)) {
      Gate.pause();
    }
  }

  /// Waits for a slice and settles when the operation has ended. Holding the word.
  ///
  /// @throws ConcurrentUseException if a user-defined operator waits; the operation goes on
  private void advance(long nanos) {
    if (outcome != null) {
      return;
    }
    if (!gate.enterBeside()) {
      settle(new Outcome(null, gate.closed(operation.label())));
      return;
    }
    Outcome ended = null;
    try {
      if (pending.await(nanos)) {
        ended = new Outcome(pending.received(), null);
      }
    } catch (ConcurrentUseException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      ended = new Outcome(null, failure(e));
    } finally {
      gate.leaveBeside();
    }
    if (ended != null) {
      settle(ended);
    }
  }

  private Throwable failure(Throwable thrown) {
    try {
      return communicator.failed(operation.label(), thrown);
    } catch (Error e) {
      return e;
    }
  }

  private void settle(Outcome ended) {
    outcome = ended;
    communicator.ended(this);
    tellListeners(ended.failure());
    CompletableFuture<Received> waiting = future;
    if (waiting != null) {
      complete(waiting, ended);
    }
  }

  private void tellListeners(@Nullable Throwable failure) {
    if (heard != null) {
      heard.ended(failure);
    }
  }

  @Override
  public boolean isDone() {
    // From inside a call, that is from an operator, the engine is not to be moved along.
    if (outcome == null && !gate.isOwner(Thread.currentThread())) {
      settleIfEnded();
    }
    return outcome != null;
  }

  /// As [#isDone], inside a call on the communicator.
  boolean hasEnded() {
    settleIfEnded();
    return outcome != null;
  }

  /// Looks whether the operation has ended, unless a thread is in it already: that one settles.
  void settleIfEnded() {
    if (tryAcquire()) {
      try {
        look();
      } finally {
        release();
      }
    }
  }

  private void look() {
    if (outcome != null) {
      return;
    }
    boolean ended;
    if (gate.enterBeside()) {
      try {
        ended = pending.isDone();
      } finally {
        gate.leaveBeside();
      }
    } else {
      ended = true;
    }
    if (ended) {
      advance(0);
    }
  }

  @Override
  public Received result() {
    Outcome ended = isDone() ? outcome : null;
    if (ended == null) {
      throw new IllegalStateException(operation.label() + " has not ended; await it first");
    }
    if (ended.failure() != null) {
      throw new IllegalStateException(
          operation.label() + " has not ended well: " + ended.failure().getMessage(),
          ended.failure());
    }
    if (ended.received() == null) {
      throw new IllegalStateException(
          operation.label() + " has no result (expected: a receive, a sendReceive or a probe)");
    }
    return ended.received();
  }

  @Override
  public boolean cancel() {
    if (!canBeTakenBack()) {
      throw new IllegalStateException(
          operation.label()
              + " can't be taken back: peers may already be part of it (expected: a receive or a"
              + " probe)");
    }
    if (outcome != null) {
      return false;
    }
    acquireToLook();
    try {
      return takeBack();
    } finally {
      release();
    }
  }

  /// Whether peers have no part in it while nothing has matched it.
  boolean canBeTakenBack() {
    return operation instanceof Receive || operation instanceof Probe;
  }

  private boolean takeBack() {
    if (outcome != null || !gate.enterBeside()) {
      return false;
    }
    boolean taken;
    try {
      taken = pending.cancel();
    } finally {
      gate.leaveBeside();
    }
    if (taken) {
      settle(new Outcome(null, new CancellationException(operation.label() + " was taken back")));
    }
    return taken;
  }

  @Override
  public CompletableFuture<Received> toCompletableFuture() {
    CompletableFuture<Received> known = future;
    CompletableFuture<Received> own = new CompletableFuture<>(); // whose it is may complete it
    var _ =
        (known == null ? makeFuture() : known)
            .whenComplete((received, failure) -> complete(own, received, failure));
    return own;
  }

  private CompletableFuture<Received> makeFuture() {
    acquireToLook();
    try {
      CompletableFuture<Received> known = future;
      if (known != null) {
        return known; // made by another thread that held the word meanwhile
      }
      CompletableFuture<Received> made = new CompletableFuture<>();
      Outcome ended = outcome;
      boolean isClosed = false;
      if (ended != null) {
        complete(made, ended);
      } else if (gate.enterBeside()) {
        try {
          pending.onEnd(this::calledBack); // settled at the earliest once the word is free
        } finally {
          gate.leaveBeside();
        }
      } else {
        isClosed = true;
      }
      future = made; // once somebody will complete it
      if (isClosed) {
        advance(0);
      }
      return made;
    } finally {
      release();
    }
  }

  private void complete(CompletableFuture<Received> waiting, Outcome ended) {
    gate.complete(() -> complete(waiting, ended.received(), ended.failure()));
  }

  @SuppressWarnings("NullAway") // documented: null for operations without a result
  private static void complete(
      CompletableFuture<Received> waiting,
      @Nullable Received received,
      @Nullable Throwable failure) {
    if (failure == null) {
      waiting.complete(received);
    } else {
      waiting.completeExceptionally(failure);
    }
  }

  /// The backend has ended the operation. Where a thread holds the word, that one settles it.
  private void calledBack() {
    calledBack = true;
    settleIfEnded();
  }

  /// Lets the operation go on for a while because its communicator is closing; waits with whoever
  /// waits already.
  void finish(long nanos) {
    long start = System.nanoTime();
    long left = nanos;
    do {
      if (tryAcquire()) {
        try {
          waitUntilSettled(left);
        } finally {
          release();
        }
        return;
      }
      Gate.pause();
      left = nanos - (System.nanoTime() - start);
    } while (outcome == null && left > 0);
  }

  /// Takes the operation back because its communicator is closing, if it can be and nothing has
  /// matched it.
  ///
  /// @param nanos how long to wait at most for a thread that waits for it to give way
  void endUnmatched(long nanos) {
    if (!canBeTakenBack() || !tryAcquireToLook(nanos)) {
      return;
    }
    try {
      look(); // what has come is taken
      if (outcome == null && pending.cancel()) {
        settle(new Outcome(null, gate.closed(operation.label())));
      }
    } catch (RuntimeException | Error e) {
      if (outcome == null) {
        settle(new Outcome(null, failure(e)));
      }
    } finally {
      release();
    }
  }

  // --- the word ---

  private boolean tryAcquireToLook(long nanos) {
    long start = System.nanoTime();
    visitors.incrementAndGet();
    try {
      while (!tryAcquire()) {
        if (outcome != null || System.nanoTime() - start >= nanos) {
          return false;
        }
        Gate.pause();
      }
      return true;
    } finally {
      visitors.decrementAndGet();
    }
  }

  /// Takes the word for a look. A thread that waits gives way after its slice.
  private void acquireToLook() {
    OperatorCalls.refuse(operation.label() + " taken back, or its future asked for,");
    visitors.incrementAndGet();
    try {
      acquire(LOOKING);
    } finally {
      visitors.decrementAndGet();
    }
  }

  /// Takes the word, from nobody who waits.
  ///
  /// @param holding the calling thread, to wait, or [#LOOKING]
  private void acquire(Thread holding) {
    Thread me = Thread.currentThread();
    if (gate.isOwner(me)) {
      throw new ConcurrentUseException(
          "%s awaited from inside a call on %s, on thread '%s': a user-defined operator must not use its communicator"
              .formatted(operation.label(), gate, me.getName()));
    }
    long start = System.nanoTime();
    for (int turn = 0; !tryAcquire(holding, me); turn++) {
      Thread refusing = gate.isOpen() ? refusing(holding, System.nanoTime() - start) : null;
      if (refusing != null) {
        throw awaitedBy(refusing);
      }
      if (turn < LOOKS) {
        Thread.onSpinWait();
      } else {
        Gate.pause(); // somebody looks at it, or close() awaits it: not for long
      }
    }
  }

  /// Who has the word and won't give it away soon, if somebody has.
  private @Nullable Thread refusing(Thread holding, long waitedNanos) {
    Thread me = Thread.currentThread();
    Thread holder = owner.get();
    if (holder == LOOKING) {
      return looker == me ? me : null;
    }
    boolean givesWay = holding == LOOKING && holder != me && waitedNanos < VISIT_NANOS;
    return givesWay ? null : holder;
  }

  private boolean tryAcquire(Thread holding, Thread me) {
    if (!owner.compareAndSet(null, holding)) {
      return false;
    }
    if (holding == LOOKING) {
      looker = me;
      return true;
    }
    Thread other = waiter;
    if (other != null && gate.isOpen()) { // it gives way, to who only looks
      release();
      throw awaitedBy(other);
    }
    waiter = me;
    return true;
  }

  private ConcurrentUseException awaitedBy(Thread other) {
    return new ConcurrentUseException(
        "%s on %s awaited by thread '%s' while thread '%s' awaits it; await a request from one thread"
            .formatted(operation.label(), gate, Thread.currentThread().getName(), other.getName()));
  }

  /// Takes the word for a look, or a wait that gives way to nobody else's.
  private boolean tryAcquire() {
    return tryAcquire(LOOKING, Thread.currentThread());
  }

  private void release() {
    try {
      free();
      // Whoever has called back or closed meanwhile has left it to this thread.
      if (outcome == null && (calledBack || gate.isClosed()) && tryAcquire()) {
        try {
          advance(0);
        } finally {
          free();
        }
      }
    } finally {
      Reference.reachabilityFence(communicator); // collected inside a call, it would be released
    }
  }

  private void free() {
    looker = null;
    owner.set(null);
  }

  /// For example `allReduce on communicator 'world' (rank 0 of 4, backend 'shm')`.
  @Override
  public String toString() {
    return operation.label() + " on " + gate;
  }
}
