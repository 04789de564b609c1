package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.select.Selector;
import org.comm4j.core.session.Processes;
import org.comm4j.core.session.Processors;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;

/// What one rank's communicators of a session share: the transport, the window, the lock, and the
/// loop that moves every operation in flight along, whoever waits.
///
/// There is no thread of its own but the progress thread, which the first asynchronous call that
/// needs it starts ([Waiting]). Everything else is called by threads that wait for something.
final class Engine {
  static final long STALL_WARNING_NS = 30_000_000_000L;
  static final long ASK_NS = 100_000_000;

  // Bytes that may be on their way to one receiver unasked, for groups of usual size: large enough
  // for a pipeline, small enough for 64 peers at once. Large groups get less each.
  private static final long MOST_CREDIT_BYTES = 1 << 20;
  private static final long ALL_CREDIT_BYTES = 8 << 20;

  private static final int POLL_LIMIT = 64;
  private static final int MOST_REMEMBERED = 64;

  private static final long LOOK_NS = 20_000_000;

  private final Transport transport;
  private final Session session;
  private final CommConfig config;
  private final LongSupplier clock;
  private final Selector selector;
  private final @Nullable Windows windows;
  private final @Nullable Offers offers;
  private final boolean isWindowRead; // by any other rank
  private final Lanes lanes;
  private final Waiting waiting;
  private final PeerTable<Link> links;
  private final ReentrantLock lock = new ReentrantLock();
  private final Held held = this::unlock;
  private final long[] header = new long[Transport.HEADER_LONGS];
  private final TemporaryMemory temporary = new TemporaryMemory();
  private final PayloadHandler payloads = this::onPayload;
  private final List<Context> contexts = new ArrayList<>();
  private @Nullable Context polling; // what the thread moves along itself that polls
  private boolean hasTakenForOthers; // since that has begun
  private final List<Link> backlog = new ArrayList<>(); // links with control frames to send
  private final List<Orphan> orphans = new ArrayList<>();
  private final Loans loans = new Loans();
  private final ArrayDeque<Long> broken = new ArrayDeque<>(); // the last ones that ended so
  private final ArrayDeque<Long> ended = new ArrayDeque<>(); // while a proposal is open
  private final List<BooleanSupplier> overdue = new ArrayList<>(); // tries to give memory back
  private final Set<BooleanSupplier> views = new HashSet<>(); // the same, of what peers have lent
  private volatile Session.News news = Session.News.NONE;
  private final TreeSet<Long> proposals = new TreeSet<>(); // of ids, not agreed on yet
  private long proposed;
  private volatile int epoch;
  private long lookNs; // when to look again for what ends calls
  private volatile boolean closed;

  Engine(
      String backend,
      Session session,
      Transport transport,
      @Nullable PeerMemory memory,
      CommConfig config,
      Selector selector,
      LongSupplier clock) {
    this(backend, session, transport, memory, config, selector, clock, Waiting::napNs);
  }

  /// The same, with naps of a test's.
  Engine(
      String backend,
      Session session,
      Transport transport,
      @Nullable PeerMemory memory,
      CommConfig config,
      Selector selector,
      LongSupplier clock,
      LongUnaryOperator napNs) {
    this.session = session;
    this.transport = transport;
    this.config = config;
    this.selector = selector;
    this.clock = clock;
    Windows own = memory == null ? null : new Windows(memory, backend);
    this.windows = own;
    this.offers = own == null ? null : new Offers(own, transport.rank());
    this.isWindowRead = own != null && isWindowRead(own);
    long credit = Math.min(MOST_CREDIT_BYTES, ALL_CREDIT_BYTES / Math.max(1, transport.size()));
    this.links =
        new PeerTable<>(
            transport.size(),
            peer ->
                new Link(
                    transport,
                    peer,
                    Math.max(credit, 2 * Frame.cost(transport.maxPayloadBytes(peer))),
                    backlog));
    this.lanes = new Lanes(own, isWindowRead, this::mayRead, clock);
    this.waiting = new Waiting(this, transport, Processors.areFewerThanRanks(session), napNs);
    this.lookNs = clock.getAsLong();
    session.onNews(transport::wakeUp);
  }

