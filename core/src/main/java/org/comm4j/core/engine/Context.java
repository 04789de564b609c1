package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.AbortedException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CommException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.kernel.OperatorFailedException;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.SplitMix;
import org.jspecify.annotations.Nullable;

/// One communicator inside the engine: its ranks, its calls in flight, what came early, and whether
/// it is broken. Guarded by the engine's lock, but for [#failure()].
final class Context {
  private static final String ALREADY_CLOSED = "Already closed"; // the JDK's word for an arena
  private static final int LOOKS_PER_ADVANCE = 8; // at the transport; it seldom lacks room

  private static final System.Logger LOG = System.getLogger(Context.class.getName());

  private final Engine engine;
  private final long id;
  private final String name;
  private final int[] members;
  private final int rank;
  private final long scope;
  private final Map<Integer, Integer> ranks = new HashMap<>();
  private final boolean isWorld;
  private @Nullable Lane lane;
  private @Nullable Hosts hosts; // where some ranks share memory and some don't
  private long windowBytes; // that one rank can publish at once to all
  private final List<Call> calls = new ArrayList<>();
  private final Map<Long, Map<Early.Key, Early>> early = new HashMap<>(); // by sequence
  private final Messages messages;
  private final KeptPayloads kept;
  private final Inquiries inquiries;
  private final Children children;
  private final BitSet left = new BitSet(); // the session, or this communicator
  private final BitSet closers = new BitSet(); // who have closed this communicator and are there
  private long warnNs; // from when on a stall is worth another warning
  private long nextSequence = 1;
  private long history; // a digest of all collectives so far
  private long nextStage;
  private volatile @Nullable CommException failure;
  private boolean isBreaking; // has begun to, with that
  private boolean isUntold; // to the other ranks, who are to hear of it
  private boolean isPart; // made together with another one, and ends with it
  private boolean isEnding;
  private boolean closed;
  private boolean isLeftInTheMiddle; // which the session tells the others

  /// @param members world ranks, in the order of the communicator's
  Context(Engine engine, long id, String name, int[] members) {
    this.engine = engine;
    this.warnNs = engine.nanoTime();
    this.id = id;
    this.name = name;
    this.members = members;
    // disjoint groups that are made together have one id; with a member it is unique
    this.scope = id * engine.size() + members[0];
    this.isWorld = isIdentity(members);
    int own = -1;
    for (int i = 0; i < members.length; i++) {
      if (!isWorld) {
        ranks.put(members[i], i);
      }
      own = members[i] == engine.worldRank() ? i : own;
    }
    this.rank = own;
    this.messages = new Messages(this);
    this.kept = new KeptPayloads(this);
    this.inquiries = new Inquiries(this);
    this.children = new Children(this);
  }

  private static boolean isIdentity(int[] members) {
    for (int i = 0; i < members.length; i++) {
      if (members[i] != i) {
        return false;
      }
    }
    return true;
  }

  Engine engine() {
    return engine;
  }

  long id() {
    return id;
  }

  String name() {
    return name;
  }

  int rank() {
    return rank;
  }

  int size() {
    return members.length;
  }

  int[] members() {
    return members;
  }

  long scope() {
    return scope;
  }

  int worldRank(int peer) {
    return members[peer];
  }

  /// A world rank's number here; -1 for one that is no member.
  int rankOf(int worldRank) {
    if (isWorld) {
      return worldRank < members.length ? worldRank : -1;
    }
    return ranks.getOrDefault(worldRank, -1);
  }

  Link link(int peer) {
    return engine.link(members[peer]);
  }

  boolean hasLane() {
    return lane != null;
  }

  /// From now on collectives may go by a lane, on all ranks.
  void use(Lane agreed, Windows windows) {
    lane = agreed;
    Hosts where = windows.hosts(members);
    hosts = where.count() == 1 ? null : where;
    windowBytes = where.count() == 1 ? where.windowBytes() : 0;
    if (failure != null) {
      agreed.revoke();
      agreed.over();
    }
  }

