package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.Topology;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.engine.AbortNotice;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.engine.ChildName;
import org.comm4j.core.engine.Identity;
import org.comm4j.core.engine.Topologies;
import org.jspecify.annotations.Nullable;

/// One rank's end of a communicator of the MPI library.
final class MpiCommunicator implements BackendCommunicator {
  private final MpiJob job;
  private final MpiGroup group;
  private final Collectives collectives;
  private final Messages messages;
  private final ArrayPins pins = new ArrayPins(); // of the blocking call that runs
  private @Nullable DirectCalls direct; // from the first blocking call on
  private final List<MpiBuffer> buffers = new ArrayList<>();
  private @Nullable MpiSharedMemory sharedMemory;

  MpiCommunicator(MpiGroup group) {
    this.job = group.job();
    this.group = group;
    this.collectives = new Collectives(group);
    this.messages = new Messages(group);
  }

  @Override
  public int rank() {
    return group.rank();
  }

  @Override
  public int size() {
    return group.size();
  }

  @Override
  public String name() {
    return group.name();
  }

  @Override
  public String backend() {
    return MpiProvider.NAME;
  }

  @Override
  public Capabilities capabilities() {
    return Abilities.of(job);
  }

  @Override
  public Topology topology() {
    Map<String, String> libraries = new TreeMap<>();
    libraries.put("mpi", Functions.library().version());
    libraries.put("mpi thread level", Library.threadLevelName());
    if (!group.keepsBits()) {
      libraries.put("mpi sums of floats", Ways.DIFFERENT_SUMS);
    }
    return Topologies.of(job.session(), group.members(), job.config().launcher(), libraries);
  }

  // --- operations ---

  @Override
  public Pending submit(Operation operation) {
    group.refuseOperators();
    if (operation instanceof Collective collective && size() == 1) {
      return alone(collective);
    }
    MpiCall call;
    boolean isHere;
    group.lock();
    try {
      checkUsable(operation);
      call = call(operation, false);
      isHere = job.waitsInLibrary() && operation instanceof Collective && call.isBound();
      if (isHere) {
        call.prepare();
      } else if (job.waitsInLibrary() && operation instanceof Collective) {
        group.startOnWorker(call);
      } else {
        group.start(call);
      }
    } catch (MismatchedCallException mismatch) {
      group.breakWith(mismatch, true);
      throw mismatch;
    } finally {
      group.unlock();
    }
    if (isHere) { // a virtual thread's own memory, which the worker may not touch
      awaitWorker();
      group.watched(
          call.label(),
          operation,
          call.number(),
          () -> {
            group.runBlocking(call);
            return null;
          });
    }
    return call;
  }

  private void checkUsable(Operation operation) {
    if (operation instanceof Collective) {
      group.checkUsableByAll(operation.label());
    } else {
      group.checkUsable(operation.label());
    }
  }

  private Pending alone(Collective collective) {
    group.checkUsable(collective.label());
    Identity.run(collective);
    MpiCall call = new MpiCall(group, collective.label(), 0, memory(false), List.of());
    group.lock();
    try {
      group.start(call);
    } finally {
      group.unlock();
    }
    return call;
  }

  private CallMemory memory(boolean blocking) {
    return new CallMemory(job.memory(), group.staging(), blocking ? pins : null);
  }

  /// Makes a call; the caller holds the lock.
  private MpiCall call(Operation operation, boolean blocking) {
    CallMemory memory = memory(blocking);
    return switch (operation) {
      case Collective collective -> {
        long number = group.nextSequence();
        List<Stage> stages = collectives.stages(collective, number, memory);
        yield new MpiCall(
            group, collective.label(), number, memory, checked(collective, number, memory, stages));
      }
      case PointToPoint message -> messages.call(message, memory);
    };
  }

