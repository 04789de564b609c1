package org.comm4j.backend.cuda;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.MembersSession;
import org.jspecify.annotations.Nullable;

/// What all communicators of a rank share: the session, the device that is the rank's, copies
/// between it and the host, calls in flight, and a thread that looks after them. Thread-safe.
final class CudaRank {
  /// A process of the operating system, also across containers.
  static final UUID PROCESS = UUID.randomUUID();

  private static final int UUID_BYTES = 16;
  private static final int BOUNCE_BYTES = 1 << 20;
  private static final long LOOK_NS = 100_000;
  private static final long REST_NS = 100_000_000;

  private final Session session;
  private final CommConfig config;
  private final CudaOptions options;
  private final CudaTable table;
  private final CudaDriver driver;
  private final Gpu gpu;
  private final UUID process;
  private final int threads;
  private final Patience patience;
  private final DataChecks checks;
  private final CudaDevice.Stream copies;
  private final List<UUID> processes; // of each rank of the session
  private final List<List<UUID>> reachable; // of each: its device, and others
  private final List<CudaCommunicator> communicators = new ArrayList<>(); // guarded by this
  private final List<CudaBuffer> leftOver = new ArrayList<>(); // guarded by this
  private final Set<CudaDevice.Event> events = // of the program; guarded by itself
      Collections.newSetFromMap(new IdentityHashMap<>()); // a handle may be another one's later
  private final List<InFlight> calls = new ArrayList<>(); // in flight; guarded by itself
  private @Nullable Thread watcher; // guarded by this
  private volatile boolean closed;

  /// Opens the rank's device; a collective of the session.
  ///
  /// @param process the same for ranks of one process, and no others
  /// @param threads of a block of a kernel, at least 16
  /// @param compiler of the options' expressions
  /// @param patience how long calls may take
  static CudaRank open(
      Session session,
      CommConfig config,
      CudaOptions options,
      UUID process,
      int threads,
      ExpressionCompiler compiler,
      Patience patience) {
    CudaTable table = CudaTable.of(config);
    Map<Expression, byte[]> compiled = new LinkedHashMap<>();
    for (Expression each : options.expressions()) {
      compiled.put(each, compiler.compile(each, options));
    }
    CudaDriver driver = CudaDriver.load();
    int ordinal =
        options
            .device()
            .orElseGet(() ->
                MembersSession.ranksOfThisHost(session).indexOf(session.rank()) % driver.devices());
    if (ordinal >= driver.devices()) {
      throw new IllegalArgumentException(
          "COMM_CUDA_DEVICE: '%d' (expected: 0..%d, this process sees %d devices)"
              .formatted(ordinal, driver.devices() - 1, driver.devices()));
    }
    return new CudaRank(
        session, config, options, table, driver, ordinal, process, threads, compiled, patience);
  }

  private CudaRank(
      Session session,
      CommConfig config,
      CudaOptions options,
      CudaTable table,
      CudaDriver driver,
      int ordinal,
      UUID process,
      int threads,
      Map<Expression, byte[]> compiled,
      Patience patience) {
    this.session = session;
    this.config = config;
    this.options = options;
    this.table = table;
    this.driver = driver;
    this.process = process;
    this.threads = threads;
    this.patience = patience;
    this.gpu = Gpu.open(driver, ordinal, process, config.joinTimeout(), this);
    try {
      List<UUID> mine = new ArrayList<>(List.of(process));
      mine.addAll(gpu.device().reachable());
      List<List<UUID>> all =
          session.exchange("cuda/reachable", bytes(mine), config.timeout()).stream()
              .map(CudaRank::uuids)
              .toList();
      this.processes = all.stream().map(List::getFirst).toList();
      this.reachable = all.stream().map(each -> each.subList(1, each.size())).toList();
      if (options.path() != CudaOptions.Path.NAIVE) {
        gpu.compileAll();
      }
      compiled.forEach((each, ptx) -> gpu.load(each, ptx, config.joinTimeout()));
      this.checks = new DataChecks(this);
      this.copies = gpu.takeStream();
    } catch (RuntimeException e) {
      gpu.removeRank(this);
      gpu.close();
      throw e;
    }
    session.onNews(this::wakeWatcher);
  }

  /// {@return how many ranks of the session have this rank's device}
  int ranksOnDevice() {
    UUID mine = reachable.get(session.rank()).getFirst();
    return Math.toIntExact(
        reachable.stream().filter(devices -> devices.getFirst().equals(mine)).count());
  }