  /// A rank may be alone, on its host too where memory is shared within hosts; and others may read
  /// nothing but regions.
  private boolean isWindowRead(Windows own) {
    if (transport.size() == 1 || !own.memory().carriesCollectives()) {
      return false;
    }
    Hosts hosts = own.hosts(IntStream.range(0, transport.size()).toArray());
    return hosts.count() == 1 || hosts.ranks(hosts.of(transport.rank())) > 1;
  }

  /// A frame for a communicator that this rank has not made yet.
  private record Orphan(int peer, long[] header, MemorySegment payload) {}

  // --- what calls use ---

  long nanoTime() {
    return clock.getAsLong();
  }

  long timeoutNs() {
    return config.timeout().toNanos();
  }

  boolean sendsSynchronously() {
    return config.synchronousSend();
  }

  CommConfig config() {
    return config;
  }

  Session session() {
    return session;
  }

  Selector selector() {
    return selector;
  }

  int worldRank() {
    return transport.rank();
  }

  int size() {
    return transport.size();
  }

  long[] header() {
    return header;
  }

  TemporaryMemory temporary() {
    return temporary;
  }

  @Nullable Windows windows() {
    return windows;
  }

  @Nullable Offers offers() {
    return offers;
  }

  /// Whether buffers belong into this rank's window: others read it.
  boolean isWindowRead() {
    return isWindowRead;
  }

  Lanes lanes() {
    return lanes;
  }

  Waiting waiting() {
    return waiting;
  }

  @Nullable WindowBuffer bufferOf(MemorySegment segment) {
    return windows == null ? null : windows.bufferOf(segment);
  }

  /// Refuses to close memory that an operation in flight uses.
  ///
  /// @param what it is, for the message
  void checkUnused(MemorySegment memory, String what, Object data) {
    Call user = userOf(memory);
    if (user != null) {
      throw new IllegalStateException(
          "%s %s is used by %s, which is in flight; await it first"
              .formatted(what, data, user.describe()));
    }
  }

  /// A call in flight, of any communicator, that uses a part of this memory; null if there is none.
  /// What calls that were ended let peers read need not be kept: the lane is revoked.
  @Nullable Call userOf(MemorySegment memory) {
    for (Context context : contexts) {
      for (Call call : context.calls()) {
        if (call.touches(memory)) {
          return call;
        }
      }
    }
    return null;
  }

  /// Gives memory back now, or once it is no longer in use.
  ///
  /// @param attempt returns whether it could
  void giveBack(BooleanSupplier attempt) {
    views.remove(attempt);
    overdue.add(attempt);
    giveBack();
  }

  /// Gives back what a peer has lent before this engine closes, if nobody does so earlier: a peer
  /// of this process waits for that, though this rank has left.
  ///
  /// @param attempt for [#giveBack(BooleanSupplier)]
  void giveBackAtTheEnd(BooleanSupplier attempt) {
    views.add(attempt);
  }

  /// Gives memory back that was still in use before.
  void giveBack() {
    if (closed || overdue.isEmpty()) {
      return;
    }
    advance();
    overdue.removeIf(attempt -> {
      try {
        return attempt.getAsBoolean();
      } catch (IllegalStateException | CommException _) {
        return false; // a thread of the user's does I/O with it; peers can't be told now
      }
    });
  }

  /// What peers read of this rank's window for as long as they like.
  Loans loans() {
    return loans;
  }

  /// Gives back what a peer has lent to this rank; once the engine is closed that is known anyway.
  void giveBackLoan(int worldPeer, long number) {
    if (!closed) {
      control(worldPeer, Frame.word(Frame.RETURN, 0, 0, 0), number);
    }
  }

  Link link(int worldPeer) {
    return links.get(worldPeer);
  }

  void control(int worldPeer, long word, long sequence) {
    link(worldPeer).control(header, word, sequence, 0, 0, 0);
  }

  /// Payloads that cost credit were consumed or dropped.
  void owe(int worldPeer, long cost) {
    link(worldPeer).owe(header, cost);
  }

  /// Whether a rank has failed or left.
  boolean isGone(int worldRank) {
    return session.news().isGone(worldRank);
  }

  /// Whether a rank may still read what it has opened: it is here, or its process is, whatever has
  /// ended its session. One of this process is no more than a thread: it may have left or failed,
  /// and not have closed what others of the process read.
  boolean mayRead(int worldRank) {
    for (Session.Failure failure : session.news().failures()) {
      if (failure.rank() == worldRank) {
        return isOfThisProcess(worldRank)
            || (!failure.left() && Processes.mayGoOn(session, failure));
      }
    }
    return true;
  }