  /// With what a full check, and an operator that may throw, need before and after.
  private List<Stage> checked(Collective call, long number, CallMemory memory, List<Stage> stages) {
    boolean mayThrow = Reductions.isUserDefined(call);
    if (!job.isFullyChecked() && !mayThrow) {
      return stages;
    }
    List<Stage> all = new ArrayList<>(stages.size() + 2);
    if (job.isFullyChecked()) {
      CallSignature signature = CallSignature.of(call, rank(), size(), CallSignature.Purpose.USER);
      all.add(Agreement.stage(group, memory, signature, number));
      all.addAll(PartsAgreement.stages(group, call, memory));
    }
    all.addAll(stages);
    if (mayThrow) { // nobody has a result where another rank has none
      all.addAll(collectives.stages(new Collective.Barrier(), number, memory));
    }
    return all;
  }

  @Override
  public @Nullable Received run(Operation operation) {
    if (operation instanceof Collective collective && size() == 1) {
      group.checkUsable(operation.label());
      Identity.run(collective);
      return null;
    }
    if (!job.waitsInLibrary()
        || Thread.currentThread().isVirtual()
        || operation instanceof PointToPoint.Probe) {
      Pending pending = submit(operation);
      pending.await(Long.MAX_VALUE);
      return pending.received();
    }
    return runBlocking(operation);
  }

  private @Nullable Received runBlocking(Operation operation) {
    group.refuseOperators();
    String label = operation.label();
    group.checkUsable(label);
    if (operation instanceof Collective) {
      awaitWorker();
    }
    try {
      return group.watched(label, operation, group.upcoming(), () -> runInLibrary(operation));
    } catch (CommException thrown) {
      throw broken(thrown);
    }
  }

  private DirectCalls direct() {
    DirectCalls calls = direct;
    if (calls == null) {
      calls = new DirectCalls(group, pins);
      direct = calls;
    }
    return calls;
  }

  private @Nullable Received runInLibrary(Operation operation) {
    switch (operation) {
      case Collective call -> {
        if (!job.isFullyChecked() && direct().run(call)) {
          return null;
        }
      }
      case PointToPoint.Send send -> {
        if (direct().send(send)) {
          return null;
        }
      }
      case PointToPoint.Receive receive -> {
        Received received = direct().receive(receive);
        if (received != null) {
          return received;
        }
      }
      default -> {}
    }
    MpiCall call = prepared(operation);
    group.runBlocking(call);
    return call.received();
  }

  private MpiCall prepared(Operation operation) {
    boolean isMade = false;
    group.lock();
    try {
      group.checkUsable(operation.label());
      MpiCall call = call(operation, true);
      group.prepareBlocking(call);
      isMade = true;
      return call;
    } finally {
      if (!isMade) {
        pins.release(); // the library has not seen them
      }
      group.unlock();
    }
  }

  /// What a call throws that has failed: the communicator's first reason.
  private CommException broken(CommException thrown) {
    group.breakNow(thrown);
    CommException reason = group.failure();
    return reason == null ? thrown : reason;
  }

  /// Lets collectives that were started before have their turn first: all ranks must call the
  /// library in one order.
  private void awaitWorker() {
    MpiCall before = group.worker().last();
    if (before != null) {
      before.await(Long.MAX_VALUE);
    }
  }

  private static void awaitEnd(MpiCall call) {
    try {
      call.await(Long.MAX_VALUE);
    } catch (CancellationException _) {
      // another thread has taken the receive back: that is an end too
    }
  }

  @Override
  public void sync() {
    group.refuseOperators();
    group.lock();
    List<MpiCall> calls;
    try {
      calls = group.calls();
    } finally {
      group.unlock();
    }
    calls.forEach(MpiCommunicator::awaitEnd);
    CommException failure = group.failure();
    if (failure != null) { // a close meanwhile is for the barrier behind it to tell the others
      throw failure;
    }
  }

  // --- groups ---

