package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.comm4j.api.Collective;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.KnownOperation;
import org.comm4j.core.kernel.OperatorFailedException;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.jspecify.annotations.Nullable;

/// A collective in flight: runs its plan, one round after the other.
///
/// The messages of one pair of ranks are numbered within the collective, by both sides in the order
/// of the plan, so a payload finds its step by sender and number.
final class CollectiveCall extends Call {
  /// Who borrows memory reads a line more, where it finds which: that takes as long as copying some
  /// kilobytes twice.
  private static final long LEAST_LOAN_BYTES = 4096;

  private final @Nullable ReduceOp op; // null where it does not reduce
  private final Shape shape;
  private long sequence;
  private final CallSignature signature;
  private final long digest; // of it
  private long history; // a digest of it and all collectives before it
  private final boolean varied;
  private final Schedule plan;
  private final Buffers buffers;
  private final PeerTable<int[]> numbers; // {next to send, next to receive} per peer
  private final KnownOperation known = new KnownOperation();
  private long firstStage;
  private boolean awaited; // by the thread that has called it, until it ends

  private boolean begun;
  private boolean asked;
  private int roundIndex;
  private @Nullable Round round;
  private int stepIndex;
  private boolean posted;
  private final List<Outgoing> outgoing = new ArrayList<>(2);
  private final List<Incoming> incoming = new ArrayList<>(2);
  private long lastDirect = -1; // the last index at which peers read memory of the caller
  private MemorySegment theirs = Buffers.NOTHING; // what a step reads of a peer's, while it runs
  private int theirsOf = -1; // that peer, if it is its own memory
  private long theirsAt;
  private MemorySegment copied = Buffers.NOTHING; // that, if it is a copy
  private @Nullable Step blockedAt;
  private boolean doomed; // by a peer whose communicator is broken
  private final Map<Integer, BitSet> present =
      new HashMap<>(0); // whom those that have come wait for

  /// @param firstStage the index of the plan's first stage in the lane
  /// @param awaited whether the calling thread waits until it has ended
  CollectiveCall(
      Context context,
      Collective collective,
      Shape shape,
      long sequence,
      CallSignature signature,
      Schedule plan,
      Buffers buffers,
      long firstStage,
      boolean awaited,
      @Nullable Thread boundTo) {
    super(context, boundTo);
    this.op = CallSignature.op(collective);
    this.shape = shape;
    this.sequence = sequence;
    this.signature = signature;
    this.digest = signature.digest();
    this.history = context.takeDigest(digest);
    this.varied = shape.kind().isVaried();
    this.plan = plan;
    this.buffers = buffers;
    this.firstStage = firstStage;
    this.awaited = awaited;
    this.numbers = new PeerTable<>(context.size(), _ -> new int[2]);
    buffers.allocate(plan, engine.temporary());
  }

  /// Whether this call, which was made by a thread that waited for it, can be made again as `next`.
  boolean canRestart(Collective next) {
    return hasEnded() && failure() == null && (known.isKnown(next) || isLike(next));
  }

  private boolean isLike(Collective next) {
    return CallSignature.op(next) == op // another operator of the same name is another one
        && Buffers.type(next) == buffers.type()
        && Shapes.isOf(shape, next, context.rank());
  }

  /// Runs the same plan again, on the memory of `next`, for a thread that waits for it.
  void restart(Collective next, long newSequence, long newFirstStage) {
    known.note(next);
    buffers.use(next, context.rank());
    begin(buffers.boundTo());
    sequence = newSequence;
    history = context.takeDigest(digest);
    firstStage = newFirstStage;
    awaited = true;
    begun = false;
    asked = false;
    roundIndex = 0;
    round = null;
    lastDirect = -1;
    blockedAt = null;
    numbers.forEach(CollectiveCall::restartNumbers);
    present.clear();
    buffers.allocate(plan, engine.temporary());
  }

  private static void restartNumbers(int[] ofPeer) {
    ofPeer[0] = 0;
    ofPeer[1] = 0;
  }

  Shape shape() {
    return shape;
  }

  CallSignature signature() {
    return signature;
  }

  int stages() {
    return plan.stages();
  }

  /// A message that the current round waits for.
  private static final class Incoming {
    private final int peer;
    private final int number;
    private final Step step;
    private final Slice slice;
    private final Step.Wire wire;
    private long got; // elements
    private boolean done;

    Incoming(int peer, int number, Step step, Slice slice, Step.Wire wire) {
      this.peer = peer;
      this.number = number;
      this.step = step;
      this.slice = slice;
      this.wire = wire;
    }
  }

