package org.comm4j.core.engine;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.core.session.Endings;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;

/// How threads wait for calls, and the progress thread for work: who waits moves everything along
/// meanwhile ([Engine#tryAdvance]); first it spins, then it gives way, then it sleeps in the
/// transport, where there is room for one thread. The others nap meanwhile, the longer the longer
/// they have waited: who sleeps in the transport moves their calls along, wakes whose call ends,
/// and calls one of them when it leaves. Calls bound to their threads it can't move; it wakes those
/// threads to look for themselves.
final class Waiting {
  private static final System.Logger LOG = System.getLogger(Waiting.class.getName());

  // A park and its wake-up cost tens of microseconds, so data that comes within so many is awaited
  // without: spinning where each rank has a core of its own, else giving way to other ranks.
  private static final long SPIN_NS = 20_000;
  private static final long YIELD_NS = 500_000;
  private static final int LOOKS_PER_SPIN = 50; // at the flag awaited, before all else is looked at
  private static final int LOOKS_BEFORE_WAITING = 500; // some 10 µs
  private static final int YIELDS_BEFORE_WAITING = 20;
  private static final long PARK_NS = 5_000_000;
  private static final long NEXT_LOOK_NS = 100_000; // of who can't park, since another one does

  // A nap ends late by at most that part of the wait, should nobody end it: the looks of a long
  // wait are few, some six from 1 ms to 2, and as many from 100 ms to 200.
  private static final long IDLE_PER_NAP = 8;

  // A turn of the loop takes some 200 µs where it is not compiled, and 700 where system calls are
  // dear too; who has waited for long may use a hundredth of a processor.
  private static final long LONG_WAIT_NS = 100_000_000;
  private static final long LONG_PARK_NS = 80_000_000;
  private static final long SLEEP_NS = 1_000_000_000;
  private static final long NAP_NS = 2_000_000; // of who is not woken
  private static final long TROUBLE_NS = 10_000_000; // before the next attempt
  private static final long JOIN_NS = 200_000_000; // else a user's dependent is at work

  private final Engine engine;
  private final Transport transport;
  private final boolean oversubscribed;
  private final LongUnaryOperator napNs;
  private final AtomicBoolean parked = new AtomicBoolean();
  private volatile @Nullable Call parkedFor; // what the thread that is parked waits for
  private volatile boolean progressIsParked; // that thread is the one for progress
  private final AtomicInteger sleepers = new AtomicInteger(); // threads that wait for long
  private final Queue<Nap> naps = new ConcurrentLinkedQueue<>();
  private final Queue<Runnable> later = new ConcurrentLinkedQueue<>();
  private volatile @Nullable Thread progress;

  /// Of a thread that waits for a call while another one sleeps in the transport.
  private record Nap(Thread thread, Call call) {}

  /// @param oversubscribed whether ranks share processors
  /// @param napNs how long a thread naps that will be called, by how long nothing has moved;
  ///   usually [#napNs(long)]
  Waiting(Engine engine, Transport transport, boolean oversubscribed, LongUnaryOperator napNs) {
    this.engine = engine;
    this.transport = transport;
    this.oversubscribed = oversubscribed;
    this.napNs = napNs;
  }

  /// How often a thread may look for what it awaits before it lets others have the lock.
  int looksBeforeWaiting() {
    if (Thread.currentThread().isVirtual()) {
      return 0; // it never spins, and must not give way to others while it has the lock
    }
    return oversubscribed ? YIELDS_BEFORE_WAITING : LOOKS_BEFORE_WAITING;
  }

  /// Called between two such looks.
  ///
  /// @return whether there may be another one: nobody else wants the lock
  boolean pauseBetweenLooks() {
    if (oversubscribed) {
      Thread.yield();
    } else {
      Thread.onSpinWait();
    }
    return !engine.isWanted();
  }

  /// Runs an action soon, on the progress thread, without the lock.
  void later(Runnable action) {
    later.add(action);
    callProgress();
  }

  /// Waits until a call has ended.
  ///
  /// @param nanos at most this long; `Long.MAX_VALUE` for as long as the call may take
  /// @return false if the time is over first
  boolean await(Call call, long nanos) {
    engine.refuseOperators();
    if (Thread.currentThread().isVirtual() && !call.isBound()) {
      return sleep(call, nanos);
    }
    long startNs = System.nanoTime();
    long movedNs = call.idleSince(startNs);
    boolean sleeps = false;
    try {
      while (true) {
        Engine.Turn turn = engine.tryAdvance(call);
        if (call.hasEnded()) {
          return true;
        }
        long now = System.nanoTime();
        if (nanos != Long.MAX_VALUE && now - startNs >= nanos) {
          call.waitedIdle(movedNs, now);
          return false;
        }
        if (turn == Engine.Turn.MOVED) {
          movedNs = now;
          continue;
        }
        if (!sleeps && now - movedNs >= YIELD_NS) {
          sleeps = true;
          beginSleeping();
        }
        long left = nanos == Long.MAX_VALUE ? nanos : nanos - (now - startNs);
        pause(call, now - movedNs, left, turn);
      }
    } finally {
      if (sleeps) {
        endSleeping();
      }
    }
  }

