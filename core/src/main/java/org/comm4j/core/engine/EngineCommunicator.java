package org.comm4j.core.engine;

import static org.comm4j.core.engine.CallSignature.Purpose.DUPLICATE;
import static org.comm4j.core.engine.CallSignature.Purpose.LANE;
import static org.comm4j.core.engine.CallSignature.Purpose.SPLIT;
import static org.comm4j.core.engine.CallSignature.Purpose.USER;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.Reduction;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.Topology;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.Session;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.select.Choice;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;

/// The communicator of every wire backend: turns calls into plans and lets the engine run them.
public final class EngineCommunicator implements BackendCommunicator {
  /// What it can do over a transport without [PeerMemory]; with it also [Capability#SHARED_MEMORY].
  public static final Set<Capability> BY_MESSAGES =
      Collections.unmodifiableSet(
          EnumSet.of(
              Capability.SPLIT,
              Capability.SHRINK,
              Capability.POINT_TO_POINT,
              Capability.USER_DEFINED_OPERATORS,
              Capability.EPILOGUE,
              Capability.ORDERED_REDUCTION,
              Capability.HOST_MEMORY,
              Capability.MISMATCH_DETECTION,
              Capability.FAILURE_DETECTION));

  private static final int MOST_PLANS = 64;
  private static final Duration MEETING_SLICE = Duration.ofMillis(50);
  private static final int MOST_ATTEMPTS = 64; // to get a lane that no other thread takes first
  private static final long CLOSE_NS =
      400_000_000L; // a transport has 0.4 s more, see L1 in docs/contract.md

  private final String backend;
  private final Engine engine;
  private final Context context;
  private final Map<Shape, Planned> plans = new HashMap<>(); // guarded by the engine's lock
  private final EndedCalls ended; // of callers, of whom one comes at a time
  private @Nullable EngineSharedMemory sharedMemory;
  private final List<EngineBuffer> buffers = new ArrayList<>();
  private int shrinks;
  private volatile @Nullable Proposal shrinking; // of a shrink() that is not decided
  private Reduction reduction;
  private volatile boolean closed;

  private EngineCommunicator(String backend, Engine engine, Context context) {
    this.backend = backend;
    this.engine = engine;
    this.context = context;
    this.ended = new EndedCalls(context.size());
    this.reduction = engine.config().reduction();
  }

  /// Opens this rank's communicator of all ranks of a session over a transport that connects them.
  ///
  /// @param backend the provider's name
  /// @param session joined; its owner closes it, after the communicator
  /// @param transport of the same ranks; closed with the communicator
  /// @param memory windows of the same ranks, or null where memory can't be read
  public static BackendCommunicator open(
      String backend,
      Session session,
      Transport transport,
      @Nullable PeerMemory memory,
      CommConfig config) {
    return open(backend, session, transport, memory, config, selector(config), System::nanoTime);
  }

  private static Selector selector(CommConfig config) {
    return new Selector(config.tuning().map(Tuning::read).orElseGet(Tuning::none));
  }

  /// The same, with what varies in tests and simulations.
  ///
  /// @param selector chooses the algorithms; must choose the same on all ranks
  /// @param clock in nanoseconds; deadlines are counted on it
  public static BackendCommunicator open(
      String backend,
      Session session,
      Transport transport,
      @Nullable PeerMemory memory,
      CommConfig config,
      Selector selector,
      LongSupplier clock) {
    Engine engine = new Engine(backend, session, transport, memory, config, selector, clock);
    engine.lock();
    try {
      int[] members = IntStream.range(0, transport.size()).toArray();
      Context world = engine.addContext(0, "world", members);
      engine.useFirstLane(world);
      return new EngineCommunicator(backend, engine, world);
    } finally {
      engine.unlock();
    }
  }

  @Override
  public int rank() {
    return context.rank();
  }

  @Override
  public int size() {
    return context.size();
  }

  @Override
  public String name() {
    return context.name();
  }

  @Override
  public String backend() {
    return backend;
  }

  @Override
  public Capabilities capabilities() {
    EnumSet<Capability> supported = EnumSet.copyOf(BY_MESSAGES);
    if (engine.windows() != null) {
      supported.add(Capability.SHARED_MEMORY);
    }
    return new Capabilities(supported, Map.of());
  }

