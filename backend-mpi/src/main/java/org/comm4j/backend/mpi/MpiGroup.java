package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.AbortNotice;
import org.comm4j.core.engine.BreakReason;
import org.comm4j.core.kernel.OperatorFailedException;
import org.comm4j.core.kernel.StreamingCopy;
import org.jspecify.annotations.Nullable;

/// What the calls of one communicator share: the library's communicators, who is in it, the calls
/// in flight, and why it is broken. Whoever waits moves every call of the job along.
///
/// The library has two communicators for one of ours, so that no message of a user meets one of a
/// collective.
final class MpiGroup {
  static final long STALL_WARNING_NS = 30_000_000_000L;

  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.mpi");
  private static final long SPIN_NS = 20_000;
  private static final long YIELD_NS =
      100_000_000; // then it no longer asks the library all the time
  private static final long REST_NS = 1_000_000;
  private static final long LOOK_NS = 10_000_000; // between two looks at deadlines
  private static final long ASK_NS = 1_000_000_000; // whether another rank says that it waits
  private static final int PATIENT_LOOKS = 20; // by then what was sent long ago has come

  private final MpiJob job;
  private final String name;
  private final long scope;
  private final int[] members;
  private final int rank;
  private final long collectives;
  private final long messages;
  private final ReentrantLock lock = new ReentrantLock();
  private final StreamingCopy staging = new StreamingCopy(StreamingLoop.ofThisMachine());
  private final ArrayDeque<MpiCall> toPost = new ArrayDeque<>();
  private final List<MpiCall> calls = new ArrayList<>();
  private final List<Requests> spare = new ArrayList<>();
  private final Leavers leavers;
  private final Waiters waiters;
  private final Watchdog.Post post = new Watchdog.Post();
  private final Worker worker;
  private Session.News news = Session.News.NONE;
  private long sequence;
  private long lookNs = System.nanoTime();
  private long askNs = lookNs;
  private boolean hasLost;
  private boolean keepsBits = true; // of the communicator's caller
  private volatile int inFlight;
  private @Nullable MpiCall blocking; // the caller's, in the library
  private volatile boolean closed;
  private volatile boolean leaving; // about to be closed: no more calls begin
  private volatile @Nullable CommException failure;
  private volatile @Nullable MpiGroup followed;

  /// @param scope by which its ranks know it in the session
  /// @param members world ranks
  /// @param collectives the library's communicator for collectives
  /// @param messages its communicator of the same ranks for messages
  MpiGroup(MpiJob job, String name, long scope, int[] members, long collectives, long messages) {
    this.job = job;
    this.name = name;
    this.scope = scope;
    this.members = members;
    this.collectives = collectives;
    this.messages = messages;
    this.rank = rankOf(job.session().rank());
    this.leavers = new Leavers(rank, members.length);
    this.waiters = new Waiters(job, scope, members);
    this.worker = new Worker(name);
    job.add(this);
  }

  /// Of the communicator's caller.
  StreamingCopy staging() {
    return staging;
  }

  MpiJob job() {
    return job;
  }

  Watchdog.Post post() {
    return post;
  }

  Worker worker() {
    return worker;
  }

  String name() {
    return name;
  }

  long scope() {
    return scope;
  }

  int[] members() {
    return members;
  }

  int rank() {
    return rank;
  }

  int size() {
    return members.length;
  }

  long collectives() {
    return collectives;
  }

  long messages() {
    return messages;
  }

  /// Whether the library's all-reduces of floats give all ranks the same bits, as far as was found.
  boolean keepsBits() {
    return keepsBits;
  }

  /// Says so, before the communicator's first reduction.
  void keepsBits(boolean found) {
    keepsBits = found;
  }

  /// The ranks of this host, as the session knows them, in ascending order.
  List<Integer> ranksHere() {
    String here = hostOf(rank);
    return IntStream.range(0, size()).filter(peer -> hostOf(peer).equals(here)).boxed().toList();
  }

  private String hostOf(int peer) {
    return job.session().member(members[peer]).host().id();
  }

  private int rankOf(int worldRank) {
    for (int i = 0; i < members.length; i++) {
      if (members[i] == worldRank) {
        return i;
      }
    }
    return -1;
  }

  // --- the lock ---

  void lock() {
    lock.lock();
  }

  boolean tryLock() {
    return lock.tryLock();
  }

  void unlock() {
    lock.unlock();
  }