  /// Who shares memory and has a lane for it, where some ranks do and some don't; else null.
  @Nullable Hosts hosts() {
    return hosts;
  }

  /// How much one rank can publish at once to all others; 0 where it can't.
  long windowBytes() {
    return windowBytes;
  }

  /// The flag above all that may stand in the lane because of this communicator.
  long laneEnd() {
    return lane().base() + nextStage + 1;
  }

  Lane lane() {
    if (lane == null) {
      throw new IllegalStateException("a peer-memory plan in a communicator without a lane");
    }
    return lane;
  }

  Messages messages() {
    return messages;
  }

  KeptPayloads kept() {
    return kept;
  }

  Inquiries inquiries() {
    return inquiries;
  }

  /// What breaks with this one.
  Children children() {
    return children;
  }

  @Nullable CommException failure() {
    return failure;
  }

  boolean isClosed() {
    return closed;
  }

  /// Whether it keeps this rank in the session: the program has not begun to close it.
  boolean isKept() {
    return !isPart && !isEnding && !closed;
  }

  /// It is made together with another one, and ends with it.
  void becomePart() {
    isPart = true;
  }

  /// The program has begun to close it.
  void beginClose() {
    isEnding = true;
  }

  /// Whether the session tells the others why nothing comes any more.
  boolean isToldBySession() {
    return (failure != null && !isUntold) || isLeftInTheMiddle;
  }

  /// Numbers a collective.
  long takeSequence(CallSignature signature) {
    inquiries.called(nextSequence, signature);
    return nextSequence++;
  }

  /// The number that the next collective will have.
  long nextSequence() {
    return nextSequence;
  }

  /// Takes a collective into the digest of all of them, in the order of their numbers.
  ///
  /// @param call its [CallSignature#digest]
  /// @return that digest
  long takeDigest(long call) {
    history = SplitMix.mixed(history ^ call);
    return history;
  }

  /// Numbers a plan's stages.
  long takeStages(int stages) {
    long first = nextStage;
    nextStage += stages;
    return first;
  }

  /// Takes a call in and does of it what can be done now: not while another one holds the lane.
  ///
  /// @param alone whether the calling thread will do nothing but wait for it
  void start(Call call, boolean alone) {
    if (call.hasEnded()) {
      return;
    }
    CommException broken = failure;
    if (broken != null) { // by what was done to prepare the call, when it was none in flight yet
      call.fail(broken);
      return;
    }
    boolean waits = needsLane(call) && isLaneTaken();
    calls.add(call);
    if (!waits) {
      advance(call);
    }
    if (alone) {
      spin(call);
    }
    if (!call.hasEnded()) {
      call.goOn();
    }
  }

  /// Looks for a few microseconds at nothing but what a call awaits: in its peers' memory, or from
  /// the transport. Most calls of ranks in step end here, and all that a thread does when it waits,
  /// and does with all other calls meanwhile, would cost more than they do.
  private void spin(Call call) {
    boolean byMessages = !needsLane(call) || hosts != null;
    int looks = engine.waiting().looksBeforeWaiting();
    boolean awaitedMemory = false;
    while (looks > 0 && !call.hasEnded()) {
      boolean awaitsMemory = call.isAwaitingMemory();
      boolean polls = byMessages && !awaitsMemory && !awaitedMemory;
      awaitedMemory = awaitsMemory;
      boolean moved = polls && engine.poll(call);
      if (polls ? moved || looks % LOOKS_PER_ADVANCE == 0 : !awaitsMemory) {
        moved |= advance();
      }
      looks = looksLeft(looks, moved);
    }
  }

  /// How many looks are left after one: none where somebody else wants the engine, one less, and a
  /// moment later, where nothing moved.
  private int looksLeft(int looks, boolean moved) {
    if (moved) {
      return engine.isWanted() ? 0 : looks;
    }
    return engine.waiting().pauseBetweenLooks() ? looks - 1 : 0;
  }

  private boolean isLaneTaken() {
    for (int i = 0; i < calls.size(); i++) {
      if (needsLane(calls.get(i))) {
        return true;
      }
    }
    return false;
  }