  long sequence() {
    return sequence;
  }

  boolean usesPeerMemory() {
    return plan.stages() > 0;
  }

  @Override
  boolean isAwaitingMemory() {
    return switch (blockedAt) {
      case Step.AwaitPeer s -> !context.lane().isPublished(s.peer(), firstStage + s.stage());
      case Step.Publish s -> !context.lane().seemDone(before(s));
      case null, default -> false;
    };
  }

  @Override
  String describe() {
    return "collective #" + sequence + ", " + signature;
  }

  @Override
  boolean advance() {
    boolean moved = false;
    if (doomed) {
      return false;
    }
    if (!begun) {
      begun = true;
      if (usesPeerMemory()) {
        context.lane().begin(history);
      }
      context.compareEarly(this);
    }
    while (!hasEnded()) {
      if (round == null) {
        if (roundIndex == plan.rounds()) {
          if (lastDirect >= 0) {
            boolean done = context.lane().areDone(lastDirect);
            checkLent();
            if (!done) {
              return moved;
            }
            context.lane().endLoans();
          }
          buffers.end();
          complete(null);
          return true;
        }
        round = plan.round(roundIndex);
        stepIndex = 0;
        posted = false;
      }
      while (stepIndex < round.stepsInOrder()) {
        Step step = round.stepInOrder(stepIndex);
        if (!run(step)) {
          blockedAt = step;
          checkLent();
          return moved;
        }
        blockedAt = null;
        stepIndex++;
        moved = true;
      }
      if (!round.messages().isEmpty()) {
        if (!posted) {
          posted = true;
          post(round.messages());
        }
        moved |= advanceMessages();
        if (!outgoing.isEmpty() || !incoming.isEmpty()) {
          return moved;
        }
      }
      roundIndex++;
      round = null;
      moved = true;
    }
    return moved;
  }

  /// What peers may be reading, or have read, must not have been closed: they can't always tell.
  private void checkLent() {
    if (lastDirect >= 0 && isMemoryClosed()) {
      throw new IllegalStateException("Already closed"); // as a copy of it would say
    }
  }

  /// A peer whose communicator is broken may have closed or changed the memory that a step reads:
  /// nothing that comes of it counts, and nothing is done any more until why is known.
  @Override
  boolean waitsInsteadOf(Throwable thrown) {
    if (round == null
        || stepIndex == round.stepsInOrder()
        || !(OperatorFailedException.unwrapped(thrown) instanceof RuntimeException)
        || !usesPeerMemory()
        || !context.lane().isRevoked()) {
      return false;
    }
    blockedAt = round.stepInOrder(stepIndex);
    doomed = true;
    return true;
  }

  /// Runs a local or peer-memory step. Those of short calls come first: the cases are tried in this
  /// order.
  ///
  /// @return false if it has to wait
  private boolean run(Step step) {
    switch (step) {
      case Step.Publish s -> {
        return publish(firstStage + s.stage(), s.slice());
      }
      case Step.AwaitPeer s -> {
        return arrived(s.peer(), firstStage + s.stage());
      }
      case Step.FoldPeer s -> {
        if (!findTheirs(s.peer(), s.stage(), s.from(), s.to(), s.wire())) {
          return false;
        }
        buffers.fold(theirs, theirsAt, s.own(), s.to(), s.ownFirst());
        releaseTheirs();
      }
      case Step.FinishPeer s -> {
        if (!findTheirs(s.peer(), s.stage(), s.from(), s.to(), Step.Wire.VALUE)) {
          return false;
        }
        buffers.finish(theirs, theirsAt, s.own(), s.to(), s.ownFirst(), s.divisor());
        releaseTheirs();
      }
      case Step.Done s -> {
        if (context.lane().isRevoked()) {
          return false; // what was read may be wrong; why will be known soon
        }
        context.lane().done(firstStage + s.stage());
      }
      case Step.ReadPeer s -> {
        if (buffers.isPlainCopy(s.wire(), s.to())
            && context.lane().isOnlyCopied(s.peer(), firstStage + s.stage())) {
          return copyTheirs(
              s.peer(),
              s.stage(),
              s.from(),
              s.wire(),
              s.to().count(),
              buffers.whole(s.to()),
              buffers.offset(s.to()));
        }
        if (!findTheirs(s.peer(), s.stage(), s.from(), s.to(), s.wire())) {
          return false;
        }
        buffers.copy(theirs, theirsAt, s.wire(), s.to());
        releaseTheirs();
      }
      case Step.ReducePeer s -> {
        if (!findTheirs(s.peer(), s.stage(), s.from(), s.to(), s.wire())) {
          return false;
        }
        buffers.reduce(theirs, theirsAt, s.wire(), s.to());
        releaseTheirs();
      }
      case Step.Finish s -> buffers.finish(s.from(), s.to(), s.divisor());
      case Step.Copy s -> buffers.copy(s.from(), s.to());
      case Step.Reduce s -> buffers.reduce(s.from(), s.to());
      case Step.Message s ->
          throw new IllegalStateException("a message among steps in order: " + s);
    }
    return true;
  }