  private static byte[] bytes(List<UUID> all) {
    ByteBuffer bytes = ByteBuffer.allocate(all.size() * UUID_BYTES);
    for (UUID each : all) {
      bytes.putLong(each.getMostSignificantBits()).putLong(each.getLeastSignificantBits());
    }
    return bytes.array();
  }

  private static List<UUID> uuids(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    return Stream.generate(() -> new UUID(in.getLong(), in.getLong()))
        .limit(bytes.length / UUID_BYTES)
        .toList();
  }

  /// {@return for each of some ranks whether its device reaches those of the others}
  ///
  /// @param members ranks of the session
  List<List<Boolean>> peerAccess(List<Integer> members) {
    return members.stream()
        .map(rank ->
            members.stream()
                .map(peer -> reachable.get(rank).contains(reachable.get(peer).getFirst()))
                .toList())
        .toList();
  }

  /// {@return whether some ranks of the session are all of this process}
  boolean areOfThisProcess(List<Integer> members) {
    return members.stream().allMatch(member -> processes.get(member).equals(process));
  }

  /// {@return whether one of some ranks of the session has a device}
  boolean have(List<Integer> members, UUID device) {
    return members.stream().anyMatch(member -> reachable.get(member).getFirst().equals(device));
  }

  /// {@return whether some ranks are all of this process, and not all of one device: then other
  /// devices, if they reach each other, read a rank's data where it is}
  ///
  /// @param members ranks of the session
  boolean areReadByOthers(List<Integer> members) {
    return areOfThisProcess(members)
        && members.stream().map(each -> reachable.get(each).getFirst()).distinct().count() > 1
        && peerAccess(members).stream().allMatch(each -> !each.contains(false));
  }

  Session session() {
    return session;
  }

  CommConfig config() {
    return config;
  }

  CudaOptions options() {
    return options;
  }

  CudaTable table() {
    return table;
  }

  CudaDriver driver() {
    return driver;
  }

  Gpu gpu() {
    return gpu;
  }

  CudaDevice device() {
    return gpu.device();
  }

  UUID process() {
    return process;
  }

  /// {@return how many threads a block of a kernel has}
  int threads() {
    return threads;
  }

  Patience patience() {
    return patience;
  }

  DataChecks checks() {
    return checks;
  }

  // --- copies ---

  /// Copies into the device's memory.
  void write(HostData source, long to) {
    bounce(
        source.bytes(),
        (bounce, at, bytes) -> {
          MemorySegment.copy(source.segment(), at, bounce.segment(), 0, bytes);
          copy(bounce.segment().address(), to + at, bytes);
        });
  }

  /// Copies out of the device's memory.
  void read(long from, HostData target) {
    bounce(
        target.bytes(),
        (bounce, at, bytes) -> {
          copy(from + at, bounce.segment().address(), bytes);
          MemorySegment.copy(bounce.segment(), 0, target.segment(), at, bytes);
        });
  }

  @FunctionalInterface
  private interface Bounce {
    void move(CudaDevice.HostMemory bounce, long at, long bytes);
  }

  private void bounce(long bytes, Bounce action) {
    if (closed) {
      throw new IllegalStateException(
          "rank %d has closed its communicators, and its device with them"
              .formatted(session.rank()));
    }
    if (bytes == 0) {
      return;
    }
    long most = Math.min(bytes, BOUNCE_BYTES);
    CudaDevice.HostMemory memory = gpu.hostMemory().take(most);
    try {
      for (long at = 0; at < bytes; at += most) {
        action.move(memory, at, Math.min(most, bytes - at));
      }
    } finally {
      gpu.hostMemory().giveBack(most, memory);
    }
  }

  /// Copies between memory that the driver knows, and waits for it.
  void copy(long from, long to, long bytes) {
    startCopy(from, to, bytes);
    device().await(copies);
  }

  /// Begins to copy between memory that the driver knows; [#hasCopied] tells when that has ended.
  void startCopy(long from, long to, long bytes) {
    device().copy(from, to, bytes, copies);
  }

  /// {@return whether no copy goes on}
  boolean hasCopied() {
    return device().isDone(copies);
  }

  /// Clears memory of the device, and waits for it.
  void clear(long address, long bytes) {
    device().clear(address, bytes, copies);
    device().await(copies);
  }

  // --- calls ---

  /// A call goes on by itself from now.
  void started(InFlight call) {
    synchronized (calls) {
      calls.removeIf(InFlight::hasEnded);
      calls.add(call);
    }
  }

