package org.comm4j.backend.cuda;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import jcuda.driver.CUstream;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// The windows of a group of workers, each within the reach of all: one per rank, on its device.
/// Workers may be threads of one process, with devices of their own or sharing one, and processes
/// of one host, which open each other's windows by handles of CUDA's inter-process communication. A
/// process never opens its own.
///
/// TVM's class of this name has the same parts: workers, a worker's id, pointers to the workers'
/// data and to the signals of the two barriers, and an epoch. All signals are in the windows here,
/// so that one handle is exchanged and nothing is freed while another part is in use.
///
/// Opening is a collective of the session. Closing is local: a worker closes what it has opened,
/// says so, and gives its own window back when all others have said it, or are dead to the session
/// and of other processes: of one that is only silent, kernels may still write into it. CUDA leaves
/// open what happens to who uses what its owner has freed, and kernels may run on after their rank
/// has left or has been given up, so a window that somebody may still have open stays, until a
/// later opening or closing here finds that nobody has, or the process ends. It goes back to the
/// device's pool: freeing would wait for kernels of other groups.
///
/// Used by one thread at a time, besides [#leave] and [#hasLeft], which another one may use.
final class CudaIpcMemory implements AutoCloseable {
  private static final long LEAVE_NS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final String WINDOW = "/window";
  private static final String REACHED = "/reached";
  private static final int OFFER_BYTES = 16 + 4 + 8; // besides the handle

  /// Windows of workers of this process that are not closed.
  private static final Set<Long> OPEN = ConcurrentHashMap.newKeySet();

  /// Closed ones whose windows somebody may still have open.
  private static final List<CudaIpcMemory> LEFT_OVER = new ArrayList<>();

  private final Session session;
  private final String key;
  private final Gpu gpu;
  private final CudaDevice device;
  private final Window layout;
  private final long own;
  private final List<Worker> workers = new ArrayList<>();
  private long epoch;
  private @Nullable CUstream leaving; // what leave() has not seen the end of
  private boolean closed;

  /// @param address of its window here
  /// @param base what to add here to an address in its window, as it knows it
  private record Worker(long address, long base, boolean isImport) {
    boolean isHere() {
      return !isImport && address != 0;
    }
  }

  private CudaIpcMemory(Session session, String key, Gpu gpu, Window layout) {
    this.session = session;
    this.key = key;
    this.gpu = gpu;
    this.device = gpu.device();
    this.layout = layout;
    this.own = gpu.memory().take(layout.bytes());
    OPEN.add(own);
  }

  /// Makes this worker's window and reaches those of the others. All workers of the session call it
  /// at once; it succeeds on all of them or on none.
  ///
  /// @param session of the workers alone; still open when this is closed
  /// @param key the same on all workers, and used once
  /// @param driver the process's
  /// @param ordinal which device is this worker's
  /// @param layout the same on all workers
  /// @param process the same for workers of one process, and no others; not the process's number,
  ///   which in another container may be another's
  /// @param timeout how long to wait for the others, for each of the two exchanges
  /// @return the caller closes it
  /// @throws BackendUnavailableException on all workers, if one of them can't reach all windows
  /// @throws CommException if a worker dies or is late
  static CudaIpcMemory open(
      Session session,
      String key,
      CudaDriver driver,
      int ordinal,
      Window layout,
      UUID process,
      Duration timeout) {
    sweep();
    CudaIpcMemory memory;
    try {
      memory = allocate(session, key, Gpu.open(driver, ordinal, process), layout);
    } catch (BackendException e) {
      throw withdraw(session, key, timeout, String.valueOf(e.getMessage()));
    }
    try {
      memory.reachAll(driver, process, timeout);
      return memory;
    } catch (RuntimeException e) {
      memory.close();
      throw e;
    }
  }

  /// A window that is cleared before anybody can write a signal.
  private static CudaIpcMemory allocate(Session session, String key, Gpu gpu, Window layout) {
    CudaIpcMemory memory = null;
    try {
      memory = new CudaIpcMemory(session, key, gpu, layout);
      memory.clear();
      return memory;
    } catch (RuntimeException e) {
      if (memory != null) {
        OPEN.remove(memory.own);
        memory.giveBack();
      } else {
        gpu.close();
      }
      throw e;
    }
  }

  private void giveBack() {
    gpu.memory().giveBack(layout.bytes(), own);
    gpu.close();
  }