  /// Gathers words of all ranks for a purpose of the library's own.
  long[][] gather(CallSignature.Purpose purpose, long... mine) {
    group.refuseOperators();
    long[][] rows = new long[size()][mine.length];
    if (size() == 1) {
      rows[0] = mine;
      return rows;
    }
    MemorySegment all = Arena.ofAuto().allocate(JAVA_LONG, (long) mine.length * size());
    MemorySegment own = Arena.ofAuto().allocateFrom(JAVA_LONG, mine);
    var call =
        new Collective.AllGather(
            CommData.of(DataType.INT64, own), CommData.of(DataType.INT64, all));
    awaitWorker();
    MpiCall waiting;
    group.lock();
    try {
      group.checkUsableByAll(purpose.label());
      CallMemory memory = memory(false);
      long number = group.nextSequence();
      List<Stage> stages = new ArrayList<>(2);
      if (job.isFullyChecked()) {
        CallSignature signature = CallSignature.of(call, rank(), size(), purpose);
        stages.add(Agreement.stage(group, memory, signature, number));
      }
      stages.addAll(collectives.stages(call, number, memory));
      waiting = new MpiCall(group, purpose.label(), number, memory, stages);
      if (job.waitsInLibrary()) { // as users' collectives, which a rank may call instead
        group.startOnWorker(waiting);
      } else {
        group.start(waiting);
      }
    } finally {
      group.unlock();
    }
    waiting.await(Long.MAX_VALUE);
    for (int rank = 0; rank < size(); rank++) {
      MemorySegment.copy(
          all, JAVA_LONG, (long) Long.BYTES * mine.length * rank, rows[rank], 0, mine.length);
    }
    return rows;
  }

  @Override
  public Optional<BackendCommunicator> split(int color, int key) {
    return Optional.ofNullable(
        split(CallSignature.Purpose.SPLIT, "split", color, key, this::splitByColor));
  }

  @Override
  public BackendCommunicator duplicate() {
    return Objects.requireNonNull(
        split(CallSignature.Purpose.DUPLICATE, "copy", 0, 0, this::splitByColor));
  }

  @Override
  public MpiCommunicator splitLocal() {
    int leader = group.ranksHere().getFirst();
    return Objects.requireNonNull(
        split(CallSignature.Purpose.SPLIT, "host", leader, 0, this::splitByHost));
  }

  interface Splitter {
    /// Makes the library's communicator of this rank's colour.
    ///
    /// @param members the ranks of that colour, in their new order
    /// @param patience throws if it is not to be waited for any longer
    long split(String label, int color, List<Integer> members, Runnable patience);
  }

  /// Whatever fails breaks the communicator: other ranks may wait in what the library makes.
  ///
  /// @param part what the new ones are called, with a number
  @Nullable MpiCommunicator split(
      CallSignature.Purpose purpose, String part, int color, int key, Splitter splitter) {
    group.refuseOperators();
    try {
      return splitNow(purpose, part, color, key, splitter);
    } catch (BackendException e) {
      throw broken(Errors.inCall(e, rank(), purpose.label(), name()));
    } catch (CommException e) {
      throw broken(e);
    } catch (ClosedException e) { // the others have been told
      throw e;
    } catch (RuntimeException | Error e) {
      group.breakNow(
          new AbortedException(rank(), "'%s' threw %s".formatted(purpose.label(), e), e));
      throw e;
    }
  }

  private @Nullable MpiCommunicator splitNow(
      CallSignature.Purpose purpose, String part, int color, int key, Splitter splitter) {
    String label = purpose.label();
    Library.retired().free();
    long[][] all;
    try (ClosedWindows.Chosen closed = Library.closedWindows().choose(group.members())) {
      all = gather(purpose, job.propose(), color, key, closed.count());
      int most = Arrays.stream(all).mapToInt(words -> (int) words[3]).max().orElseThrow();
      closed.free(this, most, purpose, label);
    }
    List<Integer> members =
        IntStream.range(0, size())
            .filter(rank -> all[rank][1] == color)
            .boxed()
            .sorted(Comparator.<Integer>comparingLong(rank -> all[rank][2]).thenComparing(r -> r))
            .toList();
    long id = IntStream.range(0, size()).mapToLong(rank -> all[rank][0]).max().orElseThrow();
    long number = job.agreed(id);
    boolean isNone = color == Communicator.NO_COLOR;
    if (isNone && members.size() == size()) {
      return null; // nobody wants one
    }
    Runnable patience = group.patience(label);
    try {
      long made = splitter.split(label, color, members, patience);
      if (isNone) {
        return null;
      }
      int[] world = members.stream().mapToInt(rank -> group.members()[rank]).toArray();
      String name = ChildName.of(name(), part, number);
      MpiGroup own = new MpiGroup(job, name, id, world, made, Comms.duplicate(made, patience));
      lookAtSums(own, isCopy(members), label, patience);
      return new MpiCommunicator(own);
    } catch (RuntimeException | Error e) {
      // others may have it already, and would wait for this rank
      String why = e instanceof CommException ? e.getMessage() : e.toString();
      String message = "rank %d could not make it: %s".formatted(rank(), why);
      job.session().abort(id, new AbortNotice(AbortNotice.Kind.ABORT, List.of(), message).encode());
      throw e;
    }
  }