  private static boolean needsLane(Call call) {
    return call instanceof CollectiveCall collective && collective.usesPeerMemory();
  }

  void ended(Call call) {
    calls.remove(call);
  }

  /// Ends a call with the last of its parts, or lets that thread which alone may.
  void partHasEnded(Call whole) {
    wakeIfElsewhere(whole);
    if (whole.isHere()) {
      advance(whole);
    }
  }

  boolean isIdle() {
    return calls.isEmpty();
  }

  /// Whether more than one call in flight takes messages.
  boolean hasSeveralReceivers() {
    int receivers = 0;
    for (int i = 0; i < calls.size(); i++) {
      Call call = calls.get(i);
      if ((call instanceof ReceiveCall || call instanceof CollectiveCall) && ++receivers > 1) {
        return true;
      }
    }
    return false;
  }

  int callCount() {
    return calls.size();
  }

  /// One in flight, for who walks them without a copy.
  Call call(int index) {
    return calls.get(index);
  }

  List<Call> calls() {
    return calls.isEmpty() ? List.of() : List.copyOf(calls); // a copy of none takes an object too
  }

  /// Says for whom a call waits that takes long, once in a while: the oldest collective, for which
  /// more ranks wait than for a message.
  void warnOfStalls(long now) {
    if (now - warnNs < 0 || calls.isEmpty() || !calls.getFirst().isStalled()) {
      return;
    }
    warnNs = now + Engine.STALL_WARNING_NS;
    List<Call> stalled = calls.stream().filter(Call::isStalled).toList();
    Call named =
        stalled.stream()
            .filter(CollectiveCall.class::isInstance)
            .findFirst()
            .orElse(stalled.getFirst());
    int others = stalled.size() - 1;
    LOG.log(
        System.Logger.Level.WARNING,
        "rank {0} has waited {1} s in {2}{3} of ''{4}'' for rank(s) {5}",
        rank,
        named.elapsedNs() / 1_000_000_000,
        named.describe(),
        others == 0 ? "" : ", and in %d other call(s),".formatted(others),
        name,
        named.late());
  }

  /// Moves every call along, in the order in which they were started. Peer-memory plans take turns,
  /// since they share the lane.
  boolean advance() {
    boolean moved = false;
    boolean laneTaken = false;
    for (int i = 0; i < calls.size(); ) {
      Call call = calls.get(i);
      boolean needsLane = needsLane(call);
      if (call.isHere() && !(needsLane && laneTaken)) {
        moved |= advance(call);
      }
      if (i < calls.size() && calls.get(i) == call) {
        laneTaken |= needsLane;
        i++;
      }
    }
    return moved;
  }

  /// Moves one call along; what it throws breaks the communicator.
  boolean advance(Call call) {
    try {
      return call.advance();
    } catch (Throwable thrown) {
      if (call.waitsInsteadOf(thrown)) {
        return false;
      }
      breakBy(call, thrown);
      return true;
    }
  }

  /// Sends a message if it can go at once; what is thrown breaks the communicator, as in a call.
  boolean sendAtOnce(PointToPoint.Send send) {
    try {
      return messages.sendAtOnce(send);
    } catch (Throwable thrown) {
      breakBy(null, thrown);
      throw failure == null ? new IllegalStateException(thrown) : failure;
    }
  }

  /// Looks for the message of a receive for a few microseconds: most small ones are received
  /// without becoming a call in flight.
  ///
  /// @return null if it has to become one: [Messages#takeBegun], or if that is null too any
  @Nullable Received receiveAtOnce(PointToPoint.Receive receive) {
    if (!messages.beginAwaiting(receive)) {
      return null;
    }
    Received received;
    try {
      lookForAwaited();
    } finally {
      received = messages.endAwaiting(); // else what comes later would go into its memory
    }
    return received;
  }

  private void lookForAwaited() {
    int looks = engine.waiting().looksBeforeWaiting();
    while (looks > 0 && messages.isAwaiting()) {
      boolean moved = engine.pollOne(this); // what comes later is best left where it is
      if (messages.isAwaiting() && (moved || looks % LOOKS_PER_ADVANCE == 0)) {
        moved |= advance();
      }
      looks = looksLeft(looks, moved);
    }
  }

