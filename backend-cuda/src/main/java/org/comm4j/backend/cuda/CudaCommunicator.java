package org.comm4j.backend.cuda;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import jcuda.driver.CUevent;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.Reduction;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.StreamSync;
import org.comm4j.api.Topology;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.MembersSession;
import org.jspecify.annotations.Nullable;

/// One rank's end of a communicator of GPUs: collectives of data in devices' memory go by kernels,
/// everything else by a communicator of the host with the same ranks.
///
/// That one also keeps the reason why this one is broken, so that first writers win and all ranks
/// hear of it. Calls on devices' memory are done in the order in which they were started: kernels
/// in one stream, and what goes through the host, with what is started behind it, on one thread.
final class CudaCommunicator implements BackendCommunicator {
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final long CLOSE_NS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long LEAVE_NS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final Duration TELL = Duration.ofSeconds(1);

  private final CudaRank rank;
  private final BackendCommunicator host;
  private final BackendCommunicator path;
  private final HostPath hostPath;
  private final String key;
  private final List<Integer> members;
  private final List<DeviceCall> calls = new ArrayList<>(); // in flight, in order; its own lock
  private final List<CudaBuffer> buffers = new ArrayList<>();
  private final DeviceMessages messages;
  private final Stalls stalls;
  private final CudaSharedMemory shared;
  private final CudaDevice.Stream stream;
  private volatile @Nullable DeviceGroup devices; // from the first call on; set under the lock
  private volatile @Nullable KernelCollectives kernels; // set before the devices
  private volatile @Nullable ExecutorService thread; // set under the lock
  private @Nullable CudaStreams streams;
  private final AtomicInteger queued = new AtomicInteger(); // for the thread; begun under the lock
  private final Queue<Runnable> dropped = new ConcurrentLinkedQueue<>(); // of the thread's work
  private long number; // of collectives; guarded by this
  private CudaDevice.@Nullable Stream behindEvents; // only those of the program; guarded by this
  private volatile long reachedNs = System.nanoTime();
  private volatile boolean toldOfThrown;
  private volatile boolean closed;
  private volatile boolean closing; // soon: no more calls begin
  private volatile @Nullable List<DeviceCall> leaving; // once closed, if its kernels still ran

  private CudaCommunicator(CudaRank rank, EngineCommunicator host, BackendCommunicator path) {
    this.rank = rank;
    this.host = host;
    this.path = path;
    this.key = "cuda/%x".formatted(host.scope());
    this.members = IntStream.range(0, host.size()).map(host::worldRank).boxed().toList();
    this.messages = new DeviceMessages(this, rank, host);
    this.stalls = new Stalls(this, rank.patience().stallEvery());
    this.shared = new CudaSharedMemory(this, rank, host, membersSession(), key);
    this.stream = rank.device().createStream();
    this.hostPath = new HostPath(rank, path, stream);
  }

  /// Makes this rank's end; a collective.
  ///
  /// @param host of the same ranks; closed with this one, also where this fails
  static CudaCommunicator open(CudaRank rank, BackendCommunicator host) {
    BackendCommunicator path = host;
    try {
      path = pathOf(host);
      var communicator = new CudaCommunicator(rank, (EngineCommunicator) host, path);
      rank.add(communicator);
      return communicator;
    } catch (RuntimeException e) {
      if (path != host) {
        path.close();
      }
      host.close();
      throw e;
    }
  }

  /// Where others have broken the communicator already it is made all the same, like any other.
  private static BackendCommunicator pathOf(BackendCommunicator host) {
    try {
      return host.duplicate();
    } catch (CommException e) {
      if (host.failure() == null) {
        throw e;
      }
      return host;
    }
  }

  @Override
  public int rank() {
    return host.rank();
  }

  @Override
  public int size() {
    return host.size();
  }

  @Override
  public String name() {
    return host.name();
  }

  @Override
  public String backend() {
    return host.backend();
  }