  /// Finds out what [MpiGroup#keepsBits] says; of a copy it is known.
  private void lookAtSums(MpiGroup made, boolean isCopy, String label, Runnable patience) {
    if (isCopy) {
      made.keepsBits(group.keepsBits());
      return;
    }
    boolean isOver = false;
    try {
      new SameBits(made, patience).probe(label);
      isOver = true;
    } finally {
      if (!isOver) {
        var _ = made.close(); // and never freed: the library may still be at it
        job.remove(made);
      }
    }
  }

  long splitByColor(String label, int color, List<Integer> members, Runnable patience) {
    if (isCopy(members)) {
      return Comms.duplicate(group.collectives(), patience);
    }
    boolean isNone = color == Communicator.NO_COLOR;
    // the place among the members instead of the key: equal keys keep their order in every library
    return group.make(
        label,
        allRanks(),
        () ->
            Comms.split(
                group.collectives(),
                isNone ? Functions.constants().undefined : color,
                isNone ? 0 : members.indexOf(rank())));
  }

  /// The library's communicator of those that share memory. Who is on which host the session says;
  /// where the library sees that otherwise (all ranks of the host find so), it makes one of the
  /// host's ranks instead.
  private long splitByHost(String label, int color, List<Integer> members, Runnable patience) {
    long comm = group.collectives();
    if (isCopy(members)) {
      return Comms.duplicate(comm, patience);
    }
    return job.sharesMemory()
        ? group.make(label, allRanks(), () -> sharing(comm, members))
        : group.make(label, members, () -> Comms.ofRanks(comm, members));
  }

  private static long sharing(long comm, List<Integer> members) {
    long sharing = Comms.sharing(comm);
    if (Comms.ranks(sharing, comm).equals(members)) {
      return sharing;
    }
    long made = Comms.ofRanks(comm, members);
    Comms.free(sharing); // nobody has used it
    return made;
  }

  /// Whether these are all ranks in their order; if so on one rank, then on all.
  private boolean isCopy(List<Integer> members) {
    return members.equals(allRanks());
  }

  private List<Integer> allRanks() {
    return IntStream.range(0, size()).boxed().toList();
  }

  @Override
  public Shrink shrink() {
    throw new UnsupportedException(Abilities.noShrink());
  }

  // --- memory ---

  @Override
  public CommBuffer allocate(DataType type, long count) {
    group.checkUsable("allocate");
    job.freeOverdue();
    MpiBuffer buffer = MpiBuffer.allocate(job, type, count);
    buffers.removeIf(MpiBuffer::isClosed);
    buffers.add(buffer);
    return buffer;
  }

  @Override
  public SharedMemoryProvider sharedMemory() {
    MpiSharedMemory provider = sharedMemory;
    if (provider == null) {
      provider = new MpiSharedMemory(this);
      sharedMemory = provider;
    }
    return provider;
  }

  // --- the end ---

  @Override
  public void abort(CommException failure) {
    group.breakNow(failure);
  }

  @Override
  public void leaveCall(AbortedException reason) {
    if (job.waitsInLibrary() || !group.endOwnCalls()) {
      abort(reason);
    }
  }

  @Override
  public void abortProcess(int code) {
    job.abortProcess(code);
  }

  @Override
  public @Nullable CommException failure() {
    return group.failure();
  }

  MpiGroup group() {
    return group;
  }

  @Override
  public void close() {
    if (group.isClosed()) {
      return;
    }
    try {
      boolean canFree = group.close();
      MpiSharedMemory provider = sharedMemory;
      if (provider != null) {
        provider.close();
      }
      buffers.forEach(MpiBuffer::end);
      if (canFree) {
        Library.retired().add(group);
      }
    } finally {
      job.remove(group);
    }
  }
}