  /// Takes a frame.
  ///
  /// @return whether its payload was kept for later
  boolean deliver(int worldPeer, long[] header, MemorySegment payload) {
    int peer = rankOf(worldPeer);
    if (peer < 0) {
      return false;
    }
    if (failure != null || closed) {
      deliverToEnded(peer, header);
      return false;
    }
    long before = kept.everKept();
    try {
      return dispatch(worldPeer, peer, header, payload);
    } catch (Throwable thrown) {
      breakBy(Frame.isOfMessage(header) ? null : find(Frame.sequence(header)), thrown);
      return kept.everKept() > before;
    }
  }

  /// Takes in who has closed a broken one, for [Groups#shrink()], and answers who asks that of this
  /// rank. One that is closed and still here was closed by leaveCall().
  private void deliverToEnded(int peer, long[] header) {
    switch (Frame.kind(Frame.word(header))) {
      case Frame.CLOSED -> hasClosed(peer);
      case Frame.INQUIRY -> {
        if (closed && (!isToldBySession() || Inquiries.isOfShrink(header))) {
          inquiries.tellClosed(peer);
        } else if (Inquiries.isOfShrink(header)) {
          inquiries.ofShrink(peer);
        }
      }
      default -> {} // nobody waits for it any more
    }
  }

  private void hasClosed(int peer) {
    left.set(peer);
    closers.set(peer);
  }

  private boolean dispatch(int worldPeer, int peer, long[] header, MemorySegment payload) {
    long word = Frame.word(header);
    int aux = Frame.aux(word);
    long sequence = Frame.sequence(header);
    return switch (Frame.kind(word)) {
      case Frame.COLLECTIVE -> collective(peer, header, payload, false);
      case Frame.INQUIRY -> {
        inquiries.deliver(peer, header);
        yield false;
      }
      case Frame.PRESENT -> {
        CollectiveCall call = find(sequence);
        if (call != null) {
          call.isPresent(peer, (int) Frame.what(header), Frame.count(header));
        }
        yield false;
      }
      case Frame.CLOSED -> {
        hasClosed(peer);
        yield false;
      }
      case Frame.REQUEST_COLLECTIVE -> collective(peer, header, payload, true);
      case Frame.GRANT_COLLECTIVE -> {
        CollectiveCall call = find(sequence);
        if (call != null) {
          call.granted(worldPeer, aux);
          wakeIfElsewhere(call);
        }
        yield false;
      }
      case Frame.MESSAGE, Frame.REQUEST_MESSAGE -> messages.deliver(peer, header, payload);
      case Frame.GRANT_MESSAGE -> {
        SendCall granted = findSend(worldPeer, aux, sequence);
        if (granted != null) {
          granted.granted();
          wakeIfElsewhere(granted);
        }
        yield false;
      }
      case Frame.READ_MESSAGE -> {
        SendCall read = findSend(worldPeer, aux, sequence);
        if (read != null) {
          read.read();
          wakeIfElsewhere(read);
        }
        yield false;
      }
      case Frame.KEPT_MESSAGE -> {
        messages.kept(peer, sequence);
        yield false;
      }
      default ->
          throw new TransportFailedException(
              "rank %d sent a frame of the unknown kind %d; do all ranks run the same version?"
                  .formatted(peer, Frame.kind(word)),
              null);
    };
  }

  /// A call can go on, which its own thread alone may take further.
  private void wakeIfElsewhere(Call call) {
    if (!call.isHere()) {
      engine.waiting().wakeToTake(call);
    }
  }

  private @Nullable SendCall findSend(int worldPeer, int tag, long number) {
    for (int i = 0; i < calls.size(); i++) {
      if (calls.get(i) instanceof SendCall send && send.matches(worldPeer, tag, number)) {
        return send;
      }
    }
    return null;
  }