  /// Takes part in what the others wait for, without a window.
  private static BackendUnavailableException withdraw(
      Session session, String key, Duration timeout, String problem) {
    byte[] said = problem.getBytes(StandardCharsets.UTF_8);
    session.put(closedKey(key, session.rank()), new byte[0]); // it opens nobody's
    session.exchange(key + WINDOW, Offer.NONE, timeout);
    session.exchange(key + REACHED, said, timeout);
    return unavailable(session.rank(), problem);
  }

  private void clear() {
    CUstream stream = device.createStream();
    try {
      device.clear(own, layout.bytes(), stream);
      device.await(stream);
    } finally {
      device.destroy(stream);
    }
  }

  private void reachAll(CudaDriver driver, UUID process, Duration timeout) {
    String problem = "";
    byte[] handle = Offer.NO_HANDLE;
    try {
      handle = device.export(own);
    } catch (BackendException e) {
      problem = String.valueOf(e.getMessage());
    }
    var mine = new Offer(process, device.ordinal(), own, handle);
    List<Offer> offers =
        session.exchange(key + WINDOW, mine.bytes(), timeout).stream().map(Offer::of).toList();
    if (offers.stream().allMatch(mine::isOfSameProcess)) {
      problem = ""; // nobody needs a handle
    }
    for (int worker = 0; worker < offers.size() && problem.isEmpty(); worker++) {
      try {
        workers.add(reach(driver, mine, offers.get(worker)));
      } catch (BackendException e) {
        problem = "it can't reach worker %d's memory: %s".formatted(worker, e.getMessage());
      }
    }
    byte[] said = problem.getBytes(StandardCharsets.UTF_8);
    List<byte[]> problems = session.exchange(key + REACHED, said, timeout);
    for (int worker = 0; worker < problems.size(); worker++) {
      if (problems.get(worker).length > 0) {
        throw unavailable(worker, new String(problems.get(worker), StandardCharsets.UTF_8));
      }
    }
  }

  private static BackendUnavailableException unavailable(int worker, String problem) {
    return new BackendUnavailableException(
        CudaProvider.NAME,
        "worker %d: %s".formatted(worker, problem),
        "let the processes share their IPC namespace (docker run --ipc) and use GPUs that reach each other (nvidia-smi topo -p2p r)");
  }

  private Worker reach(CudaDriver driver, Offer mine, Offer theirs) {
    if (mine.isOfSameProcess(theirs)) {
      try (CudaDevice peer = driver.open(theirs.ordinal())) {
        device.reach(peer);
      }
      return new Worker(theirs.window(), 0, false);
    }
    if (!theirs.hasHandle()) {
      return new Worker(0, 0, false); // never used: that worker says why, and nobody succeeds
    }
    long here = device.open(theirs.handle());
    return new Worker(here, here - theirs.window(), true);
  }

  /// What a worker tells the others of its window.
  ///
  /// @param process which one is its
  /// @param ordinal of its device, as the process counts
  /// @param window its address there
  /// @param handle by which other processes open it
  private record Offer(UUID process, int ordinal, long window, byte[] handle) {
    static final byte[] NO_HANDLE = new byte[0];
    static final byte[] NONE = new byte[0];

    static Offer of(byte[] bytes) {
      if (bytes.length == 0) {
        return new Offer(new UUID(0, 0), 0, 0, NO_HANDLE);
      }
      ByteBuffer in = ByteBuffer.wrap(bytes);
      var process = new UUID(in.getLong(), in.getLong());
      int ordinal = in.getInt();
      long window = in.getLong();
      byte[] handle = new byte[in.remaining()];
      in.get(handle);
      return new Offer(process, ordinal, window, handle);
    }

    byte[] bytes() {
      return ByteBuffer.allocate(OFFER_BYTES + handle.length)
          .putLong(process.getMostSignificantBits())
          .putLong(process.getLeastSignificantBits())
          .putInt(ordinal)
          .putLong(window)
          .put(handle)
          .array();
    }

    boolean isOfSameProcess(Offer other) {
      return process.equals(other.process);
    }

    boolean hasHandle() {
      return handle.length > 0;
    }
  }

  /// {@return how many workers there are}
  int workers() {
    return session.size();
  }

  /// {@return this worker}
  int workerId() {
    return session.rank();
  }

  /// {@return the address here of a worker's scratch}
  long remoteData(int worker) {
    return workers.get(worker).address() + layout.scratch();
  }

  /// {@return the address here of the signals by which the others tell a worker that they have
  /// come}
  long barrierIn(int worker) {
    return workers.get(worker).address();
  }

