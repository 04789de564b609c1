package org.comm4j.core.engine;

import static org.comm4j.core.engine.CallSignature.Purpose.DUPLICATE;
import static org.comm4j.core.engine.CallSignature.Purpose.SPLIT;
import static org.comm4j.core.engine.CallSignature.Purpose.USER;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.Reduction;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.Topology;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.Session;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Choice;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
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

  /// Of the plans together; a step takes some 60 to 110 bytes, its part of the round included.
  private static final int MOST_STEPS = 6144;

  /// Of one plan. The rounds of others are computed in each call, at 15 ns a step, which then moves
  /// some kilobytes.
  private static final int MOST_STEPS_OF_ONE = MOST_STEPS / 2;

  private static final long CLOSE_NS =
      400_000_000L; // a transport has 0.4 s more, see L1 in docs/contract.md

  private final String backend;
  private final Engine engine;
  private final Context context;
  private final Map<Shape, Planned> plans = new HashMap<>(); // guarded by the engine's lock
  private int steps; // of the plans
  private final EndedCalls ended; // of callers, of whom one comes at a time
  private @Nullable EngineSharedMemory sharedMemory;
  private final List<EngineBuffer> buffers = new ArrayList<>();
  private final Groups groups;
  private Reduction reduction;
  private volatile boolean closed;

  private EngineCommunicator(String backend, Engine engine, Context context) {
    this.backend = backend;
    this.engine = engine;
    this.context = context;
    this.ended = new EndedCalls(context.size());
    this.groups = new Groups(this);
    this.reduction = engine.config().reduction();
  }

  /// Opens this rank's communicator of all ranks of a session over a transport that connects them.
  ///
  /// @param backend the provider's name
  /// @param session joined; its owner closes it, after the communicator
  /// @param transport of the same ranks; closed with the communicator, and if this fails
  /// @param memory windows of the same ranks, or null where memory can't be read
  public static BackendCommunicator open(
      String backend,
      Session session,
      Transport transport,
      @Nullable PeerMemory memory,
      CommConfig config) {
    try {
      Selector selector = new Selector(Tuning.of(config));
      return open(backend, session, transport, memory, config, selector, System::nanoTime);
    } catch (Throwable thrown) {
      transport.close();
      throw thrown;
    }
  }

  /// How much at the beginning of its window a rank needs for the first communicator, where any
  /// other reads it: a transport that reserves so much while ranks still open together tells all of
  /// them when one has no memory for it.
  ///
  /// @param windowBytes of each window
  public static long firstBytes(long windowBytes) {
    WindowLayout layout = WindowLayout.of(windowBytes);
    return layout.hasLanes() ? layout.staging(1, 0) : 0;
  }

  /// The same, with what varies in tests and simulations, which close the transport if this fails.
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
    try (var _ = engine.lock()) {
      int[] members = IntStream.range(0, transport.size()).toArray();
      Context world = engine.addContext(0, "world", members);
      engine.lanes().useFirst(world);
      return new EngineCommunicator(backend, engine, world);
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

  /// Whether a rank runs where this one does, whatever each calls that host.
  boolean isOnThisHost(int rank) {
    return idOfHost(rank).equals(idOfHost(rank()));
  }

  /// Those of this host, in order.
  IntStream ranksHere() {
    return IntStream.range(0, size()).filter(this::isOnThisHost);
  }

  private String idOfHost(int rank) {
    return engine.session().member(context.worldRank(rank)).host().id();
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
    if (operation instanceof Collective collective && size() == 1) {
      checkUsable(operation.label());
      Identity.run(collective);
      return Pending.ENDED;
    }
    return operation instanceof PointToPoint.Send send && sendAtOnce(send)
        ? Pending.ENDED
        : submit(operation, USER, false);
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
      call = call == null ? receiving(receive) : call;
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

  /// @param alone whether the calling thread waits for it and does nothing else; if so, a
  ///   collective that a thread has waited for may be made again
  private Call submit(Operation operation, CallSignature.Purpose purpose, boolean alone) {
    engine.enter();
    try {
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
        context.inquiries().started(collective);
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

  void checkOpen(String label) {
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
    Schedule plan = algorithm.plan(shape, rank()).kept(MOST_STEPS_OF_ONE);
    if (plans.size() == MOST_PLANS || steps + plan.keptSteps() > MOST_STEPS) {
      plans.clear();
      steps = 0;
      ended.clear(); // which have plans, too
    }
    Planned planned = new Planned(plan, algorithm.name());
    plans.put(shape, planned);
    steps += plan.keptSteps();
    return planned;
  }

  private record Planned(Schedule plan, String algorithm) {}

  private Shape shape(Collective call) {
    return Shapes.of(call, rank(), size(), reduction, context.windowBytes(), context.hosts());
  }

  private Call start(PointToPoint operation, boolean awaited) {
    return switch (operation) {
      case PointToPoint.Send send -> sending(send, awaited);
      case PointToPoint.Receive receive -> receiving(receive);
      case PointToPoint.SendReceive both -> {
        ReceiveCall receive =
            receiving(new PointToPoint.Receive(both.input(), both.source(), both.receiveTag()));
        SendCall send =
            sending(
                new PointToPoint.Send(both.output(), both.destination(), both.sendTag()), awaited);
        context.start(receive, false);
        context.start(send, false);
        yield new ExchangeCall(context, send, receive);
      }
      case PointToPoint.Probe probe -> new ProbeCall(context, probe);
    };
  }

  private SendCall sending(PointToPoint.Send send, boolean awaited) {
    return context.messages().send(send, awaited, Buffers.boundTo(Buffers.segment(send.data())));
  }

  private ReceiveCall receiving(PointToPoint.Receive receive) {
    ReceiveCall call = ReceiveCall.of(context, receive);
    context.messages().post(call);
    return call;
  }

  @Override
  public void sync() {
    List<Call> inFlight = callsInFlight();
    for (int i = 0; i < inFlight.size(); i++) { // an iterator would be garbage in each barrier
      awaitEnd(inFlight.get(i));
    }
    checkUsable("sync");
  }

  private static void awaitEnd(Call call) {
    try {
      call.await(Long.MAX_VALUE);
    } catch (CancellationException _) {
      // another thread has taken the receive back: that is an end too
    }
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
    try (var _ = engine.enter()) {
      return context.calls().stream().filter(Call::concernsPeers).toList();
    }
  }

  /// All-gathers numbers for a purpose of the library's own.
  public long[][] gatherInternal(CallSignature.Purpose purpose, long... mine) {
    long[] all = new long[mine.length * size()];
    if (size() == 1) {
      return new long[][] {mine};
    }
    submit(new Collective.AllGather(CommData.of(mine), CommData.of(all)), purpose, false)
        .await(Long.MAX_VALUE);
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
      submit(new Collective.Barrier(), purpose, false).await(Long.MAX_VALUE);
    }
  }

  // --- groups ---

  @Override
  public Optional<BackendCommunicator> split(int color, int key) {
    return Optional.ofNullable(split(SPLIT, "split", color, key));
  }

  private @Nullable BackendCommunicator split(
      CallSignature.Purpose purpose, String label, int color, int key) {
    checkNow(label);
    return groups.split(purpose, label, color, key);
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
    int leader = ranksHere().min().orElse(0);
    BackendCommunicator local = split(SPLIT, "host", leader, 0);
    if (local == null) {
      throw new IllegalStateException("a host without this rank");
    }
    return local;
  }

  @Override
  public Shrink shrink() {
    return groups.shrink();
  }

  /// The ranks of this host, made without the others. Once.
  ///
  /// @param label what the program calls
  EngineCommunicator hostGroup(String label) {
    return groups.host(label);
  }

  /// One for other ranks, which goes on as this one does.
  EngineCommunicator child(Context made) {
    EngineCommunicator child = new EngineCommunicator(backend, engine, made);
    child.reduction = reduction;
    return child;
  }

  /// Throws if the communicator is closed or broken, by what the session knows by now.
  void checkNow(String label) {
    try (var _ = engine.enter()) {
      engine.takeNews();
      checkUsable(label);
    }
  }

  // --- memory ---

  @Override
  public CommBuffer allocate(DataType type, long count) {
    long bytes = type.bytes(count);
    try (var _ = engine.enter()) {
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
    try (var _ = engine.enter()) {
      context.breakWith(failure, true);
    }
  }

  @Override
  public void leaveCall(AbortedException reason) {
    try (var _ = engine.enter()) {
      context.close(); // which tells those who have a part in it
    }
  }

  @Override
  public void abortProcess(int code) {
    engine.session().abortProcesses(code);
  }

  @Override
  public @Nullable CommException failure() {
    if (engine.hasNews()) {
      try (var _ = engine.enter()) {
        engine.takeNews();
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
    beginClose();
    groups.close();
    EngineSharedMemory provider = sharedMemory;
    if (provider != null) {
      provider.close();
    }
    engine.remove(context, buffers);
  }

  /// Says that it will be closed next, so that it keeps this rank in the session no longer: for a
  /// backend that has made another one for its own use and closes that first.
  public void beginClose() {
    try (var _ = engine.lock()) {
      context.beginClose();
    }
  }
}