  private boolean collective(int peer, long[] header, MemorySegment payload, boolean request) {
    long sequence = Frame.sequence(header);
    int number = Frame.aux(Frame.word(header));
    long what = Frame.what(header);
    long count = Frame.count(header);
    long detail = Frame.detail(header);
    CollectiveCall call = find(sequence);
    if (call == null && sequence < nextSequence) {
      CallSignature mine = inquiries.past(sequence);
      if (mine != null && (mine.what() != what || mine.detail() != detail)) {
        throw new MismatchedCallException(mine.difference(rank, peer, sequence, what, count));
      }
      throw new MismatchedCallException(
          "rank %d's collective #%d is %s but rank %d has ended its #%d without a message from it"
              .formatted(peer, sequence, CallSignature.describe(what, count), rank, sequence));
    }
    if (call != null
        && (request
            ? call.request(peer, number, what, count, detail)
            : call.accept(peer, number, what, count, detail, payload))) {
      return false;
    }
    if (call != null) {
      engine.waiting().wakeToTake(call); // its thread alone may take it
    }
    Early waiting =
        early
            .computeIfAbsent(sequence, _ -> new HashMap<>())
            .computeIfAbsent(new Early.Key(peer, number), _ -> new Early(what, count, detail));
    if (request) {
      waiting.request();
      return false;
    }
    waiting.add(kept.keep(peer, payload, Frame.isCredited(Frame.word(header))));
    return true;
  }

  /// Compares a collective that begins with what has come for it: its plan may need none of that if
  /// peers call something else.
  ///
  /// @throws MismatchedCallException if one does
  void compareEarly(CollectiveCall begun) {
    Map<Early.Key, Early> here = early.isEmpty() ? null : early.get(begun.sequence());
    if (here != null) {
      here.forEach((key, message) -> begun.compare(key.peer(), message));
    }
  }

  /// The collective of that number, where it is in flight.
  @Nullable CollectiveCall find(long sequence) {
    for (int i = 0; i < calls.size(); i++) {
      if (calls.get(i) instanceof CollectiveCall call && call.sequence() == sequence) {
        return call;
      }
    }
    return null;
  }

  @Nullable Early takeEarly(int peer, long sequence, int number) {
    Map<Early.Key, Early> here = early.isEmpty() ? null : early.get(sequence);
    if (here == null) {
      return null;
    }
    Early taken = here.remove(new Early.Key(peer, number));
    if (here.isEmpty()) {
      early.remove(sequence);
    }
    return taken;
  }

  /// Breaks the communicator because a call failed on this rank.
  private void breakBy(@Nullable Call call, Throwable thrown) {
    boolean isOfOperator = thrown instanceof OperatorFailedException;
    Throwable unwrapped = OperatorFailedException.unwrapped(thrown);
    int closer = closer(call, unwrapped);
    CommException reason =
        switch (unwrapped) {
          case CommException known when !isOfOperator -> known;
          case IllegalStateException closed when closer >= 0 ->
              new AbortedException(
                  closer,
                  "memory of rank %d's %s was closed while that was in flight; await a call before you close what it uses"
                      .formatted(closer, call == null ? name : call.describe()),
                  closed);
          default ->
              new AbortedException(
                  rank,
                  "%s in %s"
                      .formatted(
                          isOfOperator ? thrown.getMessage() : "the library threw " + thrown,
                          call == null ? name : call.describe()),
                  unwrapped);
        };
    breakWith(reason, true);
  }

  private int closer(@Nullable Call call, Throwable thrown) {
    if (call != null) {
      return call.closer();
    }
    return ALREADY_CLOSED.equals(thrown.getMessage()) ? rank : -1;
  }

  /// Breaks the communicator: every call in flight fails. The first reason stays.
  ///
  /// @param tell whether the other ranks don't know it yet
  void breakWith(CommException reason, boolean tell) {
    if (failure != null) {
      finishBreaking();
      return;
    }
    if (closed) {
      return;
    }
    failure = reason;
    isBreaking = true;
    isUntold = tell;
    finishBreaking();
  }