  /// Throws if the caller is a user-defined operator: the call that has called it would wait for
  /// itself.
  void refuseOperators() {
    if (lock.isHeldByCurrentThread() || worker.isCurrent()) {
      throw new ConcurrentUseException(
          "a user-defined operator called its communicator '%s' (expected: a pure function of its arguments)"
              .formatted(name));
    }
  }

  // --- calls; the caller holds the lock ---

  /// The number of the next collective, the same on all ranks.
  long nextSequence() {
    return sequence++;
  }

  /// The number that the next collective of the communicator's caller, who asks, will have.
  long upcoming() {
    return sequence;
  }

  /// Puts a collective in flight that the worker runs.
  void startOnWorker(MpiCall call) {
    call.prepareForWorker();
    calls.add(call);
    inFlight = calls.size();
    worker.execute(call);
  }

  /// Puts a call in flight and lets it begin.
  void start(MpiCall call) {
    calls.add(call);
    inFlight = calls.size();
    if (call.isCollective()) {
      toPost.add(call);
    }
    try {
      call.advance();
    } catch (Throwable thrown) {
      breakBy(call, thrown);
    }
  }

  /// Gets a call ready for [#runBlocking], and lets others see what memory it uses.
  void prepareBlocking(MpiCall call) {
    call.prepare();
    blocking = call;
  }

  /// Runs a call in the library's blocking functions, on the caller's thread and without the lock.
  void runBlocking(MpiCall call) {
    setBlocking(call);
    try {
      call.runBlocking();
    } finally {
      setBlocking(null);
    }
  }

  private void setBlocking(@Nullable MpiCall call) {
    lock.lock();
    try {
      blocking = call;
    } finally {
      lock.unlock();
    }
  }

  /// Lets the watchdog see what the caller does in the library, where nothing can be thrown.
  ///
  /// @param call null for what is made by ranks that are on their way
  /// @param number of a collective
  <T extends @Nullable Object> T watched(
      String label, @Nullable Operation call, long number, Supplier<T> body) {
    job.watchdog().start();
    post.enter(label, call, number);
    try {
      return body.get();
    } catch (BackendException e) {
      throw Errors.inCall(e, rank, label, name);
    } finally {
      post.leave();
    }
  }

  /// Makes something by functions of the library that wait for ranks, which have agreed on that and
  /// are on their way, unless the communicator breaks on one of them before it has heard that all
  /// agree. So where waits can be ended it is made on a thread of ours, and given up then.
  ///
  /// @param ranks of this group, this one among them
  /// @param body may go on when it is given up, but does not begin then
  <T extends @Nullable Object> T make(String label, List<Integer> ranks, Supplier<T> body) {
    if (Functions.level() == ThreadLevel.SERIALIZED) {
      try (Turn _ = Turn.take(this, ranks, patience(label))) {
        return watched(label, null, 0, body);
      }
    }
    if (job.waitsInLibrary()) {
      return watched(label, null, 0, body);
    }
    try {
      return worker.run(body, patience(label));
    } catch (BackendException e) {
      throw Errors.inCall(e, rank, label, name);
    } catch (RejectedExecutionException _) {
      throw closed(label);
    }
  }

  /// What throws if something that is no call of ours is not to be waited for any longer: the
  /// communicator is broken, the thread interrupted, or the time over, which begins now.
  Runnable patience(String label) {
    long sinceNs = System.nanoTime();
    return () -> checkPatience(label, sinceNs);
  }

  private void checkPatience(String label, long sinceNs) {
    if (Thread.currentThread().isInterrupted()) {
      breakByInterrupt(label);
    }
    long waitedNs = System.nanoTime() - sinceNs;
    if (waitedNs >= timeoutNs()) {
      breakNow(
          new CollectiveTimeoutException(
              List.of(),
              "rank %d waited %.1f s in %s of '%s' for ranks that have not come; raise COMM_TIMEOUT if they may take longer"
                  .formatted(rank, waitedNs / 1e9, label, name)));
    }
    if (leaving) {
      checkUsableByAllNow(label);
    }
    checkUsable(label);
  }

  private void checkUsableByAllNow(String label) {
    lock.lock();
    try {
      checkUsableByAll(label);
    } finally {
      lock.unlock();
    }
  }

  /// Whether it is a collective's turn to start its next stage.
  boolean isNext(MpiCall call) {
    return toPost.peek() == call;
  }

  /// A collective has started its last stage.
  void posted(MpiCall call) {
    toPost.remove(call);
  }

