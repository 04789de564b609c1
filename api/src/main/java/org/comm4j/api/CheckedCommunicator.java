package org.comm4j.api;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// The one [Communicator]: checks a call, then hands it to a backend.
///
/// A call takes the owner word ([Gate]), looks whether the communicator is closed or broken, checks
/// the operation ([OperationChecks]), and only then reaches the backend; so a backend checks
/// nothing twice and a caller's mistake never leaves the process. On the blocking path nothing of
/// this allocates for a record that is run again.
///
/// `close()` may come from any thread. While another one waits in a call, that call ends with a
/// [ClosedException], and the communicator breaks for those who have a part in it: a collective
/// that one rank leaves half-way can't succeed.
final class CheckedCommunicator implements Communicator {
  /// How long close() lets what was started go on. With [#LEAVE_NANOS], 0.8 s of a backend's own
  /// close and 0.5 s of the session's it makes the 2 s that are promised.
  private static final long FINISH_NANOS = TimeUnit.MILLISECONDS.toNanos(400);

  /// How long close() waits for calls of other threads to notice it.
  private static final long LEAVE_NANOS = TimeUnit.MILLISECONDS.toNanos(300);

  /// From so many forgotten requests on, a start looks for those that have ended.
  private static final int MANY_IN_FLIGHT = 64;

  private static final Operation BARRIER = new Collective.Barrier();

  private final BackendCommunicator backend;
  private final LaunchScope scope;
  private final CallListeners listeners;
  private final Gate gate;
  private final Cleaner.Cleanable cleanable;
  private final OperationChecks checks;
  private @Nullable CheckedSharedMemory sharedMemory; // of who is inside
  private @Nullable CheckedStreamSync streamSync; // of who is inside

  /// Keeps the memory of what is in flight reachable, whatever becomes of the requests.
  private final Set<CheckedRequest> inFlight = ConcurrentHashMap.newKeySet();

  private long started; // requests

  private volatile @Nullable CommConfig config;
  private boolean isUsed; // by an operation, or for another communicator; of who is inside
  private final int rank;
  private final int size;
  private final String name;
  private final String backendName;
  private final Capabilities capabilities;
  private int sweepAt = MANY_IN_FLIGHT;
  private volatile @Nullable CommException lastFailure;

  CheckedCommunicator(BackendCommunicator backend, LaunchScope scope, CallListeners listeners) {
    this(backend, scope, listeners, null);
  }

  /// @param config of a launch of threads; null where no one else can ask for another
  CheckedCommunicator(
      BackendCommunicator backend,
      LaunchScope scope,
      CallListeners listeners,
      @Nullable CommConfig config) {
    this.config = config;
    this.backend = backend;
    this.scope = scope;
    this.listeners = listeners;
    this.rank = backend.rank();
    this.size = backend.size();
    this.name = backend.name();
    this.backendName = backend.backend();
    this.capabilities = backend.capabilities();
    this.checks = new OperationChecks(rank, size, backendName, capabilities);
    this.gate = new Gate(backend, scope, describe());
    this.cleanable = Leaks.CLEANER.register(this, gate::collected);
  }

  /// Only there once a communicator is made.
  private static final class Leaks {
    static final Cleaner CLEANER =
        Cleaner.create(task -> Thread.ofPlatform().daemon().name("comm4j-leaks").unstarted(task));
  }

  /// {@return what the communicators of this rank stand on}
  LaunchScope scope() {
    return scope;
  }

  // --- who and what ---

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String backend() {
    return backendName;
  }

  @Override
  public Capabilities capabilities() {
    return capabilities;
  }

  @Override
  public Topology topology() {
    gate.enter("topology");
    try {
      return backend.topology();
    } finally {
      leave();
    }
  }

  // --- any operation ---

  @Override
  public @Nullable Received run(Operation operation) {
    String call = Objects.requireNonNull(operation, "operation").label();
    enter(call);
    try {
      checks.blocking(operation);
      return call(operation);
    } finally {
      leave();
    }
  }

  @Override
  public Request start(Operation operation) {
    String call = Objects.requireNonNull(operation, "operation").label();
    enter(call);
    try {
      checks.asynchronous(operation);
      return submit(operation);
    } finally {
      leave();
    }
  }

  /// Checks what [#start] checks, and starts nothing.
  void check(Operation operation) {
    enter(operation.label());
    try {
      checks.asynchronous(operation);
    } finally {
      leave();
    }
  }