  @Override
  public Capabilities capabilities() {
    Capabilities ofHost = host.capabilities();
    EnumSet<Capability> all = EnumSet.copyOf(ofHost.supported());
    all.add(Capability.DEVICE_MEMORY);
    all.add(Capability.STREAMS);
    if (!rank.options().expressions().isEmpty()) {
      all.add(Capability.EXPRESSIONS);
    }
    return new Capabilities(all, ofHost.deviations());
  }

  @Override
  public Topology topology() {
    Topology ofHost = host.topology();
    return new Topology(
        ofHost.hosts(), ofHost.scheduler(), ofHost.libraries(), rank.peerAccess(members));
  }

  @Override
  public boolean useReduction(Reduction reduction) {
    return host.useReduction(reduction) && path.useReduction(reduction);
  }

  // --- operations ---

  @Override
  public Pending submit(Operation operation) {
    List<DeviceData> data = onDevices(operation);
    if (data.isEmpty()) {
      return host.submit(operation);
    }
    data.forEach(each -> rank.check(operation.label(), each));
    if (operation instanceof Collective call
        && Ends.of(call, rank()).input() instanceof DeviceData input) {
      rank.checkReached(call.label(), input, members);
    }
    checkUsable(operation.label());
    return switch (operation) {
      case Collective call -> start(call, data);
      case PointToPoint message -> messages.start(message);
    };
  }

  @Override
  public @Nullable Received run(Operation operation) {
    if (onDevices(operation).isEmpty()) {
      return host.run(operation);
    }
    Pending pending = submit(operation);
    pending.await(Long.MAX_VALUE);
    return pending.received();
  }

  /// {@return what of the device's memory an operation uses here; empty where all is the host's}
  private List<DeviceData> onDevices(Operation operation) {
    List<DeviceData> data = Ends.onDevices(operation, rank());
    if (operation instanceof Collective.WithEpilogue call && Expression.isExpressed(call)) {
      checkExpression(call, data.isEmpty());
    }
    return data;
  }

  private void checkExpression(Collective.WithEpilogue call, boolean isOnHost) {
    Epilogue epilogue = Objects.requireNonNull(call.epilogue());
    String what =
        "%s of %s to %s with the expression '%s'"
            .formatted(call.label(), call.input(), call.output(), epilogue.expression());
    if (isOnHost) {
      throw new UnsupportedException(
          what
              + " is not supported by backend 'cuda' in the host's memory (expected: data in a device's memory, where the expression is compiled for); use that, or call it without and do that to the output");
    }
    List<Expression> declared = rank.options().expressions();
    if (Expression.of(call, declared).isEmpty()) {
      throw new UnsupportedException(
          "%s: that was not declared when the rank opened (expected: one of %s); add it to %s"
              .formatted(what, declared, Expression.VARIABLE));
    }
  }

  void checkUsable(String label) {
    CommException failure = failure();
    if (failure != null) {
      throw failure;
    }
    if (closed || closing) {
      throw closed(label);
    }
  }

  private ClosedException closed(String label) {
    return new ClosedException(label + " on communicator '" + name() + "', which is closed");
  }

  private synchronized DeviceCall start(Collective collective, List<DeviceData> data) {
    checkUsable(collective.label());
    CallSignature signature =
        CallSignature.of(collective, rank(), size(), CallSignature.Purpose.USER);
    String text = "collective #%d, %s".formatted(++number, signature);
    var call = new DeviceCall(this, collective.label(), text, data);
    begin(call);
    if (queued.get() == 0 && isByKernels(collective)) {
      launch(call, signature, (to, digest) -> to.launch(collective, digest));
    } else { // as the first one, for which the devices must meet
      queued.incrementAndGet();
      enqueue(() -> runQueued(call, collective, signature));
    }
    return call;
  }

  /// A call is in flight from now on, before its first kernel is: [#leaveCall] sees it, or it does
  /// not begin.
  private void begin(DeviceCall call) {
    synchronized (calls) {
      if (closed || closing) {
        throw closed(call.label());
      }
      calls.removeIf(DeviceCall::hasEnded);
      calls.add(call);
    }
    rank.started(call);
  }

  private List<DeviceCall> calls() {
    synchronized (calls) {
      return List.copyOf(calls);
    }
  }

