package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.api.Received;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// An operation in flight. Guarded by the engine's lock, but for what waiters look at: how it has
/// ended, and who is to be told.
abstract class Call implements Pending {
  private static final VarHandle DONE;
  private static final long LONGEST_GAP_NS = 1_000_000; // between two slices of a wait

  /// How long a peer whose memory can't be copied may take to be found dead, or to say why: ten
  /// times as long as that takes where the machine is not busy.
  private static final long UNREADABLE_NS = 5_000_000_000L;

  static {
    try {
      DONE = MethodHandles.lookup().findVarHandle(Call.class, "done", boolean.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  final Engine engine;
  final Context context;
  private @Nullable Call whole; // that this is a part of, for which a thread waits instead
  private boolean inFlight; // returned to the caller before it ended
  private long startNs;
  private @Nullable Thread boundTo;
  private @Nullable Received received;
  private @Nullable RuntimeException failure; // before done
  private volatile boolean done; // written by setDone()
  private volatile @Nullable Thread waiter;
  private volatile boolean news; // something has come for the waiter's thread alone
  private List<Runnable> actions = List.of();
  private long askNs;
  private int unreadable = -1; // a peer that lends what could not be copied
  private long unreadableNs; // since when
  private long idleSinceNs; // these two are of the thread that waits
  private long waitedUntilNs;

  /// @param boundTo the only thread that may touch the memory, or null for any
  Call(Context context, @Nullable Thread boundTo) {
    this.engine = context.engine();
    this.context = context;
    begin(boundTo);
  }

  /// Begins, or begins again: only what has ended, and what nobody but the caller knows.
  final void begin(@Nullable Thread onlyThread) {
    boundTo = onlyThread;
    received = null;
    failure = null;
    unreadable = -1;
    inFlight = false;
    setDone(false);
  }

  /// With release only: a volatile store's fence would be a tenth of a short call.
  private void setDone(boolean now) {
    DONE.setRelease(this, now);
  }

  /// Makes it a part of a call that ends once its parts have.
  final void partOf(Call other) {
    whole = other;
  }

  /// What a thread waits for that waits for this.
  final Call awaited() {
    return whole == null ? this : whole;
  }

  /// Goes on after its start, and begins to count the time. A call that ends at once does neither:
  /// looking at the clock, and a fence for those who may wait, would be a tenth of it each.
  final void goOn() {
    inFlight = true;
    startNs = engine.nanoTime();
    askNs = startNs + Engine.ASK_NS;
    waitedUntilNs = startNs - LONGEST_GAP_NS;
  }

  /// Whether it waits for something in a peer's memory that has not come; looked at without the
  /// lock, so it is a hint.
  boolean isAwaitingMemory() {
    return false;
  }

  /// Whether what comes behind its message is best left where it is until it is asked for.
  boolean leavesTheRest() {
    return false;
  }

  /// Does what can be done now.
  ///
  /// @return whether something moved
  abstract boolean advance();

  /// Whether what [#advance] threw may come of a break that this rank will hear of; it is called
  /// again then.
  boolean waitsInsteadOf(Throwable thrown) {
    return false;
  }

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

  /// Whether it takes so long that the user should know.
  final boolean isStalled() {
    return elapsedNs() >= Engine.STALL_WARNING_NS;
  }

  final List<Integer> missing() {
    BitSet ranks = new BitSet();
    missing(ranks);
    return ranks.stream().boxed().toList();
  }

  /// Who has not come, to be named at the deadline.
  List<Integer> late() {
    return context.present(missing());
  }

  /// For whom or what it has waited for too long, and what to do, for messages.
  ///
  /// @param absent those who are [#late]
  String lacks(List<Integer> absent) {
    return Lacks.ofRanks(absent, "come", "");
  }

  /// Whether a thread waits for something else instead, of which this is a part.
  final boolean isPart() {
    return whole != null;
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

  /// Whether its owner has closed memory that it needs.
  boolean isMemoryClosed() {
    return false;
  }

  /// After an exception: whose memory, that it needs, was closed; this rank's, or a peer's that it
  /// was reading; -1 if nobody's.
  int closer() {
    return isMemoryClosed() ? context.rank() : -1;
  }

  /// What a peer has lent could not be copied. Mostly the peer is gone, or has broken the
  /// communicator, and this rank will hear of it.
  final void couldNotCopy(int peer) {
    unreadable = peer;
    unreadableNs = engine.nanoTime();
  }

  /// The peer whose memory could not be copied, in the communicator; -1 if there is none.
  final int unreadable() {
    return unreadable;
  }

  /// Whether a peer may have taken back what it has lent, and tells so when it looks again.
  boolean mayHaveRevoked(int peer) {
    return false;
  }

  /// What has become of it if it lives and says nothing; looked for now and then, else null.
  final @Nullable TransportFailedException couldNotCopyFromTheLiving() {
    boolean isOverdue =
        unreadable >= 0
            && engine.nanoTime() - unreadableNs >= UNREADABLE_NS
            && !mayHaveRevoked(unreadable);
    return isOverdue
        ? new TransportFailedException(
            "rank %d could not copy the memory of rank %d, which lives, in %s of '%s': the kernel forbids it by now (kernel.yama.ptrace_scope, or the process gave up being dumpable), or the file that is mapped there was truncated; set COMM_SHM_SINGLE_COPY=off"
                .formatted(context.rank(), unreadable, describe(), context.name()),
            null)
        : null;
  }

  /// Asks those that it waits for whether they have come; again each time.
  void inquire() {}

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
    if (hasEnded()) {
      return;
    }
    failure = reason;
    release();
    setDone(true);
    context.ended(this);
    if (!inFlight) {
      return; // nobody but this thread knows of it
    }
    VarHandle.fullFence(); // a waiter says that it waits and then looks at what was set above
    LockSupport.unpark(waiter);
    engine.waiting().wake(this);
    if (whole != null) {
      context.partHasEnded(whole);
    }
    if (!actions.isEmpty()) {
      actions.forEach(engine.waiting()::later);
      actions = List.of();
    }
  }

  /// Something has come that the thread alone can take that waits for this.
  final void tellNews() {
    news = true;
  }

  /// Whether that has happened since it was asked last; for that thread.
  final boolean takeNews() {
    boolean has = news;
    news = false;
    return has;
  }

  final boolean hasEnded() {
    return done;
  }

  final @Nullable RuntimeException failure() {
    return failure;
  }

  /// Since when nothing has moved while a thread waited: a wait in slices is one wait, which need
  /// not spin at the start of each.
  final long idleSince(long now) {
    return now - waitedUntilNs < LONGEST_GAP_NS ? idleSinceNs : now;
  }

  /// A thread has waited, and will perhaps wait again.
  final void waitedIdle(long since, long now) {
    idleSinceNs = since;
    waitedUntilNs = now;
  }

  /// A thread is going to sleep until this ends.
  ///
  /// @return false if it has to look by itself, since another one is woken
  final synchronized boolean willWake(Thread thread) {
    if (waiter == null) {
      waiter = thread;
    }
    return waiter == thread;
  }

  /// It waits no more.
  final synchronized void leave(Thread thread) {
    if (waiter == thread) {
      waiter = null;
    }
  }

  @Override
  public final boolean isDone() {
    if (!hasEnded()) {
      engine.tryAdvance();
    }
    return hasEnded();
  }

  @Override
  public final boolean await(long nanos) {
    boolean ended = hasEnded() || engine.waiting().await(this, nanos);
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
  public final void onEnd(Runnable action) {
    try (var _ = engine.lock()) {
      if (!hasEnded()) {
        actions = Stream.concat(actions.stream(), Stream.of(action)).toList();
        engine.waiting().startProgress();
        return;
      }
    }
    action.run();
  }
}