  @Override
  public Topology topology() {
    return Topologies.of(engine.session(), context.members(), engine.config().launcher(), Map.of());
  }

  private HostIdentity host(int rank) {
    return engine.session().member(context.worldRank(rank)).host();
  }

  /// Which algorithm a call would go by here, and why.
  public Choice explain(Collective call) {
    return engine.selector().choose(shape(call));
  }

  @Override
  public boolean useReduction(Reduction wish) {
    reduction = wish;
    ended.clear();
    return true;
  }

  // --- operations ---

  @Override
  public Pending submit(Operation operation) {
    return operation instanceof PointToPoint.Send send && sendAtOnce(send)
        ? Pending.ENDED
        : submit(operation, USER);
  }

  @Override
  public @Nullable Received run(Operation operation) {
    if (operation instanceof Collective collective) {
      if (size() == 1) {
        checkUsable(operation.label());
        Identity.run(collective);
      } else {
        CollectiveCall call = (CollectiveCall) submit(collective, USER, true);
        call.await(Long.MAX_VALUE);
        ended.keep(call);
      }
      return null;
    }
    if (operation instanceof PointToPoint.Send send && sendAtOnce(send)) {
      return null;
    }
    if (operation instanceof PointToPoint.Receive receive) {
      return receive(receive);
    }
    Call call = submit(operation, USER, true);
    call.await(Long.MAX_VALUE);
    return call.received();
  }

  /// Most small messages can be sent without becoming a call in flight.
  private boolean sendAtOnce(PointToPoint.Send send) {
    engine.enter();
    try {
      engine.takeNews();
      checkUsable(send.label());
      return context.sendAtOnce(send);
    } finally {
      engine.unlock();
    }
  }

  private @Nullable Received receive(PointToPoint.Receive receive) {
    Call call;
    engine.enter();
    try {
      engine.takeNews();
      checkUsable(receive.label());
      Received received = context.receiveAtOnce(receive);
      if (received != null) {
        return received;
      }
      checkUsable(receive.label());
      call = context.messages().takeBegun();
      call = call == null ? receive(receive, receive) : call;
      context.start(call, true);
    } catch (MismatchedCallException mismatch) {
      context.breakWith(mismatch, true);
      throw mismatch;
    } finally {
      engine.unlock();
    }
    call.await(Long.MAX_VALUE);
    return call.received();
  }

  private @Nullable Received run(Operation operation, CallSignature.Purpose purpose) {
    Call call = submit(operation, purpose);
    call.await(Long.MAX_VALUE);
    return call.received();
  }

  private Call submit(Operation operation, CallSignature.Purpose purpose) {
    return submit(operation, purpose, false);
  }

  /// @param alone whether the calling thread waits for it and does nothing else; if so, a
  ///   collective that a thread has waited for may be made again
  private Call submit(Operation operation, CallSignature.Purpose purpose, boolean alone) {
    engine.enter();
    try {
      checkUsable(operation.label());
      engine.takeNews();
      checkUsable(operation.label());
      Call call =
          switch (operation) {
            case Collective collective ->
                alone ? startAgain(collective, purpose) : start(collective, purpose, false);
            case PointToPoint message -> start(message, alone);
          };
      context.start(call, alone);
      if (call instanceof CollectiveCall collective) {
        context.started(collective);
      }
      return call;
    } catch (MismatchedCallException mismatch) {
      context.breakWith(mismatch, true);
      throw mismatch;
    } finally {
      engine.unlock();
    }
  }

  private void checkUsable(String label) {
    CommException failure = context.failure();
    if (failure != null) {
      throw failure;
    }
    checkOpen(label);
  }

  private void checkOpen(String label) {
    if (closed || context.isClosed()) {
      throw new ClosedException(label + " on communicator '" + name() + "', which is closed");
    }
  }

  /// Most programs make the same few calls over and over.
  private Call startAgain(Collective call, CallSignature.Purpose purpose) {
    CollectiveCall known = ended.take(call);
    if (known == null) {
      return start(call, purpose, true);
    }
    known.restart(
        call, context.takeSequence(known.signature()), context.takeStages(known.stages()));
    return known;
  }

