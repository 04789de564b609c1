package org.comm4j.backend.cuda;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.DeviceData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.session.MembersSession;
import org.jspecify.annotations.Nullable;

/// A communicator's collectives of data in devices' memory, from their start to their end, in the
/// order in which they were started: kernels in one stream, and what goes through the host, with
/// what is started behind it, on one thread. Thread-safe.
///
/// Calls are started, and their kernels launched, under this one's lock, which takes long where the
/// driver holds a launch back. Whoever breaks the communicator or closes it, and the rank's
/// watcher, can't wait for that: the list of calls has a lock of its own, which is never held while
/// the driver is asked, and what else they need is volatile. Locks are taken in this order: this
/// one's, a call's, the list's.
final class DeviceCalls {
  private static final long CLOSE_NS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long LEAVE_NS = TimeUnit.MILLISECONDS.toNanos(300);

  private final CudaCommunicator communicator;
  private final CudaRank rank;
  private final MembersSession members;
  private final String key;
  private final CudaDevice.Stream stream;
  private final HostPath hostPath;
  private final CallThread thread;
  private final Reasons reasons;
  private final Stalls stalls;
  private final List<DeviceCall> inFlight = new ArrayList<>(); // in order; its own lock
  private boolean haveMet; // the devices; the thread's
  private volatile @Nullable DeviceGroup devices; // null if no kernels; set by the thread
  private volatile @Nullable KernelCollectives kernels; // set before the devices
  private long number; // of collectives; guarded by this
  private @Nullable DeviceCall queued; // the last one that was the thread's; guarded by this
  private CudaDevice.@Nullable Stream behindEvents; // only those of the program; guarded by this
  private volatile long reachedNs = System.nanoTime();
  private volatile boolean closed; // set under the list's lock
  private volatile boolean closing; // soon: no more calls begin; set under the list's lock

  /// @param members the session as the communicator's ranks see it
  /// @param path of the host, with the same ranks; nobody else uses it
  /// @param key the communicator's alone in the session
  DeviceCalls(
      CudaCommunicator communicator,
      CudaRank rank,
      MembersSession members,
      BackendCommunicator path,
      String key) {
    this.communicator = communicator;
    this.rank = rank;
    this.members = members;
    this.key = key;
    this.stream = rank.gpu().takeStream();
    this.hostPath = new HostPath(rank, path, stream);
    this.thread = new CallThread("comm4j-cuda " + communicator.name());
    this.reasons = new Reasons(this, rank.session(), key);
    this.stalls = new Stalls(communicator, rank.patience().stallEvery());
  }

  CudaCommunicator communicator() {
    return communicator;
  }

  /// Starts one.
  ///
  /// @param data what of the device's memory it uses here
  synchronized DeviceCall start(Collective collective, List<DeviceData> data) {
    communicator.checkUsable(collective.label());
    CallSignature signature =
        CallSignature.of(
            collective, communicator.rank(), communicator.size(), CallSignature.Purpose.USER);
    String text = "collective #%d, %s".formatted(++number, signature);
    var call = new DeviceCall(this, collective.label(), text, data);
    begin(call);
    if (queued != null && queued.isInStream()) {
      queued = null; // it keeps what the program may have dropped
    }
    if (queued == null && isByKernels(collective)) {
      launch(call, signature, (to, digest) -> to.launch(collective, digest));
    } else { // as the first one, for which the devices must meet
      queued = call;
      thread.give(() -> runQueued(call, collective, signature));
    }
    return call;
  }

  /// A call is in flight from now on, before its first kernel is: who has called [#letNoneBegin]
  /// sees it, or it does not begin.
  private void begin(DeviceCall call) {
    synchronized (inFlight) {
      if (!mayBegin()) {
        throw communicator.closed(call.label());
      }
      inFlight.removeIf(DeviceCall::hasEnded);
      inFlight.add(call);
    }
    try {
      awaitBegin(call);
    } catch (RuntimeException | Error e) {
      synchronized (inFlight) {
        inFlight.remove(call);
      }
      throw e;
    }
  }

