package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Received;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// A call in flight: its stages, one after the other. Guarded by its group's lock, but for what
/// waiters look at.
class MpiCall implements Pending {
  private static final long LONG_AGO_NS = 1_000_000; // between two slices of a wait

  final MpiGroup group;
  private final String label;
  private final long number;
  private final CallMemory memory;
  private final long startNs;
  private final @Nullable Thread boundTo; // the only thread that may touch the memory
  private final List<Runnable> actions = new ArrayList<>(0);
  private List<Stage> stages;
  private @Nullable Requests requests;
  private int current;
  private boolean running; // the current stage is started
  private volatile boolean isElsewhere; // on the worker's thread, in the library
  private @Nullable RuntimeException failure; // before done
  private volatile @Nullable Received received;
  private volatile boolean done;
  private long warnNs;
  private int looks; // in vain, since it began or a rank left
  private long idleSinceNs; // these two are of the thread that waits
  private long waitedUntilNs;
  private boolean registered;

  /// @param label for messages
  /// @param number of a collective, the same on all ranks
  /// @param memory what the stages use
  MpiCall(MpiGroup group, String label, long number, CallMemory memory, List<Stage> stages) {
    this.group = group;
    this.label = label;
    this.number = number;
    this.memory = memory;
    this.stages = stages;
    this.boundTo = memory.isConfined() ? Thread.currentThread() : null;
    this.startNs = System.nanoTime();
    this.warnNs = startNs + MpiGroup.STALL_WARNING_NS;
    this.waitedUntilNs = startNs - LONG_AGO_NS;
  }

  /// Whether only the thread that made it may touch its memory.
  final boolean isBound() {
    return boundTo != null;
  }

  /// Whether ranks must start it in the same order as all calls of its kind.
  boolean isCollective() {
    return true;
  }

  /// Whether all its stages are started, so that the next collective may begin.
  boolean isPosted() {
    return done || current >= stages.size() || (running && current == stages.size() - 1);
  }

  /// Ranks without which it can't end, as far as this rank knows.
  void missing(BitSet ranks) {
    ranks.set(0, group.size());
    ranks.clear(group.rank());
  }

  /// Those of the ranks that have left without whom it can't end.
  List<Integer> neededOf(Leavers leavers) {
    return leavers.neededBy(number);
  }

  /// Whether peers have a part in it, so that they would wait if this rank left now.
  boolean concernsPeers() {
    return true;
  }

  /// What the message that has come is like, if the call was for one.
  @Nullable Received receive(@Nullable Requests ended) {
    return null;
  }

  final String label() {
    return label;
  }

  final long number() {
    return number;
  }

  final long elapsedNs() {
    return System.nanoTime() - startNs;
  }

  /// Somebody has looked at it in vain.
  ///
  /// @return how often that has happened since it began, or a rank left
  final int countLook() {
    return ++looks;
  }

  /// A rank has left: what it sent before may be on its way still.
  final void forgetLooks() {
    looks = 0;
  }

  /// Whether it is time for another stall warning.
  final boolean isStalled() {
    long now = System.nanoTime();
    if (now - warnNs < 0) {
      return false;
    }
    warnNs = now + MpiGroup.STALL_WARNING_NS;
    return true;
  }

  /// Whether it has said that it waits.
  final boolean isRegistered() {
    return registered;
  }

  final void register() {
    registered = true;
  }

  /// Does what can be done now.
  ///
  /// @return whether something moved
  boolean advance() {
    boolean moved = false;
    if (boundTo != null && boundTo != Thread.currentThread()) {
      return false;
    }
    while (!done && !isElsewhere) {
      if (current == stages.size()) {
        complete();
        return true;
      }
      if (!running) {
        if (isCollective() && !group.isNext(this)) {
          return moved;
        }
        start();
        moved = true;
      }
      if (!requests().test()) {
        return moved;
      }
      endStage();
      moved = true;
    }
    return moved;
  }

  private void start() {
    Stage stage = stages.get(current);
    Requests own = requests();
    own.clear();
    running = true;
    stage.start(own);
    if (isCollective() && isPosted()) {
      group.posted(this);
    }
  }

  private void endStage() {
    running = false;
    if (requests().wasTakenBack()) {
      endTakenBackLate();
      return;
    }
    stages.get(current).end(requests());
    current++;
  }

  /// Its receive has turned out to be taken back, after those who wanted that had stopped waiting
  /// for the answer.
  void endTakenBackLate() {
    end(new CancellationException(label + " was taken back"));
  }

  /// Gets what [#runBlocking] needs; the caller holds the lock.
  final void prepare() {
    var _ = requests();
  }

  /// Says that the worker runs it; the caller holds the lock.
  final void prepareForWorker() {
    prepare();
    isElsewhere = true;
  }

  /// Runs it on the worker's thread: how it ends is for those who await it, and so are deadlines.
  final void runBlockingForOthers() {
    try {
      runBlocking();
    } catch (RuntimeException _) {
      // the call has it
    }
  }