  private Call start(Collective call, CallSignature.Purpose purpose, boolean awaited) {
    Buffers buffers = new Buffers(call, rank());
    Shape shape = shape(call);
    Planned planned = plan(shape);
    CallSignature signature =
        CallSignature.of(
            shape,
            call instanceof Collective.Barrier ? null : Buffers.type(call),
            CallSignature.op(call),
            purpose,
            planned.algorithm());
    Schedule plan = planned.plan();
    return new CollectiveCall(
        context,
        call,
        shape,
        context.takeSequence(signature),
        signature,
        plan,
        buffers,
        context.takeStages(plan.stages()),
        awaited,
        buffers.boundTo());
  }

  /// Programs call the same few shapes over and over: their plans are kept.
  private Planned plan(Shape shape) {
    Planned known = plans.get(shape);
    if (known != null) {
      return known;
    }
    Algorithm algorithm = engine.selector().choose(shape).algorithm();
    Planned planned = new Planned(algorithm.plan(shape, rank()).kept(), algorithm.name());
    if (plans.size() == MOST_PLANS) {
      plans.clear();
    }
    plans.put(shape, planned);
    return planned;
  }

  private record Planned(Schedule plan, String algorithm) {}

  private Shape shape(Collective call) {
    return Shapes.of(call, rank(), size(), reduction, context.windowBytes(), context.hosts());
  }

  private Call start(PointToPoint operation, boolean awaited) {
    return switch (operation) {
      case PointToPoint.Send send -> send(operation, send, awaited);
      case PointToPoint.Receive receive -> receive(operation, receive);
      case PointToPoint.SendReceive both -> {
        ReceiveCall receive =
            receive(
                operation,
                new PointToPoint.Receive(both.input(), both.source(), both.receiveTag()));
        SendCall send =
            send(
                operation,
                new PointToPoint.Send(both.output(), both.destination(), both.sendTag()),
                awaited);
        context.start(receive, false);
        context.start(send, false);
        yield new ExchangeCall(context, both, send, receive);
      }
      case PointToPoint.Probe probe -> new ProbeCall(context, probe);
    };
  }

  private SendCall send(Operation operation, PointToPoint.Send send, boolean awaited) {
    return context
        .messages()
        .send(operation, send, awaited, Buffers.boundTo(Buffers.segment(send.data())));
  }

  private ReceiveCall receive(Operation operation, PointToPoint.Receive receive) {
    ReceiveCall call = ReceiveCall.of(context, operation, receive);
    context.messages().post(call);
    return call;
  }

  @Override
  public void sync() {
    List<Call> inFlight = callsInFlight();
    for (int i = 0; i < inFlight.size(); i++) { // an iterator would be garbage in each barrier
      inFlight.get(i).await(Long.MAX_VALUE);
    }
    checkUsable("sync");
  }

  private List<Call> callsInFlight() {
    engine.enter();
    try {
      return context.calls();
    } finally {
      engine.unlock();
    }
  }

  /// The calls in flight that peers wait for. What else is pending, nobody will ask for.
  private List<Call> callsOfPeers() {
    engine.enter();
    try {
      return context.calls().stream().filter(Call::concernsPeers).toList();
    } finally {
      engine.unlock();
    }
  }

  /// All-gathers numbers for a purpose of the library's own.
  public long[][] gatherInternal(CallSignature.Purpose purpose, long... mine) {
    long[] all = new long[mine.length * size()];
    if (size() == 1) {
      return new long[][] {mine};
    }
    run(new Collective.AllGather(CommData.of(mine), CommData.of(all)), purpose);
    long[][] rows = new long[size()][];
    for (int rank = 0; rank < rows.length; rank++) {
      rows[rank] = Arrays.copyOfRange(all, rank * mine.length, (rank + 1) * mine.length);
    }
    return rows;
  }

  /// The same among the ranks of this host, in one order with all that [#sharedMemory()] does.
  public long[][] gatherInNode(String label, CallSignature.Purpose purpose, long... mine) {
    return sharedMemoryOfEngine().inNode(label, node -> node.gatherInternal(purpose, mine));
  }

  void barrierInternal(CallSignature.Purpose purpose) {
    if (size() > 1) {
      run(new Collective.Barrier(), purpose);
    }
  }

  // --- groups ---

  @Override
  public Optional<BackendCommunicator> split(int color, int key) {
    return Optional.ofNullable(split(SPLIT, "split", color, key));
  }

  @Override
  public BackendCommunicator duplicate() {
    BackendCommunicator copy = split(DUPLICATE, "copy", 0, 0);
    if (copy == null) {
      throw new IllegalStateException("a duplicate without this rank");
    }
    return copy;
  }