  /// The driver may be freeing something, on whatever device of the process, and that may wait for
  /// a kernel of the program's.
  private void awaitBegin(DeviceCall call) {
    Duration timeout = rank.config().timeout();
    long endNs = System.nanoTime() + timeout.toNanos();
    boolean isInterrupted = Thread.interrupted(); // where it need not wait it begins all the same
    try {
      while (!rank.gpu().begin(() -> rank.started(call), DeviceCall.LONG_NS)) {
        communicator.checkUsable(call.label());
        if (isInterrupted) {
          throw new InterruptedException();
        }
        if (System.nanoTime() - endNs >= 0) {
          throw communicator.breakWith(
              new TransportFailedException(
                  "%s: for %.1f s the driver has been freeing memory or loading kernels on device %s, and waits for a kernel of the program's; let that kernel end first"
                      .formatted(call.text(), timeout.toNanos() / 1e9, rank.gpu().keepingOut()),
                  null));
        }
      }
    } catch (InterruptedException _) {
      isInterrupted = true;
      throw communicator.breakWith(
          new InterruptedCallException(
              "rank %d was interrupted in %s of '%s'"
                  .formatted(communicator.rank(), call.text(), communicator.name())));
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private List<DeviceCall> inFlight() {
    synchronized (inFlight) {
      return List.copyOf(inFlight);
    }
  }

  private boolean isByKernels(Collective collective) {
    return devices != null && KernelCollectives.has(collective);
  }

  /// Brings the ranks' devices together; a collective. Only the thread does.
  private void openDevices() {
    if (!haveMet) {
      DeviceGroup group = DeviceGroup.open(rank, members, key, stream);
      kernels = group == null ? null : new KernelCollectives(rank, group);
      devices = group;
      haveMet = true;
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
    CudaDevice.Event behind = null;
    try {
      try (CudaDevice.Use _ = rank.device().hold()) {
        behind = rank.gpu().takeEvent(); // first: without one, nothing is launched
        launch.to(to, signature.digest());
        rank.device().record(behind, stream);
      }
      call.launched(behind, to.number()); // not earlier: then the event is the call's alone
    } catch (RuntimeException | Error e) {
      CudaDevice.Event behindSome = behind == null ? null : againBehind(behind);
      CommException reason =
          communicator.breakWith(
              e instanceof CommException known
                  ? known
                  : new AbortedException(communicator.rank(), call.label() + " failed: " + e, e));
      call.launchedInPart(behindSome, to.number(), reason);
      awaitKernels(call);
      throw reason;
    }
  }

  private CudaDevice.@Nullable Event againBehind(CudaDevice.Event event) {
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

  /// Gives an event back that may not have been reached.
  void discard(CudaDevice.Event event) {
    CudaIpcBlocks.tried("destroying an event", () -> rank.device().destroy(event));
  }

  // --- the thread ---

  private void runQueued(DeviceCall call, Collective collective, CallSignature signature) {
    RuntimeException reason = null;
    boolean isLaunched = false;
    try {
      communicator.checkUsable(collective.label());
      openDevices();
      if (isByKernels(collective)) {
        launch(call, signature, (to, digest) -> to.launch(collective, digest));
        isLaunched = true;
      } else {
        awaitRanks(call, signature);
        HostPath.Agreement agreed = agree(call, collective, signature);
        if (call.beginsOnHost()) {
          hostPath.run(collective, agreed);
        }
      }
    } catch (CommException e) {
      reason = closed ? e : communicator.breakWith(e);
    } catch (RuntimeException | Error e) {
      reason =
          communicator.breakWith(
              new AbortedException(communicator.rank(), collective.label() + " failed: " + e, e));
    }
    call.endsOnHost();
    if (!isLaunched) {
      call.end(reason);
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
    try {
      meeting.await(Long.MAX_VALUE);
    } finally {
      meeting.abandon();
    }
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
      throw reasons.late(call, e.missing());
    }
    if (agreed.other().isPresent()) {
      throw reasons.mismatch(call, agreed.other().getAsInt());
    }
    return agreed;
  }

  // --- what waits for calls ---

  /// Returns when all has ended that is in a stream.
  ///
  /// @param text what that is, for messages
  private void awaitStream(CudaDevice.Stream which, String text) {
    DeviceCall all = allOf(which, text);
    try {
      all.await(Long.MAX_VALUE);
    } finally {
      all.abandon();
    }
  }

  private DeviceCall allOf(CudaDevice.Stream which, String text) {
    var all = new DeviceCall(this, "stream", text, List.of());
    synchronized (this) {
      all.launched(mark(which), kernels == null ? 0 : kernels.number());
    }
    return all;
  }

  /// Returns when calls have ended that use this memory, and the program's events have been reached
  /// that this waits for: but not when other calls have, which may wait for what this rank does
  /// next.
  ///
  /// @param label of what waits
  /// @throws ClosedException if the communicator is closed before
  void awaitUsers(String label, DeviceData data) {
    CudaDevice.Stream waiting;
    synchronized (this) {
      waiting = behindEvents;
    }
    for (DeviceCall call : inFlight()) {
      if (call.uses(data.address(), data.bytes())) {
        call.await(Long.MAX_VALUE);
      }
    }
    if (waiting != null && !rank.device().isDone(waiting)) {
      DeviceCall all = allOf(waiting, "what the program's events are behind");
      try {
        while (!all.await(CLOSE_NS)) {
          if (!mayBegin()) {
            throw communicator.closed(label);
          }
        }
      } finally {
        all.abandon();
      }
    }
  }

  /// Lets what is started from now on wait for an event.
  void await(CudaDevice.Event event) {
    CudaDevice.Stream waiting = stream();
    synchronized (this) {
      if (behindEvents == null) {
        behindEvents = rank.gpu().takeStream();
      }
      rank.device().awaitIn(behindEvents, event);
      rank.device().awaitIn(waiting, event);
    }
  }

  /// Puts an event behind what was started.
  void record(CudaDevice.Event event) {
    rank.device().record(event, stream());
  }

  /// {@return an event behind all that is in a stream}
  private CudaDevice.Event mark(CudaDevice.Stream which) {
    CudaDevice.Event event = rank.gpu().takeEvent();
    try {
      rank.device().record(event, which);
      return event;
    } catch (RuntimeException e) {
      discard(event);
      throw e;
    }
  }

  /// {@return the stream, when everything that was started is in it or has ended} Not when all has
  /// ended: what is in it may wait for what this rank does next.
  private CudaDevice.Stream stream() {
    DeviceCall last;
    synchronized (this) {
      last = queued;
    }
    if (last != null && !last.isInStream()) {
      last.awaitInStream();
      CommException broken = communicator.failure(); // an interrupt of this wait does that
      if (broken != null) {
        throw broken;
      }
    }
    return stream;
  }

  /// Returns when all have ended that were started.
  void awaitAll() {
    for (DeviceCall call : inFlight()) {
      call.await(Long.MAX_VALUE);
    }
  }

  // --- what calls ask ---

  /// Takes in news; kernels leave where the communicator is broken, and what the thread has not
  /// begun fails. Not under a call's lock: that calls back whoever waits.
  void look() {
    takeInNews();
    thread.doDropped();
  }

  /// The part of [#look] that may be done under a call's lock.
  void takeInNews() {
    boolean isBroken = communicator.failure() != null;
    DeviceGroup group = devices;
    if (group != null) {
      group.abort(isBroken);
    }
    if (isBroken) {
      thread.drop();
    }
  }

  /// Looks at calls that nobody may be awaiting when a kernel has left early: the others should
  /// hear why. Only the watcher does.
  void lookAtKernels() {
    if (communicator.failure() == null && haveKernelsLeft()) {
      inFlight().forEach(DeviceCall::isDone);
    }
  }

  /// {@return whether a kernel has left before its end} Others of its call may still run.
  boolean haveKernelsLeft() {
    DeviceGroup group = devices;
    return group != null && group.isLeftEarly();
  }

  /// Sees whether a call that has not ended takes so long that the user should know.
  void lookAtStall(DeviceCall call) {
    DeviceGroup group = devices;
    stalls.look(call, group == null || call.number() == 0 ? null : group.arrivals());
  }

  /// Gives up calls whose kernels have not ended.
  void leave() {
    DeviceGroup group = devices;
    if (group != null) {
      group.leave();
    }
  }

  boolean isReached(CudaDevice.Event event) {
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
    inFlight().stream()
        .filter(each -> each != call && each.number() <= call.number())
        .forEach(DeviceCall::look);
  }

  /// Gives an event back that was reached.
  void forget(CudaDevice.Event event) {
    rank.gpu().giveBack(event);
  }

  /// Somebody wants to be called back at a call's end.
  void watch() {
    rank.startWatcher();
  }

  /// {@return how a call has ended whose kernels have; null while that is not known, ask again}
  ///
  /// @param endedNs for how long it has been known that they have
  Reasons.@Nullable Ending endingOf(DeviceCall call, long endedNs) {
    DeviceGroup group = devices;
    return group == null ? Reasons.Ending.WELL : reasons.after(call, group, endedNs);
  }

  /// {@return what else may keep kernels from beginning, to be added to a message; else nothing}
  String crowding() {
    int streams = rank.gpu().streams();
    int fewest = Libcuda.fewestQueues();
    int most = Libcuda.queues();
    String queues = fewest == most ? String.valueOf(most) : fewest + " to " + most;
    return streams <= fewest
        ? ""
        : "; or keep calls of fewer communicators in flight at once, or start them in the same order on all ranks: %d streams share %s queues of device %s, in which kernels wait for those before them (%s: at most %d)"
            .formatted(streams, queues, rank.device(), Libcuda.QUEUES, Libcuda.MOST_QUEUES);
  }

  /// {@return the call that a kernel's number belongs to}
  DeviceCall callOf(long number, DeviceCall orThis) {
    return inFlight().stream()
        .filter(each -> each.number() >= number && each.number() <= orThis.number())
        .findFirst()
        .orElse(orThis);
  }

  // --- the end ---

  /// {@return whether calls may begin: nobody has closed the communicator, or is about to}
  boolean mayBegin() {
    return !closed && !closing;
  }

  /// Lets no more calls begin: from then on those in flight stay the same. Takes the list's lock
  /// alone, as the driver may hold a launch back, which holds others up.
  void letNoneBegin() {
    synchronized (inFlight) {
      closing = true;
    }
  }

  /// Does so too, as the communicator is closed.
  ///
  /// @return false if it was already
  boolean close() {
    synchronized (inFlight) {
      if (closed) {
        return false;
      }
      closed = true;
      return true;
    }
  }

  /// {@return whether all have ended, also their kernels} Asks them, outside of the list's lock, as
  /// they take theirs: the device may be done with some that nobody has awaited.
  boolean areOver() {
    return inFlight().stream().allMatch(call -> call.isDone() && call.hasEnded());
  }

  /// Ends those in flight, behind [#close]: they have a moment to end well, and another one when
  /// the communicator is broken; then they are given up.
  ///
  /// @return whether what kernels use was given back; false if they still run
  boolean end() {
    List<DeviceCall> pending = inFlight();
    if (!haveEnded(pending, CLOSE_NS)) {
      DeviceCall first =
          pending.stream().filter(call -> !call.isDone()).findFirst().orElse(pending.getFirst());
      communicator.breakWith(
          new AbortedException(
              communicator.rank(),
              "rank %d closed '%s' during %s"
                  .formatted(communicator.rank(), communicator.name(), first.text()),
              null));
      haveEnded(pending, LEAVE_NS);
    }
    if (!pending.stream().allMatch(DeviceCall::hasEnded)) {
      leave();
    }
    var over = new ClosedException("communicator '" + communicator.name() + "' was closed");
    pending.forEach(call -> call.end(over));
    thread.end();
    boolean hasLeft = hasLeft(LEAVE_NS);
    if (hasLeft) {
      closeDevices();
    }
    return hasLeft;
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

  /// {@return whether nothing uses the devices' memory any more; then nothing does later}
  ///
  /// @param nanos how long to wait for what has nothing to do any more
  boolean hasLeft(long nanos) {
    if (!isIdle(nanos)) {
      return false;
    }
    DeviceGroup group = devices;
    return group == null || group.endLeaving();
  }

  /// {@return whether neither the thread nor kernels run any more, also those of no call}
  private boolean isIdle(long nanos) {
    long endNs = System.nanoTime() + nanos;
    boolean isOver = thread.awaitEnd(nanos);
    try {
      if (!isOver || !areOver()) {
        return false;
      }
      while (!streams().stream().allMatch(rank.device()::isDone)) {
        if (System.nanoTime() - endNs >= 0) {
          return false;
        }
        LockSupport.parkNanos(this, DeviceCall.SHORT_NS);
      }
      return true;
    } catch (BackendException e) {
      return isOver && CudaDriver.isOver(e);
    }
  }

  private synchronized List<CudaDevice.Stream> streams() {
    return behindEvents == null ? List.of(stream) : List.of(stream, behindEvents);
  }

  /// Gives back what kernels use; before the host's communicators are closed, if possible, so that
  /// others hear of it.
  void closeDevices() {
    streams().forEach(rank.gpu()::giveBack);
    DeviceGroup group = devices;
    if (group != null) {
      group.close();
    }
  }
}