  @Override
  public PersistentRequest prepare(Operation operation) {
    Objects.requireNonNull(operation, "operation");
    enter("prepare");
    try {
      checks.group(operation);
      checks.memory(operation, false);
      return new PreparedRequest(this, operation);
    } finally {
      leave();
    }
  }

  /// Runs what was checked when it was prepared; memory may have been closed since.
  void runPrepared(PreparedRequest prepared) {
    Operation operation = prepared.operation();
    enter(operation.label());
    try {
      prepared.requireEnded();
      checks.memory(operation, false);
      call(operation);
    } finally {
      leave();
    }
  }

  CheckedRequest startPrepared(PreparedRequest prepared) {
    Operation operation = prepared.operation();
    enter(operation.label());
    try {
      prepared.requireEnded();
      checks.memory(operation, true);
      CheckedRequest request = submit(operation);
      prepared.started(request);
      return request;
    } finally {
      leave();
    }
  }

  private @Nullable Received call(Operation operation) {
    isUsed = true;
    CallListeners.Heard heard = listeners.begins(name, rank, operation);
    Throwable failure = null;
    try {
      return backend.run(operation);
    } catch (RuntimeException | Error e) {
      failure = e;
      throw failed(operation.label(), e);
    } finally {
      if (heard != null) {
        heard.ended(failure);
      }
    }
  }

  private CheckedRequest submit(Operation operation) {
    isUsed = true;
    CallListeners.Heard heard = listeners.begins(name, rank, operation);
    Pending pending;
    try {
      pending = backend.submit(operation);
    } catch (RuntimeException | Error e) {
      if (heard != null) {
        heard.ended(e);
      }
      throw failed(operation.label(), e);
    }
    CheckedRequest request = new CheckedRequest(this, operation, pending, heard, started++);
    if (pending == Pending.ENDED) {
      request.endedAtOnce();
    } else {
      inFlight.add(request);
      sweep();
    }
    return request;
  }

  /// How many requests are held because they may not have ended.
  int inFlight() {
    return inFlight.size();
  }

  /// Forgets requests that have ended without anybody looking; seldom enough to cost nothing.
  private void sweep() {
    if (inFlight.size() >= sweepAt) {
      settleEnded();
      sweepAt = Math.max(MANY_IN_FLIGHT, 2 * inFlight.size());
    }
  }

  private void settleEnded() {
    if (inFlight.isEmpty()) {
      return; // an iterator would be garbage in each barrier
    }
    for (CheckedRequest request : inFlight) {
      request.settleIfEnded();
    }
  }

  // --- blocking forms with a result of their own ---

  @Override
  public void barrier() {
    enter("barrier");
    try {
      complete("barrier");
      call(BARRIER);
    } finally {
      leave();
    }
  }

  @Override
  public Received receive(CommData data, int source, int tag) {
    return received(run(new PointToPoint.Receive(data, source, tag)));
  }

  @Override
  public Received sendReceive(
      CommData output, int destination, CommData input, int source, int tag) {
    return received(
        run(new PointToPoint.SendReceive(output, destination, tag, input, source, tag)));
  }

  @Override
  public Received probe(int source, int tag) {
    return received(run(new PointToPoint.Probe(source, tag)));
  }

  private Received received(@Nullable Received received) {
    return Objects.requireNonNull(received, () -> "backend '" + backendName + "' gave no result");
  }

  @Override
  public void sync() {
    enter("sync");
    try {
      complete("sync");
    } finally {
      leave();
    }
  }

  private void complete(String call) {
    try {
      backend.sync();
    } catch (RuntimeException | Error e) {
      throw failed(call, e);
    } finally {
      settleEnded();
    }
  }

  // --- groups ---

  @Override
  public Optional<Communicator> split(int color, int key) {
    if (color < 0 && color != NO_COLOR) {
      throw new IllegalArgumentException(
          "color: %d (expected: 0 or more, or NO_COLOR)".formatted(color));
    }
    return making("split", () -> backend.split(color, key).map(this::child));
  }

  @Override
  public Communicator duplicate() {
    return making("duplicate", () -> child(backend.duplicate()));
  }

  @Override
  public Communicator splitLocal() {
    return making("splitLocal", () -> child(backend.splitLocal()));
  }

