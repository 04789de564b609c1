package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
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
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.schedule.Ends;
import org.comm4j.core.session.MembersSession;
import org.jspecify.annotations.Nullable;

/// One rank's end of a communicator of GPUs: collectives of data in devices' memory go by kernels,
/// everything else by a communicator of the host with the same ranks.
///
/// That one also keeps the reason why this one is broken, so that first writers win and all ranks
/// hear of it.
final class CudaCommunicator implements BackendCommunicator {
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");

  private final CudaRank rank;
  private final EngineCommunicator host;
  private final BackendCommunicator path;
  private final List<Integer> members; // ranks of the session
  private final boolean isReadInPlace; // this rank's data, by other devices
  private final List<CudaBuffer> buffers = new ArrayList<>();
  private final DeviceMessages messages;
  private final DeviceCalls calls;
  private final CudaSharedMemory shared;
  private @Nullable CudaStreams streams;
  private volatile boolean toldOfThrown;
  private volatile boolean leaving; // closed, but its kernels still ran

  private CudaCommunicator(CudaRank rank, EngineCommunicator host, BackendCommunicator path) {
    this.rank = rank;
    this.host = host;
    this.path = path;
    this.members = IntStream.range(0, host.size()).map(host::worldRank).boxed().toList();
    this.isReadInPlace =
        members.size() <= Window.MAX_RANKS
            && rank.options().path() != CudaOptions.Path.NAIVE
            && rank.areReadByOthers(members);
    this.messages = new DeviceMessages(this, rank, host);
    String key = "cuda/%x".formatted(host.scope());
    MembersSession session = MembersSession.of(rank.session(), key, members);
    this.shared = new CudaSharedMemory(this, rank, host, session, key);
    this.calls = new DeviceCalls(this, rank, session, path, key);
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
    return data.isEmpty() ? host.submit(operation) : submit(operation, data);
  }

  private Pending submit(Operation operation, List<DeviceData> data) {
    try {
      data.forEach(each -> rank.checks().check(operation.label(), each));
      if (operation instanceof Collective call
          && Ends.of(call, rank()).input() instanceof DeviceData input) {
        rank.checks().checkReached(call.label(), input, members);
        if (isReadInPlace && KernelCollectives.has(call)) {
          rank.checks().checkPlain(call.label(), input);
        }
      }
      checkUsable(operation.label());
      return switch (operation) {
        case Collective call -> calls.start(call, data);
        case PointToPoint message -> messages.start(message);
      };
    } catch (BackendException e) { // from the driver, of which the others must hear
      throw breakWith(e);
    }
  }

  /// Checks that the others' devices reach data that this rank lends them.
  void checkLent(String what, DeviceData data) {
    if (rank.areReadByOthers(members)) {
      rank.checks().checkPlain(what, data);
    }
  }

  @Override
  public @Nullable Received run(Operation operation) {
    List<DeviceData> data = onDevices(operation);
    if (data.isEmpty()) {
      return host.run(operation);
    }
    Pending pending = submit(operation, data);
    pending.await(Long.MAX_VALUE);
    return pending.received();
  }

  /// {@return what of the device's memory an operation uses here; empty where all is the host's}
  private List<DeviceData> onDevices(Operation operation) {
    List<DeviceData> data = onDevices(operation, Ends.of(operation, rank()));
    if (operation instanceof Collective.WithEpilogue call && Expression.isExpressed(call)) {
      checkExpression(call, data.isEmpty());
    }
    return data;
  }

  /// @throws IllegalArgumentException if some is a device's memory and some the host's
  private static List<DeviceData> onDevices(Operation operation, Ends ends) {
    Epilogue epilogue = operation instanceof Collective.WithEpilogue it ? it.epilogue() : null;
    CommData bias = epilogue == null ? null : epilogue.bias();
    CommData residual = epilogue == null ? null : epilogue.residual();
    List<CommData> all =
        Stream.of(ends.input(), ends.output(), bias, residual).filter(Objects::nonNull).toList();
    List<DeviceData> devices =
        all.stream().filter(DeviceData.class::isInstance).map(DeviceData.class::cast).toList();
    if (!devices.isEmpty() && devices.size() < all.size()) {
      throw new IllegalArgumentException(
          "%s: input %s, output %s%s (expected: all in a device's memory or all in the host's)"
              .formatted(
                  operation.label(),
                  ends.input(),
                  ends.output(),
                  epilogue == null ? "" : ", epilogue " + epilogue));
    }
    return devices;
  }

  private void checkExpression(Collective.WithEpilogue call, boolean isOnHost) {
    Epilogue epilogue = Objects.requireNonNull(call.epilogue());
    String what =
        "%s of %s to %s with the expression '%s'"
            .formatted(call.label(), call.input(), call.output(), epilogue.expression());
    if (isOnHost) {
      throw new UnsupportedException(
          what
              + " is not supported by backend 'cuda' in the host's memory (expected: data in a device's memory, where the expression is compiled for); use device data, or call it without the expression and apply that to the output yourself");
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
    if (!calls.mayBegin()) {
      throw closed(label);
    }
  }

  ClosedException closed(String label) {
    return new ClosedException(label + " on communicator '" + name() + "', which is closed");
  }

  @Override
  public void sync() {
    calls.awaitAll();
    host.sync();
    messages.settle();
    checkUsable("sync");
  }

  /// Puts an event behind what was started; waits for what the host has a part in.
  void record(CudaDevice.Event event) {
    messages.awaitReceived();
    calls.record(event);
  }

  /// {@return the collectives on devices' memory}
  DeviceCalls calls() {
    return calls;
  }

  long graceNs() {
    return rank.patience().grace().toNanos();
  }

  long timeoutNs() {
    return rank.config().timeout().toNanos();
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
      if (!CudaDriver.isFull(e)) {
        throw breakWith(e);
      }
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

  // --- failures ---

  @Override
  public @Nullable CommException failure() {
    CommException failure = host.failure();
    return failure != null ? failure : path.failure();
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
    calls.takeInNews(); // and no more, as calls break it under their locks
    return known == null ? reason : known;
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

  @Override
  public void abort(CommException failure) {
    breakWith(failure);
    calls.look();
  }

  @Override
  public void abortProcess(int code) {
    host.abortProcess(code);
  }

  // --- the end ---

  @Override
  public void leaveCall(AbortedException reason) {
    calls.letNoneBegin();
    if (calls.areOver()) {
      host.leaveCall(reason);
    } else {
      abort(reason);
    }
  }

  @Override
  public void close() {
    if (!calls.close()) {
      return;
    }
    boolean hasLeft = calls.end();
    host.beginClose(); // else the path's ranks are told of a close where this rank leaves
    path.close();
    host.close();
    messages.close();
    rank.end(buffers);
    if (hasLeft) {
      rank.remove(this);
    } else {
      leaving = true;
      rank.startWatcher();
    }
  }

  /// Looks after calls of which nobody asks, and after the end. Only the watcher does.
  void goOn() {
    calls.look();
    calls.lookAtKernels();
    leaveIfEnded();
  }

  /// Gives back what is left if kernels ran on when this was closed and have ended: a device that
  /// is busy does not keep [#close] from returning.
  private void leaveIfEnded() {
    if (leaving && calls.hasLeft(0)) {
      leaving = false;
      try {
        calls.closeDevices();
      } finally {
        rank.remove(this);
      }
    }
  }
}