  /// A call in flight that uses a part of this memory, or null.
  @Nullable MpiCall userOf(MemorySegment memory) {
    lock.lock();
    try {
      MpiCall here = blocking;
      return here != null && here.touches(memory)
          ? here
          : calls.stream().filter(call -> call.touches(memory)).findFirst().orElse(null);
    } finally {
      lock.unlock();
    }
  }

  void ended(MpiCall call) {
    calls.remove(call);
    inFlight = calls.size();
    toPost.remove(call);
  }

  List<MpiCall> calls() {
    return List.copyOf(calls);
  }

  /// Whether nothing is in flight; a hint without the lock.
  boolean isIdle() {
    return inFlight == 0;
  }

  Requests takeRequests(int most) {
    for (int i = spare.size() - 1; i >= 0; i--) {
      if (spare.get(i).most() >= most) {
        return spare.remove(i);
      }
    }
    return new Requests(most);
  }

  void giveBack(Requests requests) {
    if (spare.size() < 8) {
      spare.add(requests);
    }
  }

  /// Requests will never end, as far as we know.
  void lose(CallMemory memory, Requests requests) {
    hasLost = true;
    Library.markLost();
    memory.lose(requests);
  }

  /// Moves every call along once. What is wrong breaks the communicator, whoever's thread it is.
  private boolean advance() {
    try {
      boolean hadNews = takeNews();
      MpiGroup other = followed;
      CommException theirs = other == null ? null : other.failure();
      if (theirs != null) {
        breakWith(theirs, false);
      }
      return advanceCalls() || hadNews;
    } catch (Throwable thrown) {
      breakWith(
          thrown instanceof CommException known
              ? known
              : new AbortedException(rank, "'%s' threw %s".formatted(name, thrown), thrown),
          true);
      return true;
    }
  }

  private boolean advanceCalls() {
    boolean moved = false;
    for (int i = 0; i < calls.size(); i++) {
      MpiCall call = calls.get(i);
      try {
        moved |= call.advance();
      } catch (Throwable thrown) {
        breakBy(call, thrown);
        return true;
      }
      if (i < calls.size() && calls.get(i) != call) {
        i--; // it has ended and left the list
      }
    }
    if (!moved) {
      look();
    }
    return moved;
  }

  /// Moves everything along if no other thread is at it.
  ///
  /// @return whether something moved
  boolean tryAdvance() {
    if (lock.isHeldByCurrentThread() || !lock.tryLock()) {
      return false;
    }
    try {
      return advance();
    } finally {
      lock.unlock();
    }
  }

  // --- waiting ---

  /// Waits until a call has ended.
  ///
  /// @return false if the time is over first
  boolean await(MpiCall call, long nanos) {
    refuseOperators();
    long startNs = System.nanoTime();
    long movedNs = call.idleSince(startNs);
    while (true) {
      boolean moved = tryAdvance();
      if (call.hasEnded()) {
        return true;
      }
      long now = System.nanoTime();
      if (nanos != Long.MAX_VALUE && now - startNs >= nanos) {
        call.waitedIdle(movedNs, now);
        return false;
      }
      if (moved || job.advanceOthers(this)) {
        movedNs = now;
      } else {
        pause(call, now - movedNs, nanos == Long.MAX_VALUE ? nanos : nanos - (now - startNs));
      }
    }
  }

  private void pause(MpiCall call, long idleNs, long leftNs) {
    if (Thread.currentThread().isInterrupted()) {
      breakByInterrupt(call.label());
    } else if (Thread.currentThread().isVirtual()) {
      LockSupport.parkNanos(Math.min(leftNs, 50_000));
    } else if (idleNs < SPIN_NS && !job.isOversubscribed()) {
      Thread.onSpinWait();
    } else if (idleNs < YIELD_NS) {
      Thread.yield();
    } else {
      LockSupport.parkNanos(Math.min(leftNs, REST_NS));
    }
  }

  /// What is looked at only now and then, when nothing moves.
  private void look() {
    long now = System.nanoTime();
    if (now - lookNs < 0) {
      return;
    }
    lookNs = now + LOOK_NS;
    boolean asks = now - askNs >= 0;
    if (asks) {
      askNs = now + Math.min(ASK_NS, timeoutNs() / 100);
    }
    for (MpiCall call : calls()) {
      if (failure == null && !call.hasEnded()) {
        look(call, asks);
      }
    }
  }