  /// {@return the address here of those by which they tell it that they have read its data}
  long barrierOut(int worker) {
    return workers.get(worker).address() + Window.PASSES;
  }

  /// {@return the number of the last call}
  long epoch() {
    return epoch;
  }

  /// {@return the number of the next call, the same on all workers if they make the same calls}
  long nextEpoch() {
    return ++epoch;
  }

  /// {@return parameters for this worker's kernels, which know where everybody's window is}
  ///
  /// @param control the address of this worker's [Control]
  /// @param timeoutNs how long a kernel waits for a peer
  Parameters parameters(long control, long timeoutNs) {
    var parameters = new Parameters(workerId(), layout, control, timeoutNs);
    for (int worker = 0; worker < workers(); worker++) {
      parameters.peer(worker, workers.get(worker).address(), workers.get(worker).base());
    }
    return parameters;
  }

  /// {@return this worker's device; closed with this}
  CudaDevice device() {
    return device;
  }

  /// Gives up calls whose kernels have not ended: those that have not begun will not come, and the
  /// others' leave if they have read this worker's memory, which may change afterwards. So does a
  /// kernel that leaves on its own. Waits for a moment only, as the device may be stuck: until
  /// [#hasLeft] this must not be closed.
  ///
  /// @param control the address of this worker's [Control], in which it has aborted
  void leave(long control) {
    tried(
        "leaving calls",
        () -> {
          CUstream stream = device.createStream();
          leaving = stream;
          tell(control, barrierIn(workerId()) + Window.BROKEN, stream);
          for (int worker = 0; worker < workers(); worker++) {
            if (worker != workerId()) {
              tell(control, barrierIn(worker) + Window.left(workerId()), stream);
            }
          }
          long beginNs = System.nanoTime();
          while (!hasLeft() && System.nanoTime() - beginNs < LEAVE_NS) {
            LockSupport.parkNanos(this, DeviceCall.SHORT_NS);
          }
        });
  }

  /// {@return whether [#leave] has written all that it writes, or was not called}
  boolean hasLeft() {
    CUstream stream = leaving;
    if (stream == null) {
      return true;
    }
    try {
      if (!device.isDone(stream)) {
        return false;
      }
    } catch (BackendException _) {
      // the device has failed: nothing runs on it
    }
    leaving = null;
    tried("leaving calls", () -> device.destroy(stream));
    return true;
  }

  /// The first word there is not 0 any more, which is all that matters.
  private void tell(long control, long to, CUstream stream) {
    device.copy(control, to, Long.BYTES, stream);
  }

  /// Closes what this worker has opened; none of its kernels may run any more. Waits for nobody;
  /// what the driver refuses is logged.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    for (Worker worker : workers) {
      if (worker.isImport()) {
        tried("closing a window", () -> device.closeImport(worker.address()));
      }
    }
    sayClosed();
    OPEN.remove(own);
    synchronized (LEFT_OVER) {
      LEFT_OVER.add(this);
    }
    sweep();
  }

  /// Once a kernel has failed every call on its context fails; the process's end frees all then.
  private static void tried(String what, Runnable action) {
    try {
      action.run();
    } catch (BackendException e) {
      LOG.log(System.Logger.Level.WARNING, what + " failed: " + e.getMessage());
    }
  }

  private void sayClosed() {
    try {
      session.put(closedKey(key, workerId()), new byte[0]);
    } catch (CommException | IllegalStateException _) {
      // the session is over; to the others this worker is dead, or they are
    }
  }

  private static String closedKey(String key, int worker) {
    return key + "/closed/" + worker;
  }

  /// Frees the windows that nobody has open any more.
  private static void sweep() {
    synchronized (LEFT_OVER) {
      LEFT_OVER.removeIf(CudaIpcMemory::freeIfUnused);
    }
  }

  private boolean freeIfUnused() {
    for (int worker = 0; worker < workers(); worker++) {
      if (!hasClosed(worker)) {
        return false;
      }
    }
    tried("giving back a window", this::giveBack);
    return true;
  }

  private boolean hasClosed(int worker) {
    if (worker < workers.size() && workers.get(worker).isHere()) {
      return !OPEN.contains(workers.get(worker).address());
    }
    if (session.news().failures().stream()
        .anyMatch(each -> each.rank() == worker && !each.left())) {
      return true;
    }
    try {
      session.get(closedKey(key, worker), Duration.ZERO);
      return true;
    } catch (CommException | IllegalStateException _) {
      return false; // not yet; or the session is over, and with it what could be known
    }
  }
}