  /// A virtual thread, which is here with memory of its own, can't sleep in the transport.
  private void beginSleeping() {
    if (Thread.currentThread().isVirtual()) {
      startProgress();
    } else {
      sleepInsteadOfProgress();
    }
  }

  private void endSleeping() {
    if (!Thread.currentThread().isVirtual()) {
      if (sleepers.decrementAndGet() == 0) {
        callProgress();
      } else if (parkedFor == null) { // else that one will do this when it leaves
        callNext();
      }
    }
  }

  /// A thread that waits for long moves everything along until it has what it waits for, and only
  /// one can sleep in the transport: the progress thread gives way, for it has nothing to wait for.
  private void sleepInsteadOfProgress() {
    sleepers.incrementAndGet();
    if (progressIsParked) {
      transport.wakeUp();
    }
  }

  private void callProgress() {
    LockSupport.unpark(progress);
    if (progressIsParked) {
      transport.wakeUp();
    }
  }

  /// Lets one of those that nap sleep in the transport.
  private void callNext() {
    for (Nap nap : naps) {
      if (!nap.thread().isVirtual()) {
        LockSupport.unpark(nap.thread());
        return;
      }
    }
  }

  private void pause(Call call, long idleNs, long leftNs, Engine.Turn turn) {
    if (Thread.currentThread().isInterrupted()) {
      interrupt(call);
    } else if (Thread.currentThread().isVirtual()) {
      if (idleNs < YIELD_NS) {
        LockSupport.parkNanos(50_000);
      } else {
        nap(call, idleNs, leftNs, turn);
      }
    } else if (idleNs < SPIN_NS && !oversubscribed) {
      Thread.onSpinWait();
      for (int i = 1; i < LOOKS_PER_SPIN && !call.hasEnded() && call.isAwaitingMemory(); i++) {
        Thread.onSpinWait();
      }
    } else if (idleNs < YIELD_NS) {
      Thread.yield();
    } else if (turn == Engine.Turn.IDLE && parked.compareAndSet(false, true)) {
      park(call, idleNs, leftNs);
    } else { // the transport wakes only who has looked at everything since it announced its sleep
      nap(call, idleNs, leftNs, turn);
    }
  }

  /// Sleeps until the call has ended or something has come for it, or this thread is to sleep in
  /// the transport; briefly where nobody would say so.
  private void nap(Call call, long idleNs, long leftNs, Engine.Turn turn) {
    Nap nap = new Nap(Thread.currentThread(), call);
    naps.add(nap); // before looking who sleeps: that thread looks here when it leaves
    try {
      boolean isCalled = parkedFor != null || Thread.currentThread().isVirtual();
      if (!call.hasEnded() && !call.takeNews()) {
        boolean isLong = isCalled && turn == Engine.Turn.IDLE;
        long ns = isLong ? napNs.applyAsLong(idleNs) : NEXT_LOOK_NS;
        LockSupport.parkNanos(this, Math.min(leftNs, ns));
      }
    } finally {
      naps.remove(nap);
    }
  }

  static long napNs(long idleNs) {
    return Math.clamp(idleNs / IDLE_PER_NAP, NEXT_LOOK_NS, LONG_PARK_NS);
  }

  /// @param call what the thread waits for; null for the progress thread
  /// @param idleNs how long nothing has moved
  /// @param leftNs how long it may wait
  private void park(@Nullable Call call, long idleNs, long leftNs) {
    parkedFor = call;
    progressIsParked = call == null;
    try {
      boolean mayPark =
          call == null
              ? sleepers.get() == 0 && later.isEmpty()
              : !call.hasEnded() && !call.takeNews();
      if (mayPark) { // else nobody may have seen who is parked
        transport.park(Math.min(leftNs, parkNs(idleNs)));
      }
    } catch (Throwable thrown) {
      engine.breakAllBy(thrown);
    } finally {
      parkedFor = null;
      progressIsParked = false;
      parked.set(false);
      wakeBound();
    }
  }

  /// Lets threads look whose calls nobody else moves along: something has come, perhaps for them,
  /// or this one has announced its sleep, and has not looked at what they await.
  private void wakeBound() {
    for (Nap nap : naps) {
      if (nap.call().isBound()) {
        LockSupport.unpark(nap.thread());
      }
    }
  }

  private static long parkNs(long idleNs) {
    return idleNs < LONG_WAIT_NS ? PARK_NS : LONG_PARK_NS;
  }

  /// A thread that does not wait for this call has ended it: what came for the call's own thread
  /// did not wake that one.
  void wake(Call call) {
    if (parkedFor == call) {
      transport.wakeUp();
    }
    if (!naps.isEmpty()) { // an iterator is an object
      endNaps(call);
    }
  }

  private void endNaps(Call call) {
    for (Nap nap : naps) {
      if (nap.call() == call) {
        LockSupport.unpark(nap.thread());
      }
    }
  }