  private boolean isByKernels(Collective collective) {
    DeviceGroup group = devices;
    return group != null && group.hasKernels() && KernelCollectives.has(collective);
  }

  private MembersSession membersSession() {
    return MembersSession.of(rank.session(), key, members);
  }

  /// Brings the ranks' devices together; a collective. Only the thread does.
  private void openDevices() {
    if (devices == null && size() > 1) {
      DeviceGroup group = DeviceGroup.open(rank, membersSession(), key, stream);
      kernels = group.hasKernels() ? new KernelCollectives(rank, group) : null;
      devices = group;
      rank.startWatcher();
    }
  }

  @FunctionalInterface
  private interface Launch {
    /// @param digest of what the ranks must agree on
    void to(KernelCollectives kernels, long digest);
  }

  /// Puts a call's kernels into the stream, and an event behind them. What fails here, fails on all
  /// ranks; the call's memory is in use until the kernels have left that the stream has.
  private synchronized void launch(DeviceCall call, CallSignature signature, Launch launch) {
    KernelCollectives to = Objects.requireNonNull(kernels);
    CUevent behind = null;
    try {
      behind = rank.device().createEvent(); // first: without one, nothing is launched
      launch.to(to, signature.digest());
      rank.device().record(behind, stream);
      call.launched(behind, to.number());
    } catch (RuntimeException | Error e) {
      CUevent behindSome = behind == null ? null : againBehind(behind);
      CommException reason =
          breakWith(
              e instanceof CommException known
                  ? known
                  : new AbortedException(rank(), call.label() + " failed: " + e, e));
      call.launchedInPart(behindSome, to.number(), reason);
      awaitKernels(call);
      throw reason;
    }
  }

  private @Nullable CUevent againBehind(CUevent event) {
    try {
      rank.device().record(event, stream);
      return event;
    } catch (BackendException _) { // the device has failed: nothing runs on it
      discard(event);
      return null;
    }
  }

  /// Gives those of a call that has failed a moment to leave.
  private void awaitKernels(DeviceCall call) {
    long endNs = System.nanoTime() + LEAVE_NS;
    while (!(call.isDone() && call.hasEnded()) && System.nanoTime() - endNs < 0) {
      LockSupport.parkNanos(this, DeviceCall.SHORT_NS);
    }
  }

  private void discard(CUevent event) {
    CudaIpcBlocks.tried("destroying an event", () -> forget(event));
  }

  // --- the thread ---

  private synchronized void enqueue(Runnable work) {
    ExecutorService running = thread;
    if (running == null) {
      running =
          Executors.newSingleThreadExecutor(
              task -> Thread.ofPlatform().daemon().name("comm4j-cuda " + name()).unstarted(task));
      thread = running;
    }
    try {
      running.execute(work);
    } catch (RejectedExecutionException _) { // broken or closed just now, which it says
      work.run();
    }
  }

  private void runQueued(DeviceCall call, Collective collective, CallSignature signature) {
    try {
      checkUsable(collective.label());
      openDevices();
      if (isByKernels(collective)) {
        launch(call, signature, (to, digest) -> to.launch(collective, digest));
      } else {
        awaitRanks(call, signature);
        hostPath.run(collective, agree(call, collective, signature));
        call.end(null);
      }
    } catch (CommException e) {
      call.end(closed ? e : breakWith(e));
    } catch (RuntimeException | Error e) {
      call.end(breakWith(new AbortedException(rank(), collective.label() + " failed: " + e, e)));
    } finally {
      queued.decrementAndGet(); // without the lock, which a launch has that goes on for long
    }
  }

  /// Returns when all has ended that is in the stream, and, where ranks meet in kernels, all have
  /// come with the same call: who goes through the host is not missed in a kernel, nor the reverse.
  private void awaitRanks(DeviceCall call, CallSignature signature) {
    if (kernels == null) {
      awaitStream(stream, "what was put into the stream before");
      return;
    }
    var meeting = new DeviceCall(this, call.label(), call.text(), List.of());
    launch(meeting, signature, KernelCollectives::meet);
    meeting.await(Long.MAX_VALUE);
  }