  /// Works on a broken communicator too.
  @Override
  public Shrunk shrink() {
    return insideAlsoBroken(
        "shrink",
        () -> {
          isUsed = true;
          BackendCommunicator.Shrink made = backend.shrink();
          return new Shrunk(child(made.communicator()), made.oldRanks(), made.epoch());
        });
  }

  /// Makes another communicator, or takes part where others do.
  private <T> T making(String call, Supplier<T> action) {
    return inside(
        call,
        () -> {
          isUsed = true;
          return action.get();
        });
  }

  private Communicator child(BackendCommunicator child) {
    return new CheckedCommunicator(child, scope, listeners);
  }

  // --- memory ---

  @Override
  public CommBuffer allocate(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    type.bytes(count);
    enter("allocate");
    try {
      return new CheckedBuffer(backend.allocate(type, count));
    } finally {
      leave();
    }
  }

  @Override
  public SharedMemoryProvider sharedMemory() {
    enter("sharedMemory");
    try {
      CheckedSharedMemory known = sharedMemory;
      if (known == null) {
        known = new CheckedSharedMemory(this, backend.sharedMemory());
        sharedMemory = known;
      }
      return known;
    } finally {
      leave();
    }
  }

  @Override
  public Optional<StreamSync> streamSync() {
    enter("streamSync");
    try {
      CheckedStreamSync known = streamSync;
      if (known == null) {
        known = backend.streamSync().map(made -> new CheckedStreamSync(this, made)).orElse(null);
        streamSync = known;
      }
      return Optional.ofNullable(known);
    } finally {
      leave();
    }
  }

  // --- entering and leaving ---

  /// Makes a call of what belongs to this communicator.
  <T> T inside(String call, Supplier<T> action) {
    enter(call);
    return andLeave(call, action);
  }

  /// The same for what a broken communicator does not refuse.
  <T> T insideAlsoBroken(String call, Supplier<T> action) {
    gate.enter(call);
    return andLeave(call, action);
  }

  /// Makes a call that has no result.
  void inside(String call, Runnable action) {
    enter(call);
    andLeave(call, action);
  }

  /// The same for what a broken communicator does not refuse.
  void insideAlsoBroken(String call, Runnable action) {
    gate.enter(call);
    andLeave(call, action);
  }

  private void andLeave(String call, Runnable action) {
    var _ =
        andLeave(
            call,
            () -> {
              action.run();
              return call;
            });
  }

  private <T> T andLeave(String call, Supplier<T> action) {
    try {
      return action.get();
    } catch (RuntimeException | Error e) {
      throw failed(call, e);
    } finally {
      leave();
    }
  }

  private void enter(String call) {
    gate.enter(call);
    CommException failure;
    try {
      failure = backend.failure();
    } catch (RuntimeException | Error e) { // an operator's call into another communicator
      gate.leave();
      throw e;
    }
    if (failure != null) {
      gate.leave();
      throw gate.isOpen() ? failure : gate.closed(call);
    }
  }

  private void leave() {
    try {
      gate.leave();
    } finally {
      Reference.reachabilityFence(this); // collected inside a call, it would be released
    }
  }

  /// What a call throws when the backend has thrown. An error that is neither the backend's report
  /// nor a refusal (memory ran out, a library is broken) leaves the other ranks waiting, so it
  /// breaks the communicator.
  RuntimeException failed(String call, Throwable failure) {
    if (failure instanceof CommException && !gate.isOpen()) {
      ClosedException closed = gate.closed(call);
      closed.initCause(failure);
      return closed;
    }
    if (!isReportOrRefusal(failure)) {
      try {
        if (backend.failure() == null) {
          backend.abort(new AbortedException(rank, call + " failed: " + failure, failure));
        }
      } catch (RuntimeException | Error e) {
        if (e != failure) { // no exception is suppressed by itself
          failure.addSuppressed(e);
        }
      }
    }
    return rethrow(failure);
  }

  private static boolean isReportOrRefusal(Throwable failure) {
    return failure instanceof CommException
        || failure instanceof IllegalArgumentException
        || failure instanceof IllegalStateException;
  }

  /// Returns an exception, throws an error.
  static RuntimeException rethrow(Throwable failure) {
    return switch (failure) {
      case RuntimeException e -> e;
      case Error e -> throw e;
      default -> throw new AssertionError(failure);
    };
  }

  // --- for requests ---