  private boolean isOfThisProcess(int worldRank) {
    Session.Member here = session.member(session.rank());
    Session.Member there = session.member(worldRank);
    return there.pid() == here.pid() && there.host().equals(here.host());
  }

  // --- the lock ---

  /// The lock while it is held; closing gives it back. Always the same object.
  interface Held extends AutoCloseable {
    @Override
    void close();
  }

  Held lock() {
    lock.lock();
    return held;
  }

  void unlock() {
    lock.unlock();
  }

  /// The lock for a call of the user.
  ///
  /// @throws ConcurrentUseException if the caller is a user-defined operator
  Held enter() {
    refuseOperators();
    return lock();
  }

  /// @throws ConcurrentUseException if the caller is a user-defined operator
  void refuseOperators() {
    if (lock.isHeldByCurrentThread()) {
      throw new ConcurrentUseException(
          "a user-defined operator called into the library (expected: a pure function of its"
              + " arguments)");
    }
  }

  /// Whether another thread wants the lock, or the session has news.
  boolean isWanted() {
    return lock.hasQueuedThreads() || hasNews();
  }

  // --- communicators ---

  /// Proposes an id for a communicator that does not exist yet, until [#settle]. Its ranks agree on
  /// the greatest of their proposals: since no rank proposes the same for two communicators, nor
  /// two ranks the same at all, it is given once, however many threads agree at the same time.
  /// Communicators of disjoint groups may be made by one agreement and have one id.
  long propose() {
    long id = ++proposed * size() + worldRank();
    proposals.add(id);
    return id;
  }

  /// Ends what a proposal was for, with a communicator or without.
  void settle(long proposal) {
    proposals.remove(proposal);
    if (proposals.isEmpty()) {
      ended.clear();
    }
    if (!closed) { // by another thread meanwhile
      deliverOrphans();
    }
  }

  private void deliverOrphans() {
    List<Orphan> waiting = List.copyOf(orphans);
    orphans.clear();
    waiting.forEach(orphan -> onPayload(orphan.peer(), orphan.header(), orphan.payload()));
  }

  /// Whether this rank may be about to make the communicator: what is agreed on is not less than
  /// what was proposed.
  private boolean isExpected(long id) {
    return !proposals.isEmpty() && id >= proposals.first() && !ended.contains(id);
  }

  /// The part of an id that grows, for names.
  long number(long id) {
    return id / size();
  }

  int epoch() {
    return epoch;
  }

  void epoch(int agreed) {
    epoch = Math.max(epoch, agreed);
  }

  /// Makes a communicator that its ranks have agreed on.
  ///
  /// @param id given to no other one that has a rank in common with it
  /// @param members world ranks
  Context addContext(long id, String name, int[] members) {
    if (find(id) != null || id > Frame.LAST_CONTEXT) {
      throw new IllegalStateException(
          "communicator '%s' got the id %d (expected: one that no other has, at most %d)"
              .formatted(name, id, Frame.LAST_CONTEXT));
    }
    proposed = Math.max(proposed, number(id)); // what is proposed from now on is greater
    Context context = new Context(this, id, name, members);
    contexts.add(context);
    context.take(session.news());
    deliverOrphans();
    return context;
  }

  /// Ends a communicator and its buffers; with the last one everything ends.
  void remove(Context context, List<EngineBuffer> buffers) {
    boolean last = false;
    try (var _ = lock()) {
      try {
        context.close();
      } finally { // also without memory
        last = forget(context, buffers);
      }
    } finally {
      if (last) {
        close();
      }
    }
  }

  /// {@return whether it was the last one}
  private boolean forget(Context context, List<EngineBuffer> buffers) {
    if (context.isToldBySession()) {
      remember(context, broken);
    }
    if (contexts.remove(context)) {
      lanes.retire(context);
      if (!proposals.isEmpty()) {
        remember(context, ended);
      }
    }
    buffers.removeIf(EngineBuffer::isClosed);
    buffers.forEach(buffer -> overdue.add(buffer::end));
    buffers.clear();
    boolean last = contexts.isEmpty();
    if (last) {
      overdue.addAll(views);
    }
    giveBack();
    return last;
  }