  /// Runs all stages with the library's blocking functions, without the lock; nobody else moves it
  /// along.
  final void runBlocking() {
    Requests own = Objects.requireNonNull(requests);
    boolean inLibrary = false;
    try {
      for (Stage stage : List.copyOf(stages)) {
        own.clear();
        inLibrary = true;
        stage.run(own);
        inLibrary = false;
        if (done) {
          return; // it was ended meanwhile, and stays so
        }
        stage.end(own);
        current++;
      }
      group.lock();
      try {
        if (!done) {
          complete();
        }
      } finally {
        group.unlock();
      }
    } catch (Throwable thrown) {
      group.lock();
      try {
        isElsewhere = false;
        if (inLibrary && !(thrown instanceof TruncatedException)) { // else it may still use it
          memory.lose();
        }
        group.breakBy(this, thrown);
        RuntimeException reason = group.failure();
        reason = reason == null ? group.closed(label) : reason;
        fail(reason);
        throw reason;
      } finally {
        group.unlock();
      }
    }
  }

  /// Those of the current stage; null if none is started.
  final @Nullable Requests running() {
    return running ? requests : null;
  }

  private Requests requests() {
    Requests own = requests;
    if (own == null) {
      int most = 1;
      for (Stage stage : stages) {
        most = Math.max(most, stage.requests());
      }
      own = group.takeRequests(most);
      requests = own;
    }
    return own;
  }

  private void complete() {
    Requests own = requests;
    received = receive(own);
    memory.finish();
    end(null);
  }

  /// Ends it without a result.
  ///
  /// @return whether nothing of it goes on in the library
  final boolean fail(RuntimeException reason) {
    return done || end(reason);
  }

  private boolean end(@Nullable RuntimeException reason) {
    Requests own = requests;
    boolean isLost =
        own != null
            && reason != null
            && isRunning(own)
            && !takeBack(own)
            && isRunning(own); // which taking back may have ended
    if (isLost) {
      group.lose(memory, Objects.requireNonNull(own));
    } else {
      memory.release();
      if (own != null) {
        group.giveBack(own);
      }
    }
    requests = null;
    stages = List.of();
    current = 0;
    failure = reason;
    done = true;
    group.ended(this);
    actions.forEach(group.job()::later);
    actions.clear();
    return !isLost;
  }

  private boolean isRunning(Requests own) {
    return isElsewhere || !own.areEnded();
  }

  /// Ends a call that nothing has matched because the user wants it no more; the caller holds the
  /// lock.
  ///
  /// @return false if it was too late
  final boolean endTakenBack() {
    Requests own = requests;
    if (own != null && running && !takeBack(own)) {
      return false;
    }
    end(new CancellationException(label + " was taken back"));
    return true;
  }

  /// Takes the requests back, if that can be done.
  boolean takeBack(Requests running) {
    return false;
  }

  /// Takes the first request back, a receive.
  ///
  /// @return whether nothing had matched it
  final boolean cancelFirst() {
    Requests own = requests;
    return own != null && running && own.cancel();
  }

  /// What is wrong with a message that did not fit. Of a collective of its own the library does not
  /// tell who sent it.
  MismatchedCallException truncated(TruncatedException found) {
    boolean isOurs = current < stages.size() && stages.get(current) instanceof Exchange;
    return new MismatchedCallException(
        isOurs
            ? "rank %d sent more than rank %d's %s expects (expected: the same counts on all ranks)"
                .formatted(found.source(), group.rank(), label)
            : "another rank's %s of '%s' moves more than rank %d's (expected: the same counts on all ranks); set COMM_CHECK=full to see whose"
                .formatted(label, group.name(), group.rank()));
  }

  final boolean touches(MemorySegment segment) {
    return memory.touches(segment);
  }

  final boolean hasEnded() {
    return done;
  }

  /// Since when nothing has moved: waits are cut into slices.
  final long idleSince(long nowNs) {
    return nowNs - waitedUntilNs < LONG_AGO_NS ? idleSinceNs : nowNs;
  }

  final void waitedIdle(long sinceNs, long untilNs) {
    idleSinceNs = sinceNs;
    waitedUntilNs = untilNs;
  }

  // --- for the API ---

  @Override
  public boolean isDone() {
    if (!done) {
      group.tryAdvance();
    }
    return done;
  }

  @Override
  public boolean await(long nanos) {
    if (!done && !group.await(this, nanos)) {
      return false;
    }
    if (failure != null) {
      throw failure;
    }
    return true;
  }

  @Override
  public @Nullable Received received() {
    return received;
  }

  @Override
  public void onEnd(Runnable action) {
    group.lock();
    try {
      if (!done) {
        actions.add(action);
        group.job().startProgress(); // though nobody waits
        return;
      }
    } finally {
      group.unlock();
    }
    action.run();
  }

  @Override
  public String toString() {
    return label;
  }
}
