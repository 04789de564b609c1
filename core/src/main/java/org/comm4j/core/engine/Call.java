package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.comm4j.api.CommException;
import org.comm4j.api.Operation;
import org.comm4j.api.Received;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// An operation in flight. Guarded by the engine's lock, but for the two volatile fields that
/// waiters look at.
abstract class Call implements Pending {
  final Engine engine;
  final Context context;
  private final String label;
  private long startNs;
  private @Nullable Thread boundTo;
  private @Nullable Received received;
  private volatile @Nullable RuntimeException failure;
  private volatile boolean done;
  private volatile @Nullable Thread waiter;
  private final List<Runnable> actions = new ArrayList<>(0);
  private long warnNs;
  private long askNs;

  /// @param boundTo the only thread that may touch the memory, or null for any
  Call(Context context, Operation operation, @Nullable Thread boundTo) {
    this.engine = context.engine();
    this.context = context;
    this.label = operation.label();
    begin(boundTo);
  }

  /// Begins, or begins again: only what has ended, and what nobody but the caller knows.
  final void begin(@Nullable Thread onlyThread) {
    boundTo = onlyThread;
    received = null;
    done = false;
  }

  /// Begins to count the time, for a call that does not end at once: looking at the clock would be
  /// a tenth of what a short one takes.
  final void startClock() {
    startNs = engine.nanoTime();
    warnNs = startNs + Engine.STALL_WARNING_NS;
    askNs = startNs + Engine.ASK_NS;
  }

  /// Whether it waits for something in a peer's memory that has not come; looked at without the
  /// lock, so it is a hint.
  boolean isAwaitingMemory() {
    return false;
  }

  /// Does what can be done now.
  ///
  /// @return whether something moved
  abstract boolean advance();

  /// Who this call waits for now, in the communicator.
  abstract void missing(BitSet ranks);

  /// Of ranks that have left, those without which it can't end.
  BitSet lost(BitSet left) {
    BitSet ranks = new BitSet();
    missing(ranks);
    ranks.and(left);
    return ranks;
  }

  /// Whether peers have a part in it, so that they would wait if this rank left now.
  boolean concernsPeers() {
    return false;
  }

  /// Gives back what the call holds.
  abstract void release();

  /// What it is, for messages.
  abstract String describe();

  /// A sentence if a peer is found to do something else, looked for now and then; else null.
  @Nullable String contradiction() {
    return null;
  }

  /// Whether this thread may touch the call's memory.
  final boolean isHere() {
    return boundTo == null || boundTo == Thread.currentThread();
  }

  final boolean isBound() {
    return boundTo != null;
  }

  final long deadlineNs() {
    return startNs + engine.timeoutNs();
  }

  final long elapsedNs() {
    return engine.nanoTime() - startNs;
  }

  /// Whether it is time for another stall warning.
  final boolean isStalled() {
    long now = engine.nanoTime();
    if (now - warnNs < 0) {
      return false;
    }
    warnNs = now + Engine.STALL_WARNING_NS;
    return true;
  }

  final List<Integer> missing() {
    BitSet ranks = new BitSet();
    missing(ranks);
    return ranks.stream().boxed().toList();
  }

  /// Who has not come, to be named at the deadline.
  List<Integer> late() {
    return missing();
  }

  /// Whether it is time to ask peers where they are.
  final boolean isSlow() {
    long now = engine.nanoTime();
    if (now - askNs < 0) {
      return false;
    }
    askNs = now + Math.max(Engine.ASK_NS, engine.timeoutNs() / 8);
    return true;
  }

  /// Whether the call reads or writes a part of this memory.
  abstract boolean touches(MemorySegment memory);

  final void complete(@Nullable Received result) {
    received = result;
    end(null);
  }

  final void fail(RuntimeException reason) {
    end(reason);
  }

  private void end(@Nullable RuntimeException reason) {
    if (done) {
      return;
    }
    failure = reason;
    release();
    done = true;
    context.ended(this);
    java.util.concurrent.locks.LockSupport.unpark(waiter);
    engine.wake(this);
    if (!actions.isEmpty()) {
      actions.forEach(engine::later);
      actions.clear();
    }
  }

  final boolean hasEnded() {
    return done;
  }

  final @Nullable RuntimeException failure() {
    return failure;
  }

  final void waiter(@Nullable Thread thread) {
    waiter = thread;
  }

  @Override
  public final boolean isDone() {
    if (!done) {
      engine.tryAdvance();
    }
    return done;
  }

  @Override
  public final boolean await(long nanos) {
    boolean ended = done || engine.await(this, nanos);
    RuntimeException reason = failure;
    if (ended && reason != null) {
      throw reason;
    }
    return ended;
  }

  @Override
  public final @Nullable Received received() {
    return received;
  }

  @Override
  public boolean cancel() {
    throw new IllegalStateException(
        label + " can't be cancelled: peers may be part of it (expected: a receive or probe)");
  }

  @Override
  public final void onEnd(Runnable action) {
    engine.lock();
    try {
      if (!done) {
        actions.add(action);
        engine.startProgress();
        return;
      }
    } finally {
      engine.unlock();
    }
    action.run();
  }

  /// The failure of the communicator as this call would see it.
  final @Nullable CommException contextFailure() {
    return context.failure();
  }
}