  /// Returns when all ranks have come with the same call, in words of this one.
  ///
  /// @return what they have agreed on
  private HostPath.Agreement agree(
      DeviceCall call, Collective collective, CallSignature signature) {
    HostPath.Agreement agreed;
    try {
      agreed = hostPath.agree(collective, signature.digest());
    } catch (CollectiveTimeoutException e) {
      throw late(call, e.missing());
    }
    if (agreed.other().isPresent()) {
      throw mismatch(call, agreed.other().getAsInt());
    }
    return agreed;
  }

  /// Returns when all has ended that is in a stream.
  ///
  /// @param text what that is, for messages
  private void awaitStream(CudaDevice.Stream which, String text) {
    var all = new DeviceCall(this, "stream", text, List.of());
    synchronized (this) {
      all.launched(mark(which), kernels == null ? 0 : kernels.number());
    }
    all.await(Long.MAX_VALUE);
  }

  /// Returns when calls have ended that use this memory, and the program's events have been reached
  /// that this waits for: but not when other calls have, which may wait for what this rank does
  /// next.
  void awaitUsers(DeviceData data) {
    CudaDevice.Stream waiting;
    synchronized (this) {
      waiting = behindEvents;
    }
    for (DeviceCall call : calls()) {
      if (call.uses(data.address(), data.bytes())) {
        call.await(Long.MAX_VALUE);
      }
    }
    if (waiting != null && !rank.device().isDone(waiting)) {
      awaitStream(waiting, "what the program's events are behind");
    }
  }

  /// Lets what is started from now on wait for an event.
  void await(CudaDevice.Event event) {
    CudaDevice.Stream waiting = stream();
    synchronized (this) {
      if (behindEvents == null) {
        behindEvents = rank.device().createStream();
      }
      rank.device().awaitIn(behindEvents, event);
      rank.device().awaitIn(waiting, event);
    }
  }

  /// Puts an event behind what was started; waits for what the host has a part in.
  void record(CudaDevice.Event event) {
    messages.awaitReceived();
    rank.device().record(event, stream());
  }

  /// {@return an event behind all that is in a stream}
  private CUevent mark(CudaDevice.Stream which) {
    CUevent event = rank.device().createEvent();
    try {
      rank.device().record(event, which);
      return event;
    } catch (RuntimeException e) {
      discard(event);
      throw e;
    }
  }

  /// {@return the stream, when everything that was started is in it or has ended}
  private CudaDevice.Stream stream() {
    List<DeviceCall> started;
    synchronized (this) {
      started = queued.get() == 0 ? List.of() : calls();
    }
    for (DeviceCall call : started) {
      call.await(Long.MAX_VALUE);
    }
    return stream;
  }

  // --- what calls ask ---

  /// Takes in news; kernels leave where the communicator is broken, and what its thread has not
  /// begun fails. Not under a call's lock: that calls back whoever waits.
  void look() {
    takeInNews();
    for (Runnable next = dropped.poll(); next != null; next = dropped.poll()) {
      next.run();
    }
  }

  private void takeInNews() {
    boolean isBroken = failure() != null;
    DeviceGroup group = devices;
    if (group != null) {
      group.abort(isBroken);
    }
    if (isBroken) {
      endThread();
    }
  }

  /// Looks at calls that nobody may be awaiting when a kernel has left early: the others should
  /// hear why. Only the watcher does.
  void lookAtKernels() {
    DeviceGroup group = devices;
    if (group != null && failure() == null && group.isLeftEarly()) {
      calls().forEach(DeviceCall::isDone);
    }
  }

  /// Sees whether a call that has not ended takes so long that the user should know.
  void lookAtStall(DeviceCall call) {
    DeviceGroup group = devices;
    stalls.look(call, group == null || call.number() == 0 ? null : group.arrivals());
  }