  /// A call is given up only after some looks in vain: a rank that has computed instead of waiting
  /// finds what has come for it meanwhile only piece by piece.
  private void look(MpiCall call, boolean asks) {
    long waitedNs = call.elapsedNs();
    int looks = call.countLook();
    if (asks && call.isCollective() && !call.isRegistered()) {
      waiters.register(call, waitedNs);
    }
    if (looks > PATIENT_LOOKS && !leavers.isEmpty()) {
      checkLeft(call);
    }
    if (failure == null && call instanceof MessageCall message) {
      MismatchedCallException contradiction = message.contradiction();
      if (contradiction != null) {
        breakWith(contradiction, true);
      }
    }
    if (failure == null && waitedNs >= timeoutNs() && looks > patientLooks()) {
      List<Integer> missing = waiters.late(call);
      String why =
          missing.isEmpty()
              ? "in which all ranks wait by now, each in its collective #%d; set COMM_CHECK=full to see whether they have called different things, or raise COMM_TIMEOUT if one may come late"
                  .formatted(call.number())
              : "for rank(s) %s, who are alive but have not come; raise COMM_TIMEOUT if they may take longer"
                  .formatted(missing);
      breakWith(
          new CollectiveTimeoutException(
              missing,
              "rank %d waited %.1f s in %s of '%s' %s"
                  .formatted(rank, waitedNs / 1e9, call.label(), name, why)),
          true);
    } else if (failure == null && call.isStalled()) {
      LOG.log(
          System.Logger.Level.WARNING,
          "rank {0} has waited {1} s in {2} of ''{3}'' for rank(s) {4}",
          rank,
          waitedNs / 1_000_000_000,
          call.label(),
          name,
          waiters.late(call));
    }
  }

  private long timeoutNs() {
    return job.timeoutNs();
  }

  /// As many as there are before a short deadline.
  private long patientLooks() {
    return Math.min(PATIENT_LOOKS, timeoutNs() / LOOK_NS / 2);
  }

  /// Breaks the communicator if a call waits for a rank that has left.
  private void checkLeft(MpiCall call) {
    List<Integer> gone = call.neededOf(leavers);
    if (!gone.isEmpty()) {
      breakWith(left(gone, call.label()), true);
    }
  }

  private PeerFailedException left(List<Integer> gone, String label) {
    return new PeerFailedException(
        gone,
        gone.stream().map(peer -> members[peer]).toList(),
        Session.Failure.LEFT + " while " + label + " needs it",
        null);
  }

  /// Why a call in the library can't end but by what is still on its way: it needs a rank that has
  /// left. Null if there is none, as far as is known; [#failure()] takes in news.
  ///
  /// @param number of a collective
  @Nullable PeerFailedException left(Operation call, long number) {
    if (!lock.tryLock()) {
      return null; // at the next look
    }
    try {
      List<Integer> gone =
          call instanceof PointToPoint message
              ? leavers.neededBy(message)
              : leavers.neededBy(number);
      return gone.isEmpty() ? null : left(gone, call.label());
    } finally {
      lock.unlock();
    }
  }

  // --- failure ---

  /// Why it is broken, or null; takes in news.
  @Nullable CommException failure() {
    if (failure == null && job.session().news() != news && lock.tryLock()) {
      try {
        takeNews();
      } finally {
        lock.unlock();
      }
    }
    return failure;
  }

  boolean isClosed() {
    return closed;
  }

  /// Throws if nothing may be called any more.
  void checkUsable(String label) {
    CommException reason = failure();
    if (reason != null) {
      throw reason;
    }
    if (closed || leaving) {
      throw closed(label);
    }
  }

  /// Throws if no collective may begin any more. One whose caller was on its way into it when
  /// another thread closed the communicator is as good as begun, since peers may wait in it: they
  /// are told. The caller holds the lock.
  void checkUsableByAll(String label) {
    if (leaving && failure() == null) {
      tellOfClose(label);
    }
    checkUsable(label);
  }

  private void tellOfClose(String label) {
    String message = "rank %d closed '%s' during %s".formatted(rank, name, label);
    job.session()
        .abort(scope, new AbortNotice(AbortNotice.Kind.ABORT, List.of(), message).encode());
  }

  ClosedException closed(String label) {
    return new ClosedException(label + " on communicator '" + name + "', which is closed");
  }

  /// Breaks the communicator because a call failed on this rank.
  void breakBy(MpiCall call, Throwable thrown) {
    breakWith(
        switch (thrown) {
          case BackendException known -> Errors.inCall(known, rank, call.label(), name);
          case OperatorFailedException operator ->
              threw(call, operator.getMessage(), operator.thrown());
          case CommException known -> known;
          case TruncatedException truncated -> call.truncated(truncated);
          default -> threw(call, "the library threw " + thrown, thrown);
        },
        true);
  }