  /// Does what is left to do of a break for which there was no memory.
  void finishBreaking() {
    CommException reason = failure;
    if (!isBreaking || reason == null || closed) {
      return;
    }
    isBreaking = false;
    try {
      tellAndEnd(reason);
    } catch (OutOfMemoryError full) {
      isBreaking = true;
      throw full;
    }
  }

  private void tellAndEnd(CommException reason) {
    if (lane != null) {
      lane.revoke();
    }
    try {
      if (isUntold) {
        engine.session().abort(scope, AbortNotice.of(reason).encode());
        isUntold = false;
      }
    } finally {
      endCalls(reason);
      children.breakWith(reason);
    }
  }

  private void endCalls(RuntimeException reason) {
    for (Call call : calls()) {
      call.fail(reason);
    }
    if (lane != null) {
      lane.over();
    }
    messages.drop();
    early.clear();
    kept.giveBackAll();
  }

  /// Takes in what the session knows of failures.
  void take(Session.News news) {
    if (failure != null || closed) {
      return;
    }
    for (Session.Failure gone : news.failures()) {
      int peer = rankOf(gone.rank());
      if (peer >= 0 && gone.left()) {
        left.set(peer);
      }
    }
    CommException reason = BreakReason.of(news, scope, rank, members, this::rankOf);
    if (reason != null) {
      breakWith(reason, false);
    }
  }

  boolean hasLeft(int peer) {
    return left.get(peer);
  }

  /// Of ranks that are waited for, those who have not left; all, if all have.
  List<Integer> present(List<Integer> ranks) {
    List<Integer> present = ranks.stream().filter(each -> !left.get(each)).toList();
    return present.isEmpty() ? ranks : present;
  }

  /// Adds those who may send what is received from any source: the others, if there are some.
  void addSources(BitSet ranks) {
    ranks.set(0, size());
    ranks.set(rank, size() == 1);
  }

  /// Breaks the communicator if a call waits for a rank that has left and from which nothing more
  /// can come.
  void checkLeft() {
    if (left.isEmpty() || failure != null) {
      return;
    }
    for (Call call : calls) {
      // what has come for a call of another thread, only that one can take
      BitSet lost = call.isHere() ? call.lost(left) : new BitSet();
      if (!lost.isEmpty()) {
        breakWith(lacking(lost.stream().boxed().toList(), call.describe()), true);
        return;
      }
    }
  }

  /// {@return how something ends that needs ranks which have closed this one, or have left}
  CommException lacking(List<Integer> ranks, String what) {
    Optional<Integer> closer = ranks.stream().filter(this::hasOnlyClosed).findFirst();
    return closer.isPresent()
        ? new AbortedException(
            closer.get(),
            "rank %d has closed '%s' while %s needs it".formatted(closer.get(), name, what),
            null)
        : new PeerFailedException(
            ranks,
            ranks.stream().map(peer -> members[peer]).toList(),
            Session.Failure.LEFT + " while " + what + " needs it",
            null);
  }

  private boolean hasOnlyClosed(int peer) {
    try (var _ = engine.lock()) {
      return closers.get(peer) && !engine.isGone(members[peer]);
    }
  }

  /// Tells the others if this rank leaves in the middle of something for which they would wait.
  private void leave() {
    for (Call call : calls) {
      if (failure == null && call.concernsPeers()) {
        isLeftInTheMiddle = true;
        String message = "rank %d closed '%s' during %s".formatted(rank, name, call.describe());
        engine
            .session()
            .abort(scope, new AbortNotice(AbortNotice.Kind.ABORT, List.of(), message).encode());
        return;
      }
    }
  }

  /// Ends the communicator on this rank.
  void close() {
    try {
      finishBreaking(); // or nobody would tell the others
    } finally {
      end();
    }
  }

  private void end() {
    if (!closed) {
      closed = true;
      if (lane != null && isLaneTaken()) {
        lane.revoke(); // peers may still read what the user will change now; leave() tells them why
      }
      leave();
      endCalls(new ClosedException("communicator '" + name + "' was closed"));
      inquiries.tellClosed();
      children.parentClosed();
    }
  }
}