  /// Breaks this because of what was thrown where nobody awaits anything. Says so once: who looks
  /// comes again.
  void failWith(Throwable thrown) {
    if (toldOfThrown) {
      return;
    }
    toldOfThrown = true;
    LOG.log(
        System.Logger.Level.WARNING,
        "looking at the calls of communicator '" + name() + "' failed",
        thrown);
    try {
      if (failure() == null) {
        breakWith(
            new TransportFailedException(
                "rank %d can't go on in '%s': looking at its calls threw %s"
                    .formatted(rank(), name(), thrown),
                thrown));
      }
    } catch (RuntimeException | Error again) { // who looks must go on looking at others
      LOG.log(System.Logger.Level.WARNING, "breaking it failed too", again);
    }
  }

  /// The thread may wait for ranks that never come; whoever looks next ends what it has not begun.
  private void endThread() {
    ExecutorService running = thread; // without the lock, which a launch has that goes on for long
    if (running != null && !running.isShutdown()) {
      dropped.addAll(running.shutdownNow());
    }
  }

  /// Gives up calls whose kernels have not ended.
  void leave() {
    DeviceGroup group = devices;
    if (group != null) {
      group.leave();
    }
  }

  boolean isReached(CUevent event) {
    boolean isReached = rank.device().isReached(event);
    if (isReached) {
      reachedNs = System.nanoTime();
    }
    return isReached;
  }

  /// {@return when an event was last seen to be reached: only then the kernels behind it began}
  long reachedNs() {
    return reachedNs;
  }

  /// Looks at the calls that are in the stream before one.
  void lookBefore(DeviceCall call) {
    calls().stream()
        .filter(each -> each != call && each.number() <= call.number())
        .forEach(DeviceCall::look);
  }

  void forget(CUevent event) {
    rank.device().destroy(event);
  }

  void watch() {
    rank.startWatcher();
  }

  long graceNs() {
    return rank.patience().grace().toNanos();
  }

  long timeoutNs() {
    return rank.config().timeout().toNanos();
  }

  /// {@return why a call failed whose kernels have ended; null if it did not}
  @Nullable CommException reasonAfter(DeviceCall call) {
    DeviceGroup group = devices;
    Control control = group == null ? null : group.control();
    if (group == null || control == null) {
      return null;
    }
    Control.Outcome outcome = control.outcome(); // first, as kernels write it last
    long number = control.number();
    if (number > call.number()) {
      return null;
    }
    CommException reason = reason(outcome, control, number == 0 ? call : callOf(number, call));
    return reason == null && group.hasLeft() ? givenUp(call) : reason;
  }

  /// Its kernels may not have come, which they don't tell. One that has ended just before, seen by
  /// nobody, fails with the others.
  private CommException givenUp(DeviceCall call) {
    CommException failure = failure();
    return failure != null
        ? failure
        : breakWith(new AbortedException(rank(), call.text() + " was given up", null));
  }

  /// {@return the call that a kernel's number belongs to}
  private DeviceCall callOf(long number, DeviceCall orThis) {
    return calls().stream()
        .filter(each -> each.number() >= number && each.number() <= orThis.number())
        .findFirst()
        .orElse(orThis);
  }

  private @Nullable CommException reason(
      Control.Outcome outcome, Control control, DeviceCall call) {
    List<Integer> concerned = control.concerns().stream().boxed().toList();
    return switch (outcome) {
      case DONE -> null;
      case ABORTED -> {
        tell(call);
        CommException failure = failure();
        yield failure != null
            ? failure
            : breakWith(new AbortedException(rank(), call.text() + " was aborted", null));
      }
      case LATE -> breakWith(late(call, concerned));
      case MISMATCH -> breakWith(mismatch(call, concerned.getFirst()));
      case LEFT -> {
        int peer = concerned.getFirst();
        yield breakWith(
            reasonOf(
                new AbortedException(
                    peer,
                    "rank %d left while rank %d was in %s of '%s'"
                        .formatted(peer, rank(), call.text(), name()),
                    null)));
      }
    };
  }

  /// Who leaves says why, by the host, which may take longer than a kernel.
  ///
  /// @param unknown the reason if it does not
  private CommException reasonOf(CommException unknown) {
    long endNs = System.nanoTime() + 2 * TELL.toNanos(); // it may wait as long for a peer
    CommException told = failure();
    while (told == null && System.nanoTime() - endNs < 0) {
      LockSupport.parkNanos(this, DeviceCall.LONG_NS);
      told = failure();
    }
    return told != null ? told : unknown;
  }