  private boolean publish(long index, Slice slice) {
    Lane lane = context.lane();
    long bytes = buffers.bytes(slice);
    if (!lane.areDone(lane.before(index, bytes))) {
      return false;
    }
    MemorySegment data = buffers.whole(slice);
    long from = buffers.offset(slice);
    long where;
    if (bytes <= WindowLayout.INLINE_BYTES) {
      where = lane.putInline(index, data, from, bytes);
    } else {
      where = buffers.isConstant(slice) ? direct(index, data, from, bytes) : 0;
      if (where == 0) {
        where = lane.putStaged(index, data, from, bytes);
      } else {
        lastDirect = index;
      }
    }
    lane.publish(index, sequence, signature, where);
    return true;
  }

  /// Finds what a peer has published: where it is, or, if it can only be copied, as a copy.
  ///
  /// @param from the first element
  /// @param to for as many elements
  /// @return false if it is not there any more
  private boolean findTheirs(int peer, int stage, long from, Slice to, Step.Wire wire) {
    Lane lane = context.lane();
    long index = firstStage + stage;
    if (!lane.isOnlyCopied(peer, index)) {
      theirsOf = peer;
      theirs = lane.memory(peer, index);
      theirsAt = lane.where(peer, index) + from * buffers.wireBytes(wire);
      return true;
    }
    copied = engine.temporary().take(to.count() * buffers.wireBytes(wire));
    theirs = copied;
    theirsAt = 0;
    return copyTheirs(peer, stage, from, wire, to.count(), copied, 0);
  }

  private void releaseTheirs() {
    engine.temporary().giveBack(copied);
    copied = Buffers.NOTHING;
    theirs = Buffers.NOTHING;
    theirsOf = -1;
  }

  /// Copies what a peer has published. Where it is not there any more the peer is gone, or has
  /// failed: why will be known soon.
  private boolean copyTheirs(
      int peer,
      int stage,
      long from,
      Step.Wire wire,
      long count,
      MemorySegment target,
      long targetOffset) {
    Lane lane = context.lane();
    long index = firstStage + stage;
    long bytes = buffers.wireBytes(wire);
    if (lane.copyLent(
        peer, index, lane.where(peer, index) + from * bytes, target, targetOffset, count * bytes)) {
      return true;
    }
    doomed = true;
    couldNotCopy(peer);
    return false;
  }

  private long before(Step.Publish step) {
    return context.lane().before(firstStage + step.stage(), buffers.bytes(step.slice()));
  }

  /// Where peers read the caller's memory itself; 0 if they can't.
  private long direct(long index, MemorySegment data, long from, long bytes) {
    WindowBuffer buffer = engine.bufferOf(data);
    if (buffer != null) {
      return buffer.windowOffset(data) + from;
    }
    return bytes >= LEAST_LOAN_BYTES ? context.lane().lend(index, data, from, bytes, awaited) : 0;
  }

  private boolean arrived(int peer, long index) {
    Lane lane = context.lane();
    if (!lane.isPublished(peer, index)) {
      return false;
    }
    return lane.agrees(peer, index) || isAgreed(lane.difference(peer, index, signature), peer);
  }

  /// A peer has called something else: now, or before.
  private boolean isAgreed(@Nullable String difference, int peer) {
    if (difference != null) {
      throw new MismatchedCallException(difference);
    }
    if (!asked) {
      asked = true;
      context.inquiries().askBefore(peer, sequence); // it will say what
    }
    return false;
  }

  private void post(List<Step.Message> messages) {
    for (int i = 0; i < messages.size(); i++) { // an iterator would be garbage in each call
      switch (messages.get(i)) {
        case Step.Send s -> send(s);
        case Step.Receive s -> receive(s.peer(), s, s.to(), s.wire());
        case Step.ReceiveReduce s -> receive(s.peer(), s, s.to(), s.wire());
        case Step.ReceiveReduceBefore s -> receive(s.peer(), s, s.to(), s.wire());
        case Step.ReceiveFold s -> receive(s.peer(), s, s.to(), s.wire());
      }
    }
  }