  Gate gate() {
    return gate;
  }

  void ended(CheckedRequest request) {
    inFlight.remove(request);
  }

  // --- the end ---

  @Override
  public void abort(String reason) {
    Objects.requireNonNull(reason, "reason");
    if (gate.enterBeside()) {
      try {
        backend.abort(new AbortedException(rank, reason, null));
      } finally {
        gate.leaveBeside();
        Reference.reachabilityFence(this);
      }
    }
  }

  @Override
  public void abortProcess(int code) {
    if (code < 1 || code > 255) {
      throw new IllegalArgumentException("code: %d (expected: 1..255)".formatted(code));
    }
    if (!gate.enterBeside()) {
      throw gate.closed("abortProcess");
    }
    try {
      backend.abortProcess(code);
    } finally {
      gate.leaveBeside();
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public boolean isClosed() {
    return !gate.isOpen();
  }

  @Override
  public Optional<CommException> failure() {
    if (!gate.enterBeside()) {
      return Optional.ofNullable(lastFailure);
    }
    try {
      return Optional.ofNullable(backend.failure());
    } finally {
      gate.leaveBeside();
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public void close() {
    try {
      if (gate.beginClose()) {
        Gate.uninterrupted(this::end);
      }
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /// Takes up what a rank asks for that its launch does not have, or refuses it.
  void checkAgrees(CommConfig asked) {
    CommConfig launch = config;
    if (launch == null) {
      return;
    }
    Reduction wish = asked.reduction();
    if (wish == Reduction.FAST || wish == launch.reduction()) {
      asked.checkAgrees(launch);
      return;
    }
    CommConfig wanted = launch.toBuilder().reduction(wish).build();
    asked.checkAgrees(wanted);
    if (insideAlsoBroken("open", () -> !isUsed && backend.useReduction(wish))) {
      config = wanted;
    } else {
      asked.checkAgrees(launch);
    }
  }

  private void end() {
    boolean alone = stopOthers();
    try {
      if (alone && backend.failure() == null) {
        finishPending();
      }
    } finally {
      shut(alone);
    }
  }

  /// @param alone whether no other thread is in a call
  private void shut(boolean alone) {
    lastFailure = backend.failure();
    gate.close();
    for (CheckedRequest request : inFlight) {
      request.settleIfEnded();
    }
    if (alone) {
      gate.leave();
    }
    if (gate.releaseWhenEmpty(LEAVE_NANOS)) {
      cleanable.clean();
    }
  }

  /// Becomes the owner; a call in progress on another thread is made to end.
  private boolean stopOthers() {
    Thread inside = gate.ownToClose(0);
    if (inside == null) {
      return true;
    }
    String reason =
        "closed by thread '%s' while thread '%s' was in a call"
            .formatted(Thread.currentThread().getName(), inside.getName());
    try {
      backend.leaveCall(new AbortedException(rank, reason, null));
    } catch (CommException _) {
      // It is closed all the same.
    }
    return gate.ownToClose(LEAVE_NANOS) == null;
  }

  /// First what peers may wait for, meanwhile messages may come. For messages that have not come
  /// nobody waits then, only for those that have begun to. The last receives are taken back first,
  /// or one of them could get what an earlier one should have.
  private void finishPending() {
    long start = System.nanoTime();
    long left = FINISH_NANOS; // a pause before the first one is not taken from it
    for (CheckedRequest request : inFlight) {
      if (!request.canBeTakenBack()) {
        request.finish(Math.max(0, left));
        left = FINISH_NANOS - (System.nanoTime() - start);
      }
    }
    List<CheckedRequest> lastFirst = new ArrayList<>(inFlight);
    lastFirst.sort(Comparator.comparingLong(CheckedRequest::number).reversed());
    for (CheckedRequest request : lastFirst) {
      request.endUnmatched(Math.max(0, left));
      left = FINISH_NANOS - (System.nanoTime() - start);
    }
    for (CheckedRequest request : lastFirst) {
      request.finish(Math.max(0, left));
      left = FINISH_NANOS - (System.nanoTime() - start);
    }
  }

  private String describe() {
    return "communicator '%s' (rank %d of %d, backend '%s')"
        .formatted(name, rank, size, backendName);
  }

  /// For example `communicator 'world' (rank 0 of 4, backend 'shm')`.
  @Override
  public String toString() {
    return gate.toString();
  }
}
