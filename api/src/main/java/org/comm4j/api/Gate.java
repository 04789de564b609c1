package org.comm4j.api;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.spi.BackendCommunicator;
import org.jspecify.annotations.Nullable;

/// Who is inside a backend's communicator, and its end.
///
/// Inside is at most one *owner*, the thread of a call on the communicator, and any number of
/// *guests*, which are calls that the SPI allows beside it: those on a request and on the failure.
/// Open, a gate lets both in; closing, guests only; closed, nobody. Once it is closed the last one
/// to leave releases the backend's communicator, so that nobody is ever in one that is gone.
///
/// It does not know the communicator of the API, for it does the work after that one was collected
/// unclosed.
final class Gate {
  private static final System.Logger LOG = System.getLogger("org.comm4j.api");
  private static final VarHandle OWNER;

  static {
    try {
      OWNER = MethodHandles.lookup().findVarHandle(Gate.class, "owner", Thread.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private enum State {
    OPEN,
    CLOSING,
    CLOSED
  }

  private final BackendCommunicator backend;
  private final LaunchScope scope;
  private final String description;
  private final AtomicInteger guests = new AtomicInteger();
  private final AtomicBoolean released = new AtomicBoolean();
  private final Object stateLock = new Object();
  private volatile @Nullable Thread owner;

  /// The threads that run what depends on futures of this communicator.
  private final Set<Thread> completing = ConcurrentHashMap.newKeySet();

  private volatile State state = State.OPEN;
  private volatile boolean leftToLast;

  Gate(BackendCommunicator backend, LaunchScope scope, String description) {
    this.backend = backend;
    this.scope = scope;
    this.description = description;
    scope.retain();
  }

  // --- the owner ---

  /// Lets the calling thread in as the owner, or throws.
  void enter(String call) {
    Thread me = Thread.currentThread();
    Thread holder = (Thread) OWNER.compareAndExchange(this, (Thread) null, me);
    if (holder != null) {
      throw concurrentUse(call, me, holder);
    }
    if (state != State.OPEN) {
      leave();
      throw closed(call);
    }
    if (!completing.isEmpty() && completing.contains(me)) {
      leave();
      throw new ConcurrentUseException(
          "%s on %s from what depends on a future of it, on thread '%s'; call it from another thread (thenRunAsync)"
              .formatted(call, description, me.getName()));
    }
  }

  /// The store must be volatile: who leaves writes `owner` and reads `leftToLast`, who closes
  /// writes `leftToLast` and reads `owner`, and one of them must see what the other wrote.
  void leave() {
    owner = null;
    if (leftToLast) {
      releaseIfEmpty();
    }
  }

  private ConcurrentUseException concurrentUse(String call, Thread me, Thread holder) {
    return new ConcurrentUseException(
        holder == me
            ? "%s on %s from inside another call on it, on thread '%s': a user-defined operator or callback must not call its communicator"
                .formatted(call, description, me.getName())
            : "%s on %s by thread '%s' while thread '%s' is in a call on it; let one thread at a time call a communicator, or give each one a duplicate()"
                .formatted(call, description, me.getName(), holder.getName()));
  }

  boolean isOwner(Thread thread) {
    return owner == thread;
  }

  /// Runs what depends on a future; until that has ended the calling thread is not let in.
  void complete(Runnable dependants) {
    Thread me = Thread.currentThread();
    boolean isOutermost = completing.add(me);
    try {
      dependants.run();
    } finally {
      if (isOutermost) {
        completing.remove(me);
      }
    }
  }

  // --- guests ---

  /// Lets a call in beside the owner.
  ///
  /// @return false once the gate is closed
  boolean enterBeside() {
    guests.incrementAndGet();
    if (state == State.CLOSED) {
      leaveBeside();
      return false;
    }
    return true;
  }

  void leaveBeside() {
    if (guests.decrementAndGet() == 0 && leftToLast) {
      releaseIfEmpty();
    }
  }

  // --- the end ---

  boolean isOpen() {
    return state == State.OPEN;
  }

  boolean isClosed() {
    return state == State.CLOSED;
  }

  ClosedException closed(String call) {
    return new ClosedException(call + ": " + description + " is closed");
  }

  /// Shuts the gate for owners.
  ///
  /// @return whether this call did, and its caller has to go on with the end
  boolean beginClose() {
    Thread me = Thread.currentThread();
    if (state == State.OPEN && (owner == me || OperatorCalls.isRunning())) {
      throw concurrentUse("close", me, me);
    }
    synchronized (stateLock) {
      if (state != State.OPEN) {
        return false;
      }
      state = State.CLOSING;
      return true;
    }
  }

  /// Makes the calling thread the owner although the gate is closing.
  ///
  /// @return the owner after `nanos`: null if it is the calling thread
  @Nullable Thread ownToClose(long nanos) {
    Thread me = Thread.currentThread();
    long start = System.nanoTime();
    while (true) {
      Thread holder = (Thread) OWNER.compareAndExchange(this, (Thread) null, me);
      if (holder == null || System.nanoTime() - start >= nanos) {
        return holder;
      }
      pause();
    }
  }

  /// Shuts the gate for all.
  void close() {
    state = State.CLOSED;
  }

  /// Releases the backend's communicator when everybody is out. The calling thread is no longer
  /// inside.
  ///
  /// @param nanos how long to wait for the others; after that the last one to leave does it
  /// @return whether it is released
  boolean releaseWhenEmpty(long nanos) {
    long start = System.nanoTime();
    while (!releaseIfEmpty()) {
      if (System.nanoTime() - start >= nanos) {
        leftToLast = true;
        return releaseIfEmpty();
      }
      pause();
    }
    return true;
  }

  /// Waits a little; an interrupted thread, which can't sleep, gives way.
  static void pause() {
    LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(100));
    if (Thread.currentThread().isInterrupted()) {
      Thread.yield();
    }
  }

  private boolean releaseIfEmpty() {
    if (guests.get() != 0 || owner != null) {
      return false;
    }
    release();
    return true;
  }

  private void release() {
    if (!released.compareAndSet(false, true)) {
      return;
    }
    try {
      uninterrupted(backend::close);
    } catch (RuntimeException | LinkageError e) {
      LOG.log(System.Logger.Level.WARNING, description + " was not closed well", e);
    } finally {
      scope.release();
    }
  }

  /// Runs a part of a close without the interrupt flag with which the thread has come: a backend's
  /// wait would see it and break the communicator for all, for what concerns nobody or would have
  /// ended.
  static void uninterrupted(Runnable part) {
    boolean interrupted = Thread.interrupted();
    try {
      part.run();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// Ends a communicator that nothing refers to any more.
  void collected() {
    if (released.get()) {
      return;
    }
    if (state == State.OPEN) {
      LOG.log(
          System.Logger.Level.WARNING,
          description
              + " was dropped without close(); it is closed now, late; use try-with-resources");
    }
    state = State.CLOSED;
    release();
  }

  @Override
  public String toString() {
    return description;
  }
}