  private void send(Step.Send step) {
    int number = Frame.aux(numbers.get(step.peer())[0]++);
    outgoing.add(
        new Outgoing(
            context.link(step.peer()),
            Frame.COLLECTIVE,
            context.id(),
            number,
            sequence,
            signature.what(),
            varied ? step.slice().count() : signature.count(),
            signature.detail(),
            buffers.memory(step.slice()),
            false));
  }

  private void receive(int peer, Step step, Slice slice, Step.Wire wire) {
    Incoming message = new Incoming(peer, Frame.aux(numbers.get(peer)[1]++), step, slice, wire);
    incoming.add(message);
    takeEarly(message);
  }

  /// Takes what came before this step was ready, or while another thread polled that may not touch
  /// the memory.
  ///
  /// @return whether there was anything
  private boolean takeEarly(Incoming message) {
    int peer = message.peer;
    Early early = context.takeEarly(peer, sequence, message.number);
    if (early == null) {
      return false;
    }
    compare(peer, early);
    checkCount(message, early.count());
    for (KeptPayloads.Payload payload : early.payloads()) {
      consume(message, payload.memory());
      context.kept().consumed(peer, payload);
    }
    if (early.isRequested() && !message.done) {
      grant(message);
    }
    if (message.done) {
      incoming.remove(message);
    }
    return true;
  }

  private boolean advanceMessages() {
    boolean moved = false;
    if (isBound()) {
      for (Incoming message : List.copyOf(incoming)) {
        moved |= takeEarly(message);
      }
    }
    for (int i = 0; i < outgoing.size(); i++) {
      Outgoing message = outgoing.get(i);
      moved |= message.advance(engine.header());
      if (message.isDone()) {
        outgoing.remove(i--);
      }
    }
    return moved;
  }

  /// Takes a payload, if its step is waiting for it and this thread may touch the memory.
  ///
  /// @return false to keep it for later
  boolean accept(int peer, int number, long what, long count, long detail, MemorySegment payload) {
    check(peer, what, count, detail);
    Incoming message = isHere() ? find(peer, number) : null;
    if (message == null) {
      return false;
    }
    checkCount(message, count);
    if (isBound()) {
      takeEarly(message);
    }
    consume(message, payload);
    if (message.done) {
      incoming.remove(message);
    }
    return true;
  }

  /// A sender ran out of credit.
  ///
  /// @return false to keep that for later
  boolean request(int peer, int number, long what, long count, long detail) {
    check(peer, what, count, detail);
    Incoming message = isHere() ? find(peer, number) : null;
    if (message == null) {
      return false;
    }
    checkCount(message, count);
    grant(message);
    return true;
  }

  /// Compares with a message that came before this began.
  ///
  /// @throws MismatchedCallException if it is of another call
  void compare(int peer, Early message) {
    check(peer, message.what(), message.count(), message.detail());
  }

  void granted(int worldPeer, int number) {
    for (Outgoing message : outgoing) {
      if (message.matches(worldPeer, number, sequence)) {
        message.grant();
      }
    }
  }

  private void grant(Incoming message) {
    engine.control(
        context.worldRank(message.peer),
        Frame.word(Frame.GRANT_COLLECTIVE, 0, message.number, context.id()),
        sequence);
  }

  private @Nullable Incoming find(int peer, int number) {
    for (int i = 0; i < incoming.size(); i++) {
      Incoming message = incoming.get(i);
      if (message.peer == peer && message.number == number) {
        return message;
      }
    }
    return null;
  }

  /// Refuses what is of another call.
  private void check(int peer, long what, long count, long detail) {
    if (what != signature.what()
        || detail != signature.detail()
        || (!varied && count != signature.count())) {
      throw new MismatchedCallException(
          signature.difference(context.rank(), peer, sequence, what, count));
    }
  }

  /// Where each pair of ranks has a count of its own, refuses another one.
  private void checkCount(Incoming message, long count) {
    if (varied && count != message.slice.count()) {
      throw new MismatchedCallException(
          "rank %d's collective #%d sends %d elements but rank %d expects %d in %s"
              .formatted(
                  message.peer, sequence, count, context.rank(), message.slice.count(), signature));
    }
  }