  /// Whether this rank stays in the session. With its last communicator it leaves, and who still
  /// needs it is told that by the session, not that it has closed one.
  boolean isKept() {
    return contexts.stream().anyMatch(Context::isKept);
  }

  private static void remember(Context context, ArrayDeque<Long> last) {
    last.add(context.id());
    if (last.size() > MOST_REMEMBERED) {
      last.remove();
    }
  }

  private @Nullable Context find(long id) {
    for (int i = 0; i < contexts.size(); i++) {
      if (contexts.get(i).id() == id) {
        return contexts.get(i);
      }
    }
    return null;
  }

  // --- the loop ---

  /// Moves everything along once; the caller holds the lock. What goes wrong breaks every
  /// communicator: nobody knows what has become of their payloads.
  ///
  /// @return whether something moved
  boolean advance() {
    return advance(POLL_LIMIT);
  }

  private boolean advance(int limit) {
    try {
      boolean moved = takeNews();
      moved |= poll(limit);
      for (int i = 0; i < contexts.size(); i++) {
        moved |= contexts.get(i).advance();
      }
      for (int i = 0; i < backlog.size(); i++) {
        moved |= backlog.get(i).flush(header);
        if (!backlog.get(i).hasControls()) {
          backlog.remove(i--);
        }
      }
      if (!moved) {
        look();
      }
      return moved;
    } catch (Throwable thrown) {
      breakAll(thrown);
      return true;
    }
  }

  /// Takes what has come; the caller holds the lock. Who waits for some of that, in the transport
  /// or nowhere, does not hear of it: such calls are moved along here.
  ///
  /// @return whether there was anything
  boolean poll() {
    return pollFor(null, POLL_LIMIT);
  }

  /// Does the same for a thread that waits for a call, and moves its communicator along itself.
  boolean poll(Call awaited) {
    return pollFor(awaited.context, pollLimit(awaited));
  }

  /// Takes one payload at most, for a thread that moves this communicator along itself.
  boolean pollOne(Context own) {
    return pollFor(own, 1);
  }

  private boolean pollFor(@Nullable Context own, int limit) {
    polling = own;
    hasTakenForOthers = false;
    boolean moved = poll(limit);
    polling = null;
    if (hasTakenForOthers) {
      advanceOthers(own);
    }
    return moved;
  }

  private void advanceOthers(@Nullable Context own) {
    try {
      for (int i = 0; i < contexts.size(); i++) {
        if (contexts.get(i) != own) {
          contexts.get(i).advance();
        }
      }
    } catch (Throwable thrown) {
      breakAll(thrown);
    }
  }

  /// How many payloads a thread that waits for a call takes at a time. What comes behind an awaited
  /// message is left where it is, unless others may want it: kept for a receive to come it would be
  /// copied twice.
  private int pollLimit(Call awaited) {
    return awaited.leavesTheRest() && isAlone(awaited.context) ? 1 : POLL_LIMIT;
  }

  /// Whether at most one call of this communicator takes messages, and none of another one does.
  private boolean isAlone(Context context) {
    for (int i = 0; i < contexts.size(); i++) {
      Context each = contexts.get(i);
      if (each == context ? each.hasSeveralReceivers() : !each.isIdle()) {
        return false;
      }
    }
    return true;
  }

  private boolean poll(int limit) {
    try {
      return transport.poll(payloads, limit) > 0;
    } catch (Throwable thrown) {
      breakAll(thrown);
      return true;
    }
  }

  private void onPayload(int peer, long[] frame, MemorySegment payload) {
    long word = Frame.word(frame);
    switch (Frame.kind(word)) {
      case Frame.CREDIT -> {
        link(peer).refill(Frame.sequence(frame));
        return;
      }
      case Frame.RETURN -> {
        loans.returned(peer, Frame.sequence(frame));
        return;
      }
      default -> {} // of a context
    }
    Context context = find(Frame.context(word));
    if (context == null && isExpected(Frame.context(word))) {
      orphans.add(new Orphan(peer, frame.clone(), copy(payload)));
      return;
    }
    if (context == null && Frame.kind(word) == Frame.INQUIRY) {
      if (broken.contains(Frame.context(word)) && !Inquiries.isOfShrink(frame)) {
        return; // why is known to the session, and soon to who asks
      }
      if (isKept()) {
        control(peer, Frame.word(Frame.CLOSED, 0, 0, Frame.context(word)), 0);
      }
      return;
    }
    hasTakenForOthers |= context != polling;
    boolean kept = context != null && context.deliver(peer, frame, payload);
    if (!kept && Frame.isCredited(word)) {
      owe(peer, Frame.cost(payload.byteSize()));
    }
  }

