package org.comm4j.backend.cuda;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Processes;

/// Memory of devices that a group of workers reach: of each worker a block, or none. Workers may be
/// threads of one process, with devices of their own or sharing one, and processes of one host,
/// which open each other's blocks by handles of CUDA's inter-process communication. A process never
/// opens its own.
///
/// Opening is a collective of the session. Closing is local: a worker closes what it has opened, as
/// soon as the process has no call in flight, since the driver waits for all kernels there; says
/// so, and gives its own block back when all others have said it; where some are of other
/// processes, which have ended without, nobody here gets it again before it is freed. Of one that
/// is only silent, kernels may still write into it. CUDA leaves open what happens to who uses what
/// its owner has freed, and kernels may run on after their rank has left or has been given up, so a
/// block that somebody may still have open stays, until a later opening or closing here finds that
/// nobody has, or the process ends.
///
/// Used by one thread at a time.
final class CudaIpcBlocks implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final String BLOCK = "/block";
  private static final String REACHED = "/reached";
  private static final int OFFER_BYTES = 16 + 4 + 8 + 8; // besides the handle

  /// Workers of this process that have not closed.
  private static final Set<Opened> OPEN = ConcurrentHashMap.newKeySet();

  /// Closed ones whose blocks somebody may still have open.
  private static final List<CudaIpcBlocks> LEFT_OVER = new ArrayList<>();

  private final Session session;
  private final String key;
  private final UUID process;
  private final Gpu gpu;
  private final Block own;
  private final List<Worker> workers = new ArrayList<>();
  private final CountDownLatch hasClosed = new CountDownLatch(1); // what it has opened
  private boolean closed;

  private record Opened(String session, String key, UUID process, int worker) {}

  /// What a worker lends the others.
  ///
  /// @param address 0 for nothing
  /// @param allocation where the driver's allocation begins that the block is a part of
  /// @param giveBack what to do when nobody reaches it any more
  /// @param discard the same where a process that reached it has been killed: the device may not be
  ///   done yet with what its kernels write
  record Block(long address, long allocation, Runnable giveBack, Runnable discard) {
    /// Memory that is not the pool's.
    Block(long address, long allocation, Runnable giveBack) {
      this(address, allocation, giveBack, giveBack);
    }

    /// Of the device's pool, and cleared: what others have left there is not for peers to see.
    ///
    /// @param gpu closed when the block goes back; if this throws, by the caller
    static Block cleared(Gpu gpu, long bytes) {
      long address = gpu.memory().take(bytes);
      Runnable giveBack =
          () -> {
            gpu.memory().giveBack(bytes, address);
            gpu.close();
          };
      Runnable discard =
          () -> {
            gpu.memory().discard(address);
            gpu.close();
          };
      try {
        clear(gpu, address, bytes);
        return new Block(address, address, giveBack, discard);
      } catch (RuntimeException e) {
        gpu.memory().giveBack(bytes, address);
        throw e;
      }
    }

    private static void clear(Gpu gpu, long address, long bytes) {
      CudaDevice.Stream stream = gpu.takeStream();
      try {
        gpu.device().clear(address, bytes, stream);
        gpu.device().await(stream);
      } catch (RuntimeException e) {
        gpu.destroy(stream);
        throw e;
      }
      gpu.giveBack(stream);
    }

    /// @param giveBack what to do when all others have closed
    static Block none(Runnable giveBack) {
      return new Block(0, 0, giveBack);
    }
  }

  /// One of the group.
  ///
  /// @param isHere whether it is of this process
  /// @param address of its block here; 0 if it has none
  /// @param imported where its allocation was opened here; 0 if it was not
  /// @param base what to add here to an address in its block, as it knows it
  private record Worker(boolean isHere, long address, long imported, long base) {}

  private CudaIpcBlocks(Session session, String key, UUID process, Gpu gpu, Block own) {
    this.session = session;
    this.key = key;
    this.process = process;
    this.gpu = gpu;
    this.own = own;
    OPEN.add(opened(session.rank()));
  }

  /// Reaches the others' blocks. All workers of the session call it at once, or [#withdraw]; it
  /// succeeds on all of them or on none, and then this worker's block is given back as if it had
  /// been closed.
  ///
  /// @param session of the workers alone; still open when this is closed
  /// @param key the same on all workers, and used once in the process's session, whose parts may
  ///   have workers in common
  /// @param driver the process's
  /// @param process the same for workers of one process, and no others; not the process's number,
  ///   which in another container may be another's
  /// @param gpu this worker's device
  /// @param own what this worker lends
  /// @param timeout how long to wait for the others, for each of the two exchanges
  /// @return the caller closes it
  /// @throws BackendUnavailableException on all workers, if one of them can't reach all blocks
  /// @throws CommException if a worker dies or is late
  static CudaIpcBlocks open(
      Session session,
      String key,
      CudaDriver driver,
      UUID process,
      Gpu gpu,
      Block own,
      Duration timeout) {
    sweep();
    var blocks = new CudaIpcBlocks(session, key, process, gpu, own);
    try {
      blocks.reachAll(driver, timeout);
      return blocks;
    } catch (RuntimeException e) {
      blocks.close();
      throw e;
    }
  }

  /// Takes part in what the others wait for, though this worker has no block that it should have.
  ///
  /// @param problem why
  /// @return what all workers throw, unless another one has a problem too
  static BackendUnavailableException withdraw(
      Session session, String key, Duration timeout, String problem) {
    byte[] said = problem.getBytes(StandardCharsets.UTF_8);
    session.put(closedKey(key, session.rank()), new byte[0]); // it opens nobody's
    session.exchange(key + BLOCK, Offer.NONE, timeout);
    session.exchange(key + REACHED, said, timeout);
    return unavailable(session.rank(), problem);
  }

  private void reachAll(CudaDriver driver, Duration timeout) {
    String problem = "";
    byte[] handle = Offer.NO_HANDLE;
    if (own.address != 0) {
      try {
        handle = gpu.device().export(own.allocation);
      } catch (BackendException e) {
        problem = String.valueOf(e.getMessage());
      }
    }
    var mine = new Offer(process, gpu.device().ordinal(), own.address, own.allocation, handle);
    List<Offer> offers =
        session.exchange(key + BLOCK, mine.bytes(), timeout).stream().map(Offer::of).toList();
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
    boolean isHere = mine.isOfSameProcess(theirs);
    if (theirs.address == 0) {
      return new Worker(isHere, 0, 0, 0);
    }
    if (isHere) {
      try (CudaDevice peer = driver.open(theirs.ordinal)) {
        gpu.device().reach(peer);
      }
      return new Worker(true, theirs.address, 0, 0);
    }
    if (!theirs.hasHandle()) {
      return new Worker(false, 0, 0, 0); // never used: that worker says why, and nobody succeeds
    }
    long imported = gpu.device().open(theirs.handle);
    long base = imported - theirs.allocation;
    return new Worker(false, theirs.address + base, imported, base);
  }

  /// What a worker tells the others of its block.
  ///
  /// @param process which one is its
  /// @param ordinal of its device, as the process counts
  /// @param handle by which other processes open the allocation
  private record Offer(UUID process, int ordinal, long address, long allocation, byte[] handle) {
    static final byte[] NO_HANDLE = new byte[0];
    static final byte[] NONE = new byte[0];

    static Offer of(byte[] bytes) {
      if (bytes.length == 0) {
        return new Offer(new UUID(0, 0), 0, 0, 0, NO_HANDLE);
      }
      ByteBuffer in = ByteBuffer.wrap(bytes);
      var process = new UUID(in.getLong(), in.getLong());
      int ordinal = in.getInt();
      long address = in.getLong();
      long allocation = in.getLong();
      byte[] handle = new byte[in.remaining()];
      in.get(handle);
      return new Offer(process, ordinal, address, allocation, handle);
    }

    byte[] bytes() {
      return ByteBuffer.allocate(OFFER_BYTES + handle.length)
          .putLong(process.getMostSignificantBits())
          .putLong(process.getLeastSignificantBits())
          .putInt(ordinal)
          .putLong(address)
          .putLong(allocation)
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

  /// {@return the address here of a worker's block; 0 if it has none}
  long address(int worker) {
    return workers.get(worker).address;
  }

  /// {@return what to add here to an address in a worker's block, as that worker knows it}
  long base(int worker) {
    return workers.get(worker).base;
  }

  /// Closes what this worker has opened; none of its kernels may run any more. Waits for nobody,
  /// and for the driver for a moment only; what that refuses is logged.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    boolean hasOpened = workers.stream().anyMatch(worker -> worker.imported != 0);
    if (!hasOpened || !gpu.keep()) { // with its context all is closed
      end();
      return;
    }
    gpu.aside(() -> {
      try (gpu) {
        while (!closeImports()) {
          LockSupport.parkNanos(this, DeviceCall.LONG_NS);
        }
      } finally {
        end();
      }
    });
  }

  /// Waits until [#close] has closed what this worker has opened.
  ///
  /// @return false if calls in flight keep it from that for so long
  boolean awaitClosed(Duration patience) throws InterruptedException {
    return hasClosed.getCount() == 0 || hasClosed.await(patience.toNanos(), TimeUnit.NANOSECONDS);
  }

  /// {@return whether workers of this process have not said yet that they have closed} For tests,
  /// which keep sessions until then.
  static boolean areOpen() {
    return !OPEN.isEmpty();
  }

  private boolean closeImports() {
    return gpu.whileIdle(() -> {
      for (Worker worker : workers) {
        if (worker.imported != 0) {
          tried("closing a peer's memory", () -> gpu.device().closeImport(worker.imported));
        }
      }
    });
  }

  private void end() {
    try {
      sayClosed();
    } finally {
      hasClosed.countDown();
    }
    OPEN.remove(opened(session.rank()));
    synchronized (LEFT_OVER) {
      LEFT_OVER.add(this);
    }
    sweep();
  }

  private Opened opened(int worker) {
    return new Opened(session.id(), key, process, worker);
  }

  /// Once a kernel has failed every call on its context fails; the process's end frees all then.
  static void tried(String what, Runnable action) {
    try {
      action.run();
    } catch (BackendException e) {
      LOG.log(System.Logger.Level.WARNING, what + " failed: " + e.getMessage());
    }
  }

  private void sayClosed() {
    try {
      session.put(closedKey(key, session.rank()), new byte[0]);
    } catch (CommException | IllegalStateException _) {
      // the session is over; to the others this worker is dead, or they are
    }
  }

  private static String closedKey(String key, int worker) {
    return key + "/closed/" + worker;
  }

  /// Gives the blocks back that nobody has open any more.
  static void sweep() {
    synchronized (LEFT_OVER) {
      LEFT_OVER.removeIf(CudaIpcBlocks::giveBackIfUnused);
    }
  }

  private boolean giveBackIfUnused() {
    boolean isDiscarded = false;
    for (int worker = 0; worker < session.size(); worker++) {
      if (!hasClosed(worker)) {
        if (!hasEnded(worker)) {
          return false;
        }
        isDiscarded = true;
      }
    }
    tried("giving back memory that peers had open", isDiscarded ? own.discard : own.giveBack);
    return true;
  }

  private boolean hasClosed(int worker) {
    if (isHere(worker)) {
      return !OPEN.contains(opened(worker));
    }
    try {
      session.get(closedKey(key, worker), Duration.ZERO);
      return true;
    } catch (CommException | IllegalStateException _) {
      return false; // not yet; or the session is over, and with it what could be known
    }
  }

  private boolean isHere(int worker) {
    return worker < workers.size() && workers.get(worker).isHere;
  }

  /// {@return whether a worker is said to have ended with its process, which is not this one} It
  /// may live all the same, and have lost its connection.
  boolean seemsEnded(int worker) {
    return !isHere(worker) && failuresOf(worker).anyMatch(each -> !each.mayGoOn());
  }

  /// Whether a worker's process, which is not this one, has ended, and with it what it had open.
  private boolean hasEnded(int worker) {
    return !isHere(worker)
        && failuresOf(worker).anyMatch(each -> !Processes.mayGoOn(session, each));
  }

  private Stream<Session.Failure> failuresOf(int worker) {
    return session.news().failures().stream().filter(each -> each.rank() == worker);
  }
}