  private CollectiveTimeoutException late(DeviceCall call, List<Integer> missing) {
    return new CollectiveTimeoutException(
        missing,
        "rank %d waited %.1f s in %s of '%s' for rank(s) %s, who are alive but have not come; raise COMM_TIMEOUT if they may take longer"
            .formatted(rank(), timeoutNs() / 1e9, call.text(), name(), missing));
  }

  private MismatchedCallException mismatch(DeviceCall call, int peer) {
    tell(call);
    return new MismatchedCallException(
        "rank %d started %s but rank %d started %s"
            .formatted(peer, told(peer), rank(), call.text()));
  }

  /// Lets peers that find out that this rank does something else say what.
  private void tell(DeviceCall call) {
    try {
      rank.session().put(key + "/call/" + rank(), call.text().getBytes(StandardCharsets.UTF_8));
    } catch (CommException | IllegalStateException _) {
      // the session is over; then nobody asks
    }
  }

  private String told(int peer) {
    try {
      return new String(rank.session().get(key + "/call/" + peer, TELL), StandardCharsets.UTF_8);
    } catch (CommException | IllegalStateException _) {
      return "something else";
    }
  }

  /// Breaks the communicator, unless it is.
  ///
  /// @return why it is broken
  CommException breakWith(CommException reason) {
    CommException known = host.failure();
    if (known == null) {
      host.abort(reason);
      path.abort(reason);
      known = host.failure();
    }
    takeInNews(); // and no more, as calls break it under their locks
    return known == null ? reason : known;
  }

  @Override
  public void sync() {
    for (DeviceCall call : calls()) {
      call.await(Long.MAX_VALUE);
    }
    host.sync();
    messages.settle();
    checkUsable("sync");
  }

  // --- groups ---

  @Override
  public Optional<BackendCommunicator> split(int color, int key) {
    return host.split(color, key).map(this::child);
  }

  @Override
  public BackendCommunicator duplicate() {
    return child(host.duplicate());
  }

  @Override
  public BackendCommunicator splitLocal() {
    return child(host.splitLocal());
  }

  private BackendCommunicator child(BackendCommunicator ofHost) {
    return open(rank, ofHost);
  }

  @Override
  public Shrink shrink() {
    Shrink made = host.shrink();
    return new Shrink(child(made.communicator()), made.oldRanks(), made.epoch());
  }

  // --- memory ---

  @Override
  public CommBuffer allocate(DataType type, long count) {
    checkUsable("allocate");
    buffers.removeIf(CudaBuffer::isClosed);
    try {
      CudaBuffer buffer = CudaBuffer.allocate(rank, type, count);
      buffers.add(buffer);
      return buffer;
    } catch (BackendException e) {
      throw new TransportFailedException(
          "allocate: %d bytes do not fit into the memory of device %s (%s); close buffers"
              .formatted(type.bytes(count), rank.device(), e.getMessage()),
          e);
    }
  }

  @Override
  public SharedMemoryProvider sharedMemory() {
    return shared;
  }

  @Override
  public Optional<StreamSync> streamSync() {
    CudaStreams known = streams;
    if (known == null) {
      known = new CudaStreams(this, rank);
      streams = known;
    }
    return Optional.of(known);
  }

  // --- the end ---

  @Override
  public void abort(CommException failure) {
    breakWith(failure);
    look();
  }

  @Override
  public void leaveCall(AbortedException reason) {
    List<DeviceCall> started;
    synchronized (calls) { // no other lock: the driver may hold a launch back, and it others out
      closing = true;
      started = List.copyOf(calls);
    }
    // the device may be done with calls that nobody has awaited; asked outside, as it takes locks
    if (started.stream().allMatch(call -> call.isDone() && call.hasEnded())) {
      host.leaveCall(reason);
    } else {
      abort(reason);
    }
  }