  private AbortedException threw(MpiCall call, @Nullable String what, Throwable thrown) {
    return new AbortedException(rank, what + " in " + call.label(), thrown);
  }

  /// Breaks the communicator: every call in flight fails. The first reason stays.
  ///
  /// @param tell whether the other ranks don't know it yet
  void breakWith(CommException reason, boolean tell) {
    if (failure != null || closed) {
      return;
    }
    failure = reason;
    if (reason instanceof CollectiveTimeoutException) {
      Library.markAbsent();
    }
    try {
      if (tell) {
        job.session().abort(scope, AbortNotice.of(reason).encode());
      }
    } finally {
      calls().forEach(call -> call.fail(reason));
    }
  }

  /// Does so for a caller that does not hold the lock, and tells the other ranks.
  void breakNow(CommException reason) {
    lock.lock();
    try {
      breakWith(reason, true);
    } finally {
      lock.unlock();
    }
  }

  private void breakByInterrupt(String label) {
    breakNow(
        new InterruptedCallException(
            "rank %d was interrupted in %s of '%s'".formatted(rank, label, name)));
  }

  /// Lets this one, which is the library's own, break as soon as another one has.
  void follow(MpiGroup other) {
    followed = other;
  }

  private boolean takeNews() {
    Session.News now = job.session().news();
    if (now == news) {
      return false;
    }
    news = now;
    take(now);
    return true;
  }

  private void take(Session.News now) {
    for (Session.Failure gone : now.failures()) {
      int peer = rankOf(gone.rank());
      if (!gone.left()) {
        Library.markAbsent();
      } else if (peer >= 0 && !leavers.contains(peer)) {
        leavers.add(peer, job.collectivesOf(gone.rank(), scope));
        calls.forEach(MpiCall::forgetLooks);
      }
    }
    CommException reason = BreakReason.of(now, scope, rank, members, this::rankOf);
    if (reason != null) {
      breakWith(reason, false);
    }
  }

  // --- the end ---

  /// Tells those to whom this rank was sending that what they get may have changed since: the
  /// library can deliver it after the close. In the library's order the notice comes before
  /// whatever this rank sends them later; the session's may come after it.
  private void tellReceivers() {
    for (MpiCall call : calls) {
      if (call instanceof MessageCall message && message.destination() >= 0) {
        Requests notice = new Requests(1);
        int ignored =
            Mpi.isend(
                MemorySegment.NULL,
                0,
                Functions.constants().byteType,
                message.destination(),
                Tags.CLOSED,
                collectives,
                notice.next());
        CallMemory.keep(notice);
      }
    }
  }

  /// Throws if a rank has closed the communicator while it sent what has come from it.
  void checkSender(int source, String label) {
    if (Probe.of(collectives, source, Tags.CLOSED) != null) {
      throw new AbortedException(
          source,
          "rank %d closed '%s' during the send for this %s".formatted(source, name, label),
          null);
    }
  }

  /// Ends the calls in flight because this rank is about to close the communicator.
  ///
  /// @return false, and nothing is done, if peers have a part in one
  boolean endOwnCalls() {
    lock.lock();
    try {
      List<MpiCall> own = calls();
      if (own.stream().anyMatch(MpiCall::concernsPeers)) {
        return false;
      }
      leaving = true;
      endCalls(false);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /// Ends the calls in flight because of a close. Of a receive that its message has matched the
  /// sender hears: the library would wait for this rank.
  ///
  /// @param isTold whether all have heard of the close
  private void endCalls(boolean isTold) {
    var reason = new ClosedException("communicator '" + name + "' was closed");
    boolean isKnown = isTold;
    for (MpiCall call : calls()) {
      boolean isOver = call.fail(reason);
      if (!isOver && !isKnown) {
        tellOfClose(call.label());
        isKnown = true;
      }
    }
  }

  /// Ends the communicator on this rank.
  ///
  /// @return whether the library's communicators can be freed: nothing is in flight in them
  boolean close() {
    lock.lock();
    try {
      if (closed) {
        return false;
      }
      boolean isTold = false;
      for (MpiCall call : calls()) {
        if (failure == null && call.concernsPeers()) {
          tellOfClose(call.label());
          tellReceivers();
          isTold = true;
          break;
        }
      }
      closed = true;
      job.closed(scope, sequence);
      worker.close();
      endCalls(isTold);
      return !hasLost && failure == null;
    } finally {
      lock.unlock();
    }
  }
}