  private void consume(Incoming message, MemorySegment payload) {
    long elements = payload.byteSize() / buffers.wireBytes(message.wire);
    Slice whole = message.slice;
    if (elements > whole.count() - message.got) {
      throw new MismatchedCallException(
          "rank %d's collective #%d sends more than the %d elements that rank %d expects in %s"
              .formatted(message.peer, sequence, whole.count(), context.rank(), signature));
    }
    Slice part = whole.part(message.got, elements);
    switch (message.step) {
      case Step.ReceiveReduce _ -> buffers.reduce(payload, 0, message.wire, part);
      case Step.ReceiveReduceBefore _ ->
          buffers.reduceBefore(payload, 0, message.wire, part, engine.temporary());
      case Step.ReceiveFold fold ->
          buffers.fold(payload, 0, fold.own().part(message.got, elements), part, fold.ownFirst());
      default -> buffers.copy(payload, 0, message.wire, part);
    }
    message.got += elements;
    message.done = message.got == whole.count();
  }

  @Override
  void missing(BitSet ranks) {
    for (Incoming message : incoming) {
      ranks.set(message.peer);
    }
    for (Outgoing message : outgoing) {
      ranks.set(context.rankOf(message.worldPeer()));
    }
    switch (blockedAt) {
      case Step.AwaitPeer s -> ranks.set(s.peer());
      case Step.Publish s -> notDone(ranks, before(s));
      case null -> {}
      default -> revoked(ranks);
    }
    if (unreadable() >= 0) {
      ranks.set(unreadable());
    }
    if (round == null && roundIndex == plan.rounds() && lastDirect >= 0) {
      notDone(ranks, lastDirect);
    }
  }

  @Override
  boolean mayHaveRevoked(int peer) {
    return context.lane().isRevoked(peer);
  }

  private void revoked(BitSet ranks) {
    for (int peer : context.lane().near()) {
      if (context.lane().isRevoked(peer)) {
        ranks.set(peer);
      }
    }
  }

  private void notDone(BitSet ranks, long index) {
    for (int peer : context.lane().near()) {
      if (!context.lane().isDone(peer, index)) {
        ranks.set(peer);
      }
    }
  }

  /// Asks those that this call waits for, and those that they say they wait for, whether they have
  /// come.
  @Override
  void inquire() {
    for (int peer : chain(false)) {
      context.inquiries().ask(peer, sequence, signature);
    }
  }

  /// A peer has come.
  ///
  /// @param waitsFor whom it waits for, or -1
  /// @param number 0 for the first that it names
  void isPresent(int peer, int waitsFor, long number) {
    BitSet others = present.computeIfAbsent(peer, _ -> new BitSet());
    if (number == 0) {
      others.clear();
    }
    if (waitsFor >= 0 && waitsFor < context.size()) {
      others.set(waitsFor);
    }
  }

  /// Who has not come, as far as is known.
  @Override
  List<Integer> late() {
    List<Integer> absent = chain(true);
    return absent.isEmpty() ? missing() : absent;
  }

  /// Who this call waits for, and who they wait for, and so on.
  ///
  /// @param absent only those that have not come
  private List<Integer> chain(boolean absent) {
    BitSet found = new BitSet();
    BitSet next = new BitSet();
    missing(next);
    next.clear(context.rank());
    for (int peer = next.nextSetBit(0); peer >= 0; peer = next.nextSetBit(0)) {
      next.clear(peer);
      if (!found.get(peer)) {
        found.set(peer);
        BitSet others = present.get(peer);
        if (others != null) {
          next.or(others);
          next.clear(context.rank());
        }
      }
    }
    return found.stream().filter(peer -> !absent || !present.containsKey(peer)).boxed().toList();
  }

  @Override
  @Nullable String contradiction() {
    if (!context.hasLane()) {
      return null;
    }
    for (int peer : context.lane().near()) {
      String sentence = context.lane().contradiction(peer, sequence, signature);
      if (sentence != null) {
        return sentence;
      }
    }
    return null;
  }

  @Override
  boolean concernsPeers() {
    return true;
  }

  @Override
  void release() {
    outgoing.clear();
    incoming.clear();
    releaseTheirs();
    buffers.release(engine.temporary());
  }

  @Override
  boolean isMemoryClosed() {
    return buffers.isClosed();
  }

  /// A peer's, where a step could not find it or had to stop reading it.
  @Override
  int closer() {
    boolean isClosed = theirs.equals(Buffers.NOTHING) || !theirs.scope().isAlive();
    return theirsOf >= 0 && isClosed ? theirsOf : super.closer();
  }

  @Override
  boolean touches(MemorySegment memory) {
    return buffers.touches(memory);
  }
}