  /// The same where it has got something for it that its own thread must take, which may be just
  /// about to park.
  void wakeToTake(Call call) {
    Call awaited = call.awaited();
    awaited.tellNews();
    wake(awaited);
  }

  /// Lets the progress thread do the work: a virtual thread never spins.
  private boolean sleep(Call call, long nanos) {
    startProgress();
    try {
      return sleepUntilEnded(call, nanos);
    } finally {
      call.leave(Thread.currentThread());
    }
  }

  private boolean sleepUntilEnded(Call call, long nanos) {
    long startNs = System.nanoTime();
    while (!call.hasEnded()) {
      long left = nanos == Long.MAX_VALUE ? nanos : nanos - (System.nanoTime() - startNs);
      if (left <= 0) {
        return false;
      }
      if (Thread.currentThread().isInterrupted()) {
        interrupt(call);
      } else if (engine.nanoTime() - call.deadlineNs() < 0
          || engine.tryAdvance() != Engine.Turn.MOVED) {
        // late calls are for the progress thread to find; if it can't, this one does
        long most = call.willWake(Thread.currentThread()) ? SLEEP_NS : NAP_NS;
        if (!call.hasEnded()) {
          LockSupport.parkNanos(Math.min(left, most));
        }
      }
    }
    return true;
  }

  private void interrupt(Call call) {
    try (var _ = engine.lock()) {
      if (call.hasEnded()) {
        return; // while this thread came here
      }
      call.context.breakWith(
          new InterruptedCallException(
              "rank %d was interrupted in %s of '%s'"
                  .formatted(call.context.rank(), call.describe(), call.context.name())),
          true);
    }
  }

  // --- the progress thread ---

  /// Starts the progress thread, or lets it look again.
  void startProgress() {
    Thread thread = progress;
    if (isAlive(thread)) {
      LockSupport.unpark(thread);
      return;
    }
    try (var _ = engine.lock()) {
      if (!isAlive(progress) && !engine.isClosed()) {
        progress =
            Thread.ofPlatform()
                .daemon()
                .name("comm4j-progress-" + engine.worldRank())
                .start(this::progress);
      }
    }
  }

  private static boolean isAlive(@Nullable Thread thread) {
    return thread != null && thread.isAlive();
  }

  /// Nobody else ends what is asynchronous, so nothing ends this thread but the engine's close.
  /// Where the heap is full, a turn may fail, and the attempt to break the communicators because of
  /// that too: it is made again in the next turn, until there is memory for it.
  private void progress() {
    long movedNs = System.nanoTime();
    Throwable trouble = null;
    while (!engine.isClosed()) {
      try {
        if (trouble != null) {
          engine.breakAllBy(trouble);
          trouble = null;
        }
        movedNs = progress(movedNs);
      } catch (Throwable thrown) {
        trouble = trouble == null ? thrown : trouble;
        LockSupport.parkNanos(this, TROUBLE_NS);
      }
    }
    runLater();
  }

  /// One turn, and the rest behind it.
  ///
  /// @param movedNs when something has moved last
  /// @return the same, afterwards
  private long progress(long movedNs) {
    Engine.Turn turn = engine.tryAdvance();
    var _ = Thread.interrupted(); // an operator has set it
    runLater();
    long now = System.nanoTime();
    long lastNs = turn == Engine.Turn.MOVED ? now : movedNs;
    if (later.isEmpty() && engine.isIdle()) {
      LockSupport.parkNanos(this, SLEEP_NS);
    } else if (turn != Engine.Turn.MOVED) {
      rest(now - lastNs, turn);
    }
    return lastNs;
  }

  private void rest(long idleNs, Engine.Turn turn) {
    if (idleNs < YIELD_NS) {
      Thread.yield();
    } else if (sleepers.get() > 0) {
      LockSupport.parkNanos(this, parkNs(idleNs)); // they call this thread
    } else if (turn == Engine.Turn.IDLE && parked.compareAndSet(false, true)) {
      park(null, idleNs, Long.MAX_VALUE);
    } else {
      LockSupport.parkNanos(this, NEXT_LOOK_NS);
    }
  }

  private void runLater() {
    for (Runnable action = later.poll(); action != null; action = later.poll()) {
      try {
        action.run();
      } catch (Throwable thrown) {
        tellOf(thrown);
      }
      var _ = Thread.interrupted(); // it did not mean the next one; with the flag nothing sleeps
    }
  }

  private static void tellOf(Throwable thrown) {
    try {
      LOG.log(System.Logger.Level.WARNING, "an action on an ended call threw", thrown);
    } catch (Throwable _) {
      // the program's logger fails, or finds no memory: the other actions are to run all the same
    }
  }

  /// Waits until the progress thread has ended; the engine is closed.
  void end() {
    Thread thread = progress;
    if (thread == null) {
      return;
    }
    LockSupport.unpark(thread);
    transport.wakeUp();
    Endings.await(thread, JOIN_NS);
  }
}