  @Override
  public BackendCommunicator splitLocal() {
    HostIdentity here = host(rank());
    int leader = IntStream.range(0, size()).filter(rank -> host(rank).equals(here)).min().orElse(0);
    BackendCommunicator local = split(SPLIT, "host", leader, 0);
    if (local == null) {
      throw new IllegalStateException("a host without this rank");
    }
    return local;
  }

  private @Nullable BackendCommunicator split(
      CallSignature.Purpose purpose, String label, int color, int key) {
    engine.enter();
    try {
      checkUsable(label);
    } finally {
      engine.unlock();
    }
    return propose(mine -> {
      long[][] all = gatherInternal(purpose, mine.id(), mine.lanes(), mine.flags(), color, key);
      if (color == Communicator.NO_COLOR) {
        return null;
      }
      List<Integer> group =
          IntStream.range(0, size())
              .filter(rank -> all[rank][3] == color)
              .boxed()
              .sorted(Comparator.<Integer>comparingLong(rank -> all[rank][4]).thenComparing(r -> r))
              .toList();
      int[] members = group.stream().mapToInt(context::worldRank).toArray();
      long id = Arrays.stream(all).mapToLong(row -> row[0]).max().orElseThrow();
      List<Proposal> proposals = group.stream().map(rank -> Proposal.of(all[rank])).toList();
      EngineCommunicator made = child(id, label, members, proposals, true);
      breakAlone(made.context);
      return made;
    });
  }

  /// What a rank says when a communicator is to be made.
  ///
  /// @param id of which the greatest is agreed on
  /// @param lanes that the rank could use, as bits
  /// @param flags at least as great as any in those lanes
  record Proposal(long id, long lanes, long flags) {
    static Proposal of(long[] row) {
      return new Proposal(row[0], row[1], row[2]);
    }

    /// Itself and the epoch of the rank, for the session.
    byte[] bytes(int epoch) {
      ByteBuffer bytes = ByteBuffer.allocate(4 * Long.BYTES);
      bytes.putLong(id).putLong(lanes).putLong(flags).putLong(epoch);
      return bytes.array();
    }

    static long[] longs(byte[] bytes) {
      long[] row = new long[bytes.length / Long.BYTES];
      ByteBuffer.wrap(bytes).asLongBuffer().get(row);
      return row;
    }
  }

  /// Makes a communicator, or none, while this rank's proposal for it is open.
  private <T extends @Nullable Object> T propose(Function<Proposal, T> agreement) {
    Proposal mine = proposal();
    try {
      return agreement.apply(mine);
    } finally {
      settle(mine);
    }
  }

  private Proposal proposal() {
    engine.enter();
    try {
      return new Proposal(engine.propose(), engine.freeLanes(), engine.laneFlags());
    } finally {
      engine.unlock();
    }
  }

  private void settle(Proposal proposal) {
    engine.lock();
    try {
      engine.settle(proposal.id());
    } finally {
      engine.unlock();
    }
  }

  /// @param proposals of all members
  /// @param breaksTogether whether it breaks when this one does, until [#breakAlone]: its ranks
  ///   would wait for those that can't come any more
  private EngineCommunicator child(
      long id,
      String label,
      int[] members,
      Collection<Proposal> proposals,
      boolean breaksTogether) {
    EngineCommunicator child;
    engine.enter();
    try {
      String name = name() + "/" + label + "-" + engine.number(id);
      child = new EngineCommunicator(backend, engine, engine.addContext(id, name, members));
      if (breaksTogether) {
        context.breakTogether(child.context);
      }
    } finally {
      engine.unlock();
    }
    child.reduction = reduction;
    if (engine.shareMemory(members)) {
      child.agreeOnLane(proposals);
    }
    return child;
  }

  private void breakAlone(Context other) {
    engine.lock();
    try {
      context.breakAlone(other);
    } finally {
      engine.unlock();
    }
  }