  /// Checks that no call in flight uses a part of this memory.
  ///
  /// @param what it is of, for the message
  /// @throws IllegalStateException if one does
  void checkUnused(String what, DeviceData data) {
    InFlight user = userOf(data);
    if (user != null) {
      throw new IllegalStateException(
          "%s %s is used by %s, which is in flight; await it first"
              .formatted(what, data, user.text()));
    }
  }

  /// {@return a call in flight that uses a part of it; null if there is none}
  @Nullable InFlight userOf(DeviceData data) {
    return calls().stream()
        .filter(call -> call.uses(data.address(), data.bytes()))
        .filter(call -> !(call.isDone() && call.hasEnded()))
        .findFirst()
        .orElse(null);
  }

  /// {@return whether none of its calls is in flight that have kernels} Asks them.
  boolean isIdle() {
    return calls().stream()
        .allMatch(each -> !(each instanceof DeviceCall call) || (!isBusy(call) && call.hasEnded()));
  }

  /// {@return whether such calls are in flight, as far as somebody has asked}
  boolean hasCalls() {
    return calls().stream().anyMatch(DeviceCall.class::isInstance);
  }

  private List<InFlight> calls() {
    synchronized (calls) {
      calls.removeIf(InFlight::hasEnded);
      return List.copyOf(calls);
    }
  }

  // --- the program's events ---

  CudaDevice.Event createEvent() {
    synchronized (events) {
      if (closed) {
        throw new IllegalStateException("rank %d has closed its device".formatted(session.rank()));
      }
      CudaDevice.Event event = device().createEvent();
      events.add(event);
      return event;
    }
  }

  boolean has(CudaDevice.Event event) {
    synchronized (events) {
      return events.contains(event);
    }
  }

  /// Gives an event back, unless that is done; what waits for it goes on doing so.
  void destroy(CudaDevice.Event event) {
    synchronized (events) {
      if (events.remove(event)) {
        device().destroy(event);
      }
    }
  }

  private void destroyEvents() {
    synchronized (events) {
      for (CudaDevice.Event each : events) {
        CudaIpcBlocks.tried("destroying an event", () -> device().destroy(each));
      }
      events.clear();
    }
  }

  // --- communicators and the thread that looks after them ---

  synchronized void add(CudaCommunicator communicator) {
    communicators.add(communicator);
  }

  /// Ends buffers; memory that is in use goes back with a later end.
  void end(List<CudaBuffer> buffers) {
    List<CudaBuffer> ending;
    synchronized (this) {
      leftOver.addAll(buffers);
      ending = List.copyOf(leftOver);
    }
    List<CudaBuffer> ended = ending.stream().filter(CudaBuffer::end).toList(); // asks calls
    synchronized (this) {
      leftOver.removeAll(ended);
    }
  }

  /// The last communicator's end gives the device back.
  void remove(CudaCommunicator communicator) {
    end(List.of());
    synchronized (this) {
      communicators.remove(communicator);
      if (!communicators.isEmpty()) {
        return;
      }
    }
    close();
  }

  /// Gives the device back; without a communicator it is for whoever has opened it.
  void close() {
    Thread watching;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      watching = watcher;
    }
    LockSupport.unpark(watching);
    destroyEvents();
    gpu.giveBack(copies);
    gpu.removeRank(this);
    gpu.close();
  }

  private synchronized List<CudaCommunicator> communicators() {
    return List.copyOf(communicators);
  }

  /// Has somebody look at calls of whom nobody asks.
  synchronized void startWatcher() {
    if (watcher == null && !closed) {
      watcher =
          Thread.ofPlatform()
              .daemon()
              .name("comm4j-cuda rank " + session.rank())
              .start(this::watch);
    }
    LockSupport.unpark(watcher); // it may rest
  }

  private synchronized void wakeWatcher() {
    LockSupport.unpark(watcher);
  }

  private void watch() {
    while (!closed) {
      for (CudaCommunicator each : communicators()) {
        goOn(each);
      }
      boolean busy = false;
      for (InFlight each : calls()) {
        busy |= each instanceof DeviceCall call && call.isWatched() && isBusy(call);
      }
      LockSupport.parkNanos(this, busy ? LOOK_NS : REST_NS);
    }
  }

  private static void goOn(CudaCommunicator communicator) {
    try {
      communicator.goOn();
    } catch (RuntimeException | Error e) { // the others' calls must still end
      communicator.failWith(e);
    }
  }

  private static boolean isBusy(DeviceCall call) {
    try {
      return !call.isDone();
    } catch (RuntimeException | Error e) {
      call.communicator().failWith(e);
      return false;
    }
  }
}