  @Override
  public void abortProcess(int code) {
    host.abortProcess(code);
  }

  @Override
  public @Nullable CommException failure() {
    CommException failure = host.failure();
    return failure != null ? failure : path.failure();
  }

  @Override
  public void close() {
    List<DeviceCall> pending;
    synchronized (calls) {
      if (closed) {
        return;
      }
      closed = true;
      pending = List.copyOf(calls);
    }
    if (!haveEnded(pending, CLOSE_NS)) {
      DeviceCall first =
          pending.stream().filter(call -> !call.isDone()).findFirst().orElse(pending.getFirst());
      breakWith(
          new AbortedException(
              rank(),
              "rank %d closed '%s' during %s".formatted(rank(), name(), first.text()),
              null));
      haveEnded(pending, LEAVE_NS);
    }
    end(pending);
  }

  private void end(List<DeviceCall> pending) {
    if (!pending.stream().allMatch(DeviceCall::hasEnded)) {
      leave();
    }
    var over = new ClosedException("communicator '" + name() + "' was closed");
    pending.forEach(call -> call.end(over));
    ExecutorService ending = thread;
    if (ending != null) {
      ending.shutdown();
    }
    boolean hasLeft = hasLeft(pending, LEAVE_NS);
    if (hasLeft) {
      closeDevices();
    }
    path.close();
    host.close();
    messages.close();
    rank.end(buffers);
    if (hasLeft) {
      rank.remove(this);
    } else {
      leaving = pending;
      rank.startWatcher();
    }
  }

  /// {@return whether nothing uses the devices' memory any more; then nothing does later}
  ///
  /// @param nanos how long to wait for what has nothing to do any more
  private boolean hasLeft(List<DeviceCall> pending, long nanos) {
    if (!isIdle(pending, nanos)) {
      return false;
    }
    DeviceGroup group = devices;
    return group == null || group.endLeaving();
  }

  /// {@return whether neither the thread nor kernels run any more, also those of no call}
  private boolean isIdle(List<DeviceCall> pending, long nanos) {
    ExecutorService ending = thread;
    long endNs = System.nanoTime() + nanos;
    boolean isOver;
    try {
      isOver = ending == null || ending.awaitTermination(nanos, TimeUnit.NANOSECONDS);
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      isOver = ending.isTerminated();
    }
    try {
      if (!isOver || !pending.stream().allMatch(call -> call.isDone() && call.hasEnded())) {
        return false;
      }
      while (!streams().stream().allMatch(rank.device()::isDone)) {
        if (System.nanoTime() - endNs >= 0) {
          return false;
        }
        LockSupport.parkNanos(this, DeviceCall.SHORT_NS);
      }
      return true;
    } catch (BackendException _) {
      return isOver; // the device has failed: nothing runs on it
    }
  }

  private synchronized List<CudaDevice.Stream> streams() {
    return behindEvents == null ? List.of(stream) : List.of(stream, behindEvents);
  }

  /// Gives back what kernels use; before the host's communicators are closed, if possible, so that
  /// others hear of it.
  private void closeDevices() {
    try {
      streams().forEach(rank.device()::destroy);
    } catch (BackendException _) {
      // the device has failed, which calls have said
    }
    DeviceGroup group = devices;
    if (group != null) {
      group.close();
    }
  }

  /// Does so if kernels ran on when this was closed and have ended: a device that is busy does not
  /// keep [#close] from returning. Only the watcher does.
  void leaveIfEnded() {
    List<DeviceCall> pending = leaving;
    if (pending != null && hasLeft(pending, 0)) {
      leaving = null;
      try {
        closeDevices();
      } finally {
        rank.remove(this);
      }
    }
  }

  private static boolean haveEnded(List<DeviceCall> pending, long nanos) {
    long endNs = System.nanoTime() + nanos;
    for (DeviceCall call : pending) {
      try {
        if (!call.await(Math.max(0, endNs - System.nanoTime()))) {
          return false;
        }
      } catch (RuntimeException _) {
        // why it failed was, or will be, thrown to whoever awaits it
      }
    }
    return true;
  }
}