  /// Lets the ranks of a new communicator take a lane, the same on all of them. Where a rank has no
  /// memory for it, or other threads that make communicators take it first, all try another one.
  /// The agreement goes by messages; if the communicator breaks over it, whoever uses it gets to
  /// know.
  private void agreeOnLane(Collection<Proposal> proposals) {
    Collection<Proposal> latest = proposals;
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      long lanes = latest.stream().mapToLong(Proposal::lanes).reduce(-1, (a, b) -> a & b);
      if (lanes == 0) {
        tellOfNoLane();
        return;
      }
      long base = latest.stream().mapToLong(Proposal::flags).max().orElseThrow();
      int lane = pick(lanes, attempt == 0 ? 0 : context.id() + attempt);
      boolean taken;
      Proposal next;
      engine.lock();
      try {
        taken = engine.takeLane(lane, base);
        long free = engine.freeLanes() | (taken ? 1L << lane : 0);
        next = new Proposal(taken ? 1 : 0, free, engine.laneFlags());
      } finally {
        engine.unlock();
      }
      long[][] all = new long[0][];
      try {
        all = gatherInternal(LANE, next.id(), next.lanes(), next.flags());
      } catch (CommException _) {
        // others may have heard of everybody: so the lane stays taken as long as the communicator
      }
      boolean agreed = Arrays.stream(all).allMatch(row -> row[0] == 1);
      if (taken) {
        engine.lock();
        try {
          if (agreed) {
            engine.useLane(context, lane, base);
          } else {
            engine.giveBackLane(lane);
          }
        } finally {
          engine.unlock();
        }
      }
      if (agreed) {
        return;
      }
      latest = Arrays.stream(all).map(Proposal::of).toList();
    }
    // others were always faster; nobody can do anything about that, so it goes by messages silently
  }

  private void tellOfNoLane() {
    engine.lock();
    try {
      engine.tellOfNoLane(name());
    } finally {
      engine.unlock();
    }
  }

  /// One of the bits that are set: the first, or another one, so that communicators that are made
  /// at the same time try different ones.
  private static int pick(long bits, long which) {
    long left = bits;
    for (long skip = which % Long.bitCount(bits); skip > 0; skip--) {
      left &= left - 1;
    }
    return Long.numberOfTrailingZeros(left);
  }

  @Override
  public Shrink shrink() {
    List<Integer> members = Arrays.stream(context.members()).boxed().toList();
    String key = "shrink/" + Long.toHexString(context.scope()) + "/" + shrinks;
    Proposal before = shrinking;
    Proposal mine = before == null ? proposal() : before; // ranks that are late meet the same one
    shrinking = mine;
    Map<Integer, long[]> living = agree(key, members, mine, this::lookAtShrink);
    shrinks++;
    shrinking = null;
    try {
      int[] survivors = members.stream().filter(living::containsKey).mapToInt(r -> r).toArray();
      int epoch = 1 + (int) living.values().stream().mapToLong(row -> row[3]).max().orElseThrow();
      EngineCommunicator made = group("shrunk", survivors, living, false);
      engine.enter();
      try {
        engine.epoch(epoch);
      } finally {
        engine.unlock();
      }
      List<Integer> oldRanks = Arrays.stream(survivors).mapToObj(context::rankOf).toList();
      return new Shrink(made, oldRanks, epoch);
    } finally {
      settle(mine);
    }
  }

  /// Makes a communicator of the ranks of this host, without the others, over the session; it
  /// breaks with this one. Once.
  EngineCommunicator hostGroup() {
    HostIdentity here = host(rank());
    int[] members =
        IntStream.range(0, size())
            .filter(rank -> host(rank).equals(here))
            .map(context::worldRank)
            .toArray();
    return propose(mine -> group("node", members, new HostMeeting(this, members).hold(mine), true));
  }

  /// Throws if the communicator is closed or broken, by what the session knows by now.
  void checkNow(String label) {
    engine.enter();
    try {
      engine.takeNews();
      checkUsable(label);
    } finally {
      engine.unlock();
    }
  }

  private EngineCommunicator group(
      String label, int[] members, Map<Integer, long[]> rows, boolean breaksTogether) {
    List<Proposal> proposals = rows.values().stream().map(Proposal::of).toList();
    long id = proposals.stream().mapToLong(Proposal::id).max().orElseThrow();
    return child(id, label, members, proposals, breaksTogether);
  }

  /// A look that a rank takes now and then while others have not come to an agreement.
  interface Look {
    /// Looks whether there is anything left to wait for.
    ///
    /// @param missing those who have not come, as world ranks
    /// @param isOver whether the time of a call is over
    /// @throws CommException if the wait is over
    void at(List<Integer> missing, boolean isOver);
  }

  /// What ranks say, by world rank; those that are gone say nothing. Can be left, other than a wait
  /// in the session.
  ///
  /// @param members world ranks
  Map<Integer, long[]> agree(String key, List<Integer> members, Proposal proposal, Look look) {
    byte[] mine = proposal.bytes(engine.epoch());
    long sinceNs = engine.nanoTime();
    while (true) {
      try {
        return rows(members, engine.session().agree(key, members, mine, MEETING_SLICE));
      } catch (CollectiveTimeoutException e) {
        look.at(e.missing(), engine.nanoTime() - sinceNs >= engine.timeoutNs());
      }
    }
  }

  private static Map<Integer, long[]> rows(List<Integer> members, List<byte @Nullable []> answers) {
    Map<Integer, long[]> rows = new HashMap<>();
    for (int i = 0; i < answers.size(); i++) {
      byte[] answer = answers.get(i);
      if (answer != null) {
        rows.put(members.get(i), Proposal.longs(answer));
      }
    }
    return rows;
  }

  /// While this rank shrinks; also what is broken can.
  private void lookAtShrink(List<Integer> missing, boolean isOver) {
    checkOpen("shrink");
    if (isOver) {
      List<Integer> late = missing.stream().map(context::rankOf).toList();
      throw new CollectiveTimeoutException(
          late,
          "rank %d waited %.1f s in shrink() of '%s' for rank(s) %s, who are alive but have not called it; all survivors have to"
              .formatted(rank(), engine.timeoutNs() / 1e9, name(), late));
    }
  }

  // --- memory ---

  @Override
  public CommBuffer allocate(DataType type, long count) {
    long bytes = type.bytes(count);
    engine.enter();
    try {
      checkUsable("allocate");
      engine.giveBack();
      Windows windows = engine.windows();
      buffers.removeIf(EngineBuffer::isClosed);
      EngineBuffer buffer =
          windows == null || !engine.isWindowRead() || bytes == 0
              ? PlainBuffer.allocate(engine, type, count)
              : WindowBuffer.allocate(engine, windows, type, count);
      buffers.add(buffer);
      return buffer;
    } finally {
      engine.unlock();
    }
  }

  @Override
  public SharedMemoryProvider sharedMemory() {
    return sharedMemoryOfEngine();
  }

  private EngineSharedMemory sharedMemoryOfEngine() {
    EngineSharedMemory provider = sharedMemory;
    if (provider == null) {
      provider = new EngineSharedMemory(this, engine);
      sharedMemory = provider;
    }
    return provider;
  }

  // --- the end ---

  @Override
  public void abort(CommException failure) {
    engine.enter();
    try {
      context.breakWith(failure, true);
    } finally {
      engine.unlock();
    }
  }

  @Override
  public void leaveCall(AbortedException reason) {
    engine.enter();
    try {
      context.close(); // which tells those who have a part in it
    } finally {
      engine.unlock();
    }
  }

  @Override
  public void abortProcess(int code) {
    engine.session().abortProcesses(code);
  }

  @Override
  public @Nullable CommException failure() {
    if (engine.hasNews()) {
      engine.enter();
      try {
        engine.takeNews();
      } finally {
        engine.unlock();
      }
    }
    return context.failure();
  }

  /// A number that no other communicator of the session has, the same on all its ranks.
  public long scope() {
    return context.scope();
  }

  int[] members() {
    return context.members();
  }

  Engine engine() {
    return engine;
  }

  Context context() {
    return context;
  }

  /// The rank of this communicator that a rank of the session is.
  int rankOf(int worldRank) {
    return context.rankOf(worldRank);
  }

  /// The rank of the session that a rank of this communicator is.
  public int worldRank(int rank) {
    return context.worldRank(rank);
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    long endNs = System.nanoTime() + CLOSE_NS;
    try {
      for (Call call : callsOfPeers()) {
        call.await(Math.max(0, endNs - System.nanoTime()));
      }
    } catch (RuntimeException _) {
      // why it failed was, or will be, thrown to whoever awaits it
    }
    closed = true;
    Proposal undecided = shrinking;
    if (undecided != null) {
      settle(undecided);
    }
    EngineSharedMemory provider = sharedMemory;
    if (provider != null) {
      provider.close();
    }
    engine.remove(context, buffers);
  }
}