  private static MemorySegment copy(MemorySegment segment) {
    return MemorySegment.ofArray(segment.toArray(java.lang.foreign.ValueLayout.JAVA_BYTE));
  }

  /// Whether the session knows what this engine has not taken in.
  boolean hasNews() {
    return session.news() != news;
  }

  /// Takes in what the session knows.
  ///
  /// @return whether there was anything new
  boolean takeNews() {
    if (!hasNews()) {
      return false;
    }
    Session.News now = session.news();
    news = now;
    for (Context context : List.copyOf(contexts)) {
      context.take(now);
    }
    return true;
  }

  /// What is looked at only now and then, when nothing moves.
  private void look() {
    long now = nanoTime();
    if (now - lookNs < 0) {
      return;
    }
    lookNs = now + LOOK_NS;
    for (int i = 0; i < contexts.size(); i++) {
      Context context = contexts.get(i);
      context.checkLeft();
      for (int j = 0; j < context.callCount(); j++) { // none once one has broken it
        look(context, context.call(j), now);
      }
      context.warnOfStalls(now);
    }
  }

  private void look(Context context, Call call, long now) {
    String contradiction = call.contradiction();
    TransportFailedException forbidden = call.couldNotCopyFromTheLiving();
    if (contradiction != null) {
      context.breakWith(new MismatchedCallException(contradiction), true);
    } else if (forbidden != null) {
      context.breakWith(forbidden, true);
    } else if (now - call.deadlineNs() >= 0) {
      List<Integer> missing = call.late();
      context.breakWith(
          new CollectiveTimeoutException(
              missing,
              "rank %d waited %.1f s in %s of '%s' for %s"
                  .formatted(
                      context.rank(),
                      call.elapsedNs() / 1e9,
                      call.describe(),
                      context.name(),
                      call.lacks(missing))),
          true);
    } else if (call.isSlow()) {
      call.inquire();
    }
  }

  /// Breaks every communicator, for a thread that has not the lock.
  void breakAllBy(Throwable thrown) {
    try (var _ = lock()) {
      breakAll(thrown);
    }
  }

  /// Breaks every communicator; the caller holds the lock. If this throws, another attempt ends
  /// what it has left.
  void breakAll(Throwable thrown) {
    for (Context context : List.copyOf(contexts)) {
      context.finishBreaking();
      context.breakWith(
          thrown instanceof TransportFailedException known
              ? known
              : new TransportFailedException(
                  "rank %d can't go on: its transport, or the library, threw %s"
                      .formatted(context.rank(), thrown),
                  thrown),
          true);
    }
  }

  /// What became of an attempt to move everything along.
  enum Turn {
    MOVED,
    /// Looked at everything and found nothing to do.
    IDLE,
    /// Another thread has the lock; it may look at its own call alone.
    BUSY
  }

  /// Moves everything along if no other thread is at it.
  Turn tryAdvance() {
    return tryAdvance(null);
  }

  /// Does the same for a thread that waits for a call.
  Turn tryAdvance(@Nullable Call awaited) {
    if (lock.isHeldByCurrentThread() || !lock.tryLock()) {
      return Turn.BUSY;
    }
    try {
      boolean moved = advance(awaited == null ? POLL_LIMIT : pollLimit(awaited));
      return moved ? Turn.MOVED : Turn.IDLE;
    } finally {
      lock.unlock();
    }
  }

  /// Whether nothing is in flight.
  boolean isIdle() {
    try (var _ = lock()) {
      for (int i = 0; i < contexts.size(); i++) {
        if (!contexts.get(i).isIdle()) {
          return false;
        }
      }
      return true;
    }
  }

  // --- the end ---

  boolean isClosed() {
    return closed;
  }

  private void close() {
    try (var _ = lock()) {
      if (closed) {
        return;
      }
      closed = true;
      if (windows != null) {
        windows.buffers().forEach(Engine::end);
      }
    }
    waiting.end();
    transport.close();
  }

  private static void end(WindowBuffer buffer) {
    try {
      buffer.end();
    } catch (IllegalStateException _) {
      // a thread of the user's does I/O with it, and the transport waits for that
    }
  }
}
