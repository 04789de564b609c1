package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.InterruptedCallException;
import org.jspecify.annotations.Nullable;

/// A device as the ranks of this process share it: kernels that are compiled once, and memory that
/// is used again. Thread-safe.
///
/// The driver waits for all kernels of the process when it frees something or closes what a peer
/// has lent, also for those of the program and of devices that reach this one. So a thread does
/// that, and a close waits for it for a moment only; and while ranks have calls in flight it is not
/// done ([#whileIdle]).
final class Gpu implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final long FREE_NS = 300_000_000; // how long a close waits for what it frees
  private static final long LONG_NS = 500_000_000; // with all in the cache it takes 100 ms

  private static final ReentrantLock LOCK = new ReentrantLock(); // guards users, ranks, freeing
  private static final Condition FREED = LOCK.newCondition();
  private static final Map<Key, Gpu> OPEN = new HashMap<>(); // guarded by LOCK

  private record Key(UUID process, int ordinal) {}

  private final Key key;
  private final CudaDevice device;
  private final Map<String, CudaDevice.Module> modules = new ConcurrentHashMap<>();
  private final ConcurrentNavigableMap<Long, Long> blocks =
      new ConcurrentSkipListMap<>(); // of memory, with their sizes
  private final BlockPool<Long> memory;
  private final BlockPool<CudaDevice.HostMemory> hostMemory;
  private final Deque<CudaDevice.Event> idleEvents = new ConcurrentLinkedDeque<>();
  private final StreamPool<CudaDevice.Stream> streams;
  private final List<CudaRank> ranks = new CopyOnWriteArrayList<>(); // among the users
  private final ReentrantReadWriteLock beginning; // of calls, together; the process's devices' own
  private boolean hasAll; // guarded by this: kernels
  private volatile boolean keepsOut; // whose calls begin; set under their lock
  private int users;
  private int freeing; // threads: the driver waits for all kernels, and their launches for it

  private Gpu(Key key, CudaDevice device, ReentrantReadWriteLock beginning) {
    this.key = key;
    this.device = device;
    this.beginning = beginning;
    this.memory = new BlockPool<>(this::allocate, this::free, this::whileIdle);
    this.hostMemory =
        new BlockPool<>(
            bytes -> device.allocateHost(Math.toIntExact(bytes)),
            device::freeHost,
            this::whileIdle);
    this.streams = new StreamPool<>(device::createStream, Libcuda.queues());
  }

  /// Opens a device, or gives the one that is open.
  ///
  /// @param ordinal its number, as the driver counts
  /// @param process the same for all who may share it
  /// @param patience how long to wait for what the driver frees of it
  /// @return each caller closes it once
  /// @throws BackendUnavailableException if that is not enough
  static Gpu open(CudaDriver driver, int ordinal, UUID process, Duration patience) {
    var key = new Key(process, ordinal);
    long endNs = System.nanoTime() + patience.toNanos();
    LOCK.lock();
    try {
      Gpu gpu = OPEN.get(key);
      while (gpu != null && gpu.freeing > 0) {
        gpu.awaitFreed(endNs, patience);
        gpu = OPEN.get(key);
      }
      if (gpu == null) {
        ReentrantReadWriteLock beginning =
            ofProcess(process).stream()
                .map(each -> each.beginning)
                .findAny()
                .orElseGet(ReentrantReadWriteLock::new);
        gpu = new Gpu(key, driver.open(ordinal), beginning);
        OPEN.put(key, gpu);
      }
      gpu.users++;
      return gpu;
    } finally {
      LOCK.unlock();
    }
  }

  /// Opens a rank's device; its kernels may run until [#removeRank], which is before the close.
  static Gpu open(CudaDriver driver, int ordinal, UUID process, Duration patience, CudaRank rank) {
    LOCK.lock();
    try {
      Gpu gpu = open(driver, ordinal, process, patience);
      gpu.ranks.add(rank);
      return gpu;
    } finally {
      LOCK.unlock();
    }
  }

  /// Waits for what is freed to end. Under the lock, which others have meanwhile.
  private void awaitFreed(long endNs, Duration patience) {
    try {
      while (freeing > 0) {
        long leftNs = endNs - System.nanoTime();
        if (leftNs <= 0) {
          throw new BackendUnavailableException(
              CudaProvider.NAME,
              "a kernel of the program's keeps device %s: for %.1f s the driver has not freed what closed communicators had there"
                  .formatted(device, patience.toNanos() / 1e9),
              "let that kernel end first, or raise COMM_JOIN_TIMEOUT if it may take longer");
        }
        var _ = FREED.awaitNanos(leftNs);
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw interrupted();
    }
  }

  /// Keeps it open until one more [#close].
  ///
  /// @return false if it is closed, or all goes back that it has
  boolean keep() {
    LOCK.lock();
    try {
      boolean isOpen = users > 0;
      users += isOpen ? 1 : 0;
      return isOpen;
    } finally {
      LOCK.unlock();
    }
  }

  private static List<Gpu> ofProcess(UUID process) {
    LOCK.lock();
    try {
      return OPEN.values().stream().filter(gpu -> gpu.key.process.equals(process)).toList();
    } finally {
      LOCK.unlock();
    }
  }

  /// Lets a call begin: from then on [CudaRank#hasCalls]. Waits while [#whileIdle] does something,
  /// as the driver would let its kernels wait.
  ///
  /// @return false if it has not begun in so many nanoseconds
  boolean begin(Runnable call, long nanos) throws InterruptedException {
    if (!beginning.readLock().tryLock(nanos, TimeUnit.NANOSECONDS)) {
      return false;
    }
    try {
      call.run();
      return true;
    } finally {
      beginning.readLock().unlock();
    }
  }

  /// Does what the driver lets wait for kernels, and later launches for that, when none of this
  /// process's ranks has a call in flight, and lets none begin meanwhile: its kernels might wait
  /// for what this thread does next, or for a launch.
  ///
  /// @return false if there are such calls; then nothing was done
  boolean whileIdle(Runnable freeing) {
    // asked before: who is called back then may wait for whoever begins a call
    return areIdle() && whileNoneBegins(freeing);
  }

  /// {@return whether no kernel of the process's runs, as far as ranks know} Asks their calls, and
  /// so may call back who waits for one.
  private boolean areIdle() {
    return ofProcess(key.process).stream().allMatch(Gpu::isIdle);
  }

  private boolean isIdle() {
    return ranks.stream().allMatch(CudaRank::isIdle);
  }

  private boolean whileNoneBegins(Runnable freeing) {
    if (!keepOut()) {
      return false;
    }
    try {
      boolean isBusy =
          ofProcess(key.process).stream()
              .anyMatch(gpu -> gpu.ranks.stream().anyMatch(CudaRank::hasCalls));
      keepsOut = !isBusy;
      if (!isBusy) {
        freeing.run();
      }
      return !isBusy;
    } finally {
      keepsOut = false;
      beginning.writeLock().unlock();
    }
  }

  /// Keeps calls from beginning, unless somebody else frees for long.
  private boolean keepOut() {
    long endNs = System.nanoTime() + FREE_NS;
    boolean isInterrupted = false; // it goes on all the same
    try {
      while (true) {
        try {
          return beginning.writeLock().tryLock(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException _) {
          isInterrupted = true;
        }
      }
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// {@return the device of this process for whose sake no call begins; this one if there is none}
  CudaDevice keepingOut() {
    return ofProcess(key.process).stream()
        .filter(gpu -> gpu.keepsOut)
        .findAny()
        .orElse(this)
        .device;
  }

  CudaDevice device() {
    return device;
  }

  /// {@return memory of the device, by its address}
  BlockPool<Long> memory() {
    return memory;
  }

  private long allocate(long bytes) {
    long address = device.allocate(bytes);
    blocks.put(address, bytes);
    return address;
  }

  private void free(long address) {
    blocks.remove(address);
    device.free(address);
  }

  /// {@return the block of [#memory], with its size, that has an address; null if none has}
  private Map.@Nullable Entry<Long, Long> block(long address) {
    Map.Entry<Long, Long> block = blocks.floorEntry(address);
    return block == null || address >= block.getKey() + block.getValue() ? null : block;
  }

  /// {@return whether an address is in [#memory]}
  boolean has(long address) {
    return block(address) != null;
  }

  /// {@return where an address is, as [CudaDevice#find] says it; what of [#memory] nobody uses is
  /// as good as freed} Of that the driver need not be asked.
  Optional<CudaDevice.Place> find(long address) {
    Map.Entry<Long, Long> block = block(address);
    if (block == null) {
      return device.find(address);
    }
    return memory.isTaken(block.getKey())
        ? Optional.of(
            new CudaDevice.Place(
                Optional.of(device.ordinal()), block.getKey(), block.getValue(), false))
        : Optional.empty();
  }

  /// {@return memory of the host that stays in place, in blocks of less than 2 GiB}
  BlockPool<CudaDevice.HostMemory> hostMemory() {
    return hostMemory;
  }

  /// Takes a stream, in a queue of the device that fewest others are in, as far as is known here.
  CudaDevice.Stream takeStream() {
    return streams.take();
  }

  /// Gives a stream back; all that was in it has ended, or the device has failed.
  void giveBack(CudaDevice.Stream stream) {
    streams.giveBack(stream);
  }

  /// Destroys a stream that was taken; what is in it goes on to its end.
  void destroy(CudaDevice.Stream stream) {
    streams.remove(stream);
    destroyed("a stream", () -> device.destroy(stream));
  }

  /// {@return how many streams have been in use at once}
  int streams() {
    return streams.made();
  }

  /// Takes an event, which is to be recorded.
  CudaDevice.Event takeEvent() {
    CudaDevice.Event idle = idleEvents.poll();
    return idle == null ? device.createEvent() : idle;
  }

  /// Gives an event back, which was reached; no stream waits for it.
  void giveBack(CudaDevice.Event event) {
    idleEvents.push(event);
  }

  /// On a device that has failed the driver refuses each, which nobody need hear of.
  private static void destroyed(String what, Runnable destroying) {
    CudaIpcBlocks.tried(
        "destroying " + what,
        () -> {
          try {
            destroying.run();
          } catch (BackendException e) {
            if (!CudaDriver.isOver(e)) {
              throw e;
            }
          }
        });
  }

  private void destroyIdle() {
    idleEvents.forEach(each -> destroyed("an event", () -> device.destroy(each)));
    streams.drain().forEach(each -> destroyed("a stream", () -> device.destroy(each)));
  }

  /// {@return a kernel; all are there after [#compileAll], and those of an expression after
  /// [#load]}
  CudaDevice.Kernel kernel(KernelName name) {
    return Objects.requireNonNull(modules.get(name.module()), name::toString).kernel(name);
  }

  /// Compiles all kernels, unless that is done. It must be before there are any that wait for
  /// others, see [CudaDevice#load].
  synchronized void compileAll() {
    if (hasAll) {
      return;
    }
    long start = System.nanoTime();
    boolean hasSaid = false;
    for (Map.Entry<String, Set<KernelName>> each : KernelName.all().entrySet()) {
      modules.computeIfAbsent(each.getKey(), name -> device.load(ptx(name), each.getValue()));
      if (!hasSaid && System.nanoTime() - start > LONG_NS) {
        hasSaid = true;
        LOG.log(
            System.Logger.Level.INFO,
            "the driver compiles the kernels for device {0}, once: it keeps them in its cache (~/.nv/ComputeCache, or CUDA_CACHE_PATH)",
            device);
      }
    }
    hasAll = true;
  }

  /// Loads the kernels of an expression, unless that is done: when no calls are in flight in the
  /// process, whose kernels may wait for others, see [CudaDevice#load].
  ///
  /// @param ptx of its module
  /// @param patience how long to wait for that
  /// @throws BackendUnavailableException if that is not enough
  void load(Expression expression, byte[] ptx, Duration patience) {
    long beginNs = System.nanoTime();
    while (!modules.containsKey(expression.toString())
        && !whileIdle(() -> loadNow(expression, ptx))) {
      if (Thread.currentThread().isInterrupted()) {
        throw interrupted();
      }
      if (System.nanoTime() - beginNs >= patience.toNanos()) {
        throw new BackendUnavailableException(
            CudaProvider.NAME,
            "calls in flight keep device %s: for %.1f s the driver could not load the kernels of '%s'"
                .formatted(device, patience.toNanos() / 1e9, expression),
            "open ranks with such expressions before calls are started in this process, or raise COMM_JOIN_TIMEOUT if those may take longer");
      }
      LockSupport.parkNanos(this, DeviceCall.LONG_NS);
    }
  }

  private void loadNow(Expression expression, byte[] ptx) {
    modules.computeIfAbsent(expression.toString(), _ -> device.load(ptx, expression.kernels()));
  }

  private InterruptedCallException interrupted() {
    return new InterruptedCallException("opening device %s was interrupted".formatted(device));
  }

  private static byte[] ptx(String module) {
    try (InputStream in = Gpu.class.getResourceAsStream("ptx/" + module + ".ptx")) {
      if (in == null) {
        throw new AssertionError("no PTX of " + module);
      }
      byte[] text = in.readAllBytes();
      return Arrays.copyOf(text, text.length + 1); // a zero at its end
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// A rank is gone, but still a user. With the last one goes what nobody uses, though windows that
  /// others may still have open keep the device.
  void removeRank(CudaRank rank) {
    LOCK.lock();
    try {
      ranks.remove(rank);
      if (!ranks.isEmpty()) {
        return;
      }
      users++; // who frees
    } finally {
      LOCK.unlock();
    }
    aside(() -> {
      try {
        freeWhenIdle(this::freeForOthers, () -> ranks.isEmpty() && users > 1);
      } finally {
        close();
      }
    });
  }

  /// Frees as soon as no calls are in flight in the process: those of other devices too would wait
  /// for it, or be at what is freed. Who opens the device waits only while that is tried, and not
  /// while calls are asked: who is called back then may open it.
  ///
  /// @param isWanted asked before it is tried, and before it is tried again, under the lock; once
  ///   it is not there is nothing more to do
  private void freeWhenIdle(Runnable freed, BooleanSupplier isWanted) {
    do {
      if (areIdle()) {
        if (!beginsFreeing(isWanted)) {
          return;
        }
        try {
          if (whileNoneBegins(freed)) {
            return;
          }
        } finally {
          endFreeing();
        }
      }
      LockSupport.parkNanos(this, DeviceCall.LONG_NS);
    } while (isStill(isWanted));
  }

  private static boolean isStill(BooleanSupplier isWanted) {
    LOCK.lock();
    try {
      return isWanted.getAsBoolean();
    } finally {
      LOCK.unlock();
    }
  }

  private boolean beginsFreeing(BooleanSupplier isWanted) {
    LOCK.lock();
    try {
      boolean begins = isWanted.getAsBoolean();
      freeing += begins ? 1 : 0;
      return begins;
    } finally {
      LOCK.unlock();
    }
  }

  private void freeForOthers() {
    try {
      freeUnused();
    } catch (BackendException _) {
      // the device has failed, which calls have said
    }
  }

  /// Does what the driver may let wait for kernels, also the program's own, which may run for long:
  /// then it goes on when the caller does.
  void aside(Runnable freeing) {
    Thread thread =
        Thread.ofPlatform().daemon().name("comm4j-cuda freeing " + device).start(freeing);
    boolean isInterrupted = Thread.interrupted(); // it closes all the same
    try {
      thread.join(Duration.ofNanos(FREE_NS));
    } catch (InterruptedException _) {
      isInterrupted = true;
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void freeUnused() {
    try {
      memory.freeUnused();
    } finally {
      hostMemory.freeUnused();
    }
  }

  private void endFreeing() {
    LOCK.lock();
    try {
      freeing--;
      FREED.signalAll();
    } finally {
      LOCK.unlock();
    }
  }

  /// The last user's close gives everything back; also on a device that has failed, where the
  /// driver refuses most of it. While that goes on whoever opens the device waits for it, though
  /// not for ever; who opens it before has it as it is.
  @Override
  public void close() {
    if (isStill(this::isLast)) {
      aside(() -> freeWhenIdle(this::giveBackAll, this::isLast));
    }
  }

  /// {@return whether nobody else uses it; else this user is gone} Under the lock.
  private boolean isLast() {
    boolean isLast = users == 1;
    users -= isLast ? 0 : 1;
    return isLast;
  }

  private void giveBackAll() {
    if (isKept()) {
      return;
    }
    try (CudaDevice _ = device) { // closed whatever happens
      for (CudaDevice.Module module : modules.values()) {
        CudaIpcBlocks.tried("unloading kernels", () -> device.unload(module));
      }
      destroyIdle();
      CudaIpcBlocks.tried("freeing memory", this::freeUnused);
    } finally {
      forget();
    }
  }

  /// The user who gives all back is gone. {@return whether there is another one, who has kept it
  /// meanwhile; if not nobody does any more}
  private boolean isKept() {
    LOCK.lock();
    try {
      users--;
      return users > 0;
    } finally {
      LOCK.unlock();
    }
  }

  private void forget() {
    LOCK.lock();
    try {
      OPEN.remove(key);
    } finally {
      LOCK.unlock();
    }
  }
}
