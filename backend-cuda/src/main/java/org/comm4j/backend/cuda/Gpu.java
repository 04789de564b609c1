package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.comm4j.api.BackendException;

/// A device as the ranks of this process share it: kernels that are compiled once, and memory that
/// is used again. Thread-safe.
final class Gpu implements AutoCloseable {
  private static final Map<Key, Gpu> OPEN = new HashMap<>(); // its lock guards all users

  private static final Map<String, Set<KernelName>> KERNELS = KernelName.all();

  private record Key(UUID process, int ordinal) {}

  private final Key key;
  private final CudaDevice device;
  private final Map<String, CudaDevice.Module> modules = new ConcurrentHashMap<>();
  private final BlockPool<Long> memory;
  private final BlockPool<CudaDevice.HostMemory> hostMemory;
  private int users;
  private int ranks; // among the users

  private Gpu(Key key, CudaDevice device) {
    this.key = key;
    this.device = device;
    this.memory = new BlockPool<>(device::allocate, device::free);
    this.hostMemory =
        new BlockPool<>(bytes -> device.allocateHost(Math.toIntExact(bytes)), device::freeHost);
  }

  /// Opens a device, or gives the one that is open.
  ///
  /// @param ordinal its number, as the driver counts
  /// @param process the same for all who may share it
  /// @return each caller closes it once
  static Gpu open(CudaDriver driver, int ordinal, UUID process) {
    var key = new Key(process, ordinal);
    synchronized (OPEN) {
      Gpu gpu = OPEN.get(key);
      if (gpu == null) {
        gpu = new Gpu(key, driver.open(ordinal));
        OPEN.put(key, gpu);
      }
      gpu.users++;
      return gpu;
    }
  }

  CudaDevice device() {
    return device;
  }

  /// {@return memory of the device, by its address}
  BlockPool<Long> memory() {
    return memory;
  }

  /// {@return memory of the host that stays in place, in blocks of less than 2 GiB}
  BlockPool<CudaDevice.HostMemory> hostMemory() {
    return hostMemory;
  }

  /// {@return a kernel} Its module is compiled when one of its kernels is first asked for.
  CudaDevice.Kernel kernel(KernelName name) {
    CudaDevice.Module known = modules.get(name.module());
    return (known != null ? known : compile(name.module())).kernel(name);
  }

  /// Compiles what is not yet. Where ranks share the device, whose kernels wait for each other,
  /// that must be done before there are any, see [CudaDevice#load].
  void compileAll() {
    KERNELS.keySet().forEach(this::compile);
  }

  private synchronized CudaDevice.Module compile(String name) {
    return modules.computeIfAbsent(
        name, file -> device.load(ptx(file), KERNELS.getOrDefault(file, Set.of())));
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

  /// One of its users is a rank, whose kernels may run.
  void addRank() {
    synchronized (OPEN) {
      ranks++;
    }
  }

  /// A rank is gone. With the last one goes what nobody uses, though windows that others may still
  /// have open keep the device.
  void removeRank() {
    synchronized (OPEN) {
      if (--ranks > 0) {
        return;
      }
    }
    try {
      memory.freeUnused();
      hostMemory.freeUnused();
    } catch (BackendException _) {
      // the device has failed, which calls have said
    }
  }

  /// The last user's close gives everything back.
  @Override
  public void close() {
    synchronized (OPEN) {
      if (--users > 0) {
        return;
      }
      OPEN.remove(key);
    }
    modules.values().forEach(device::unload);
    memory.freeUnused();
    hostMemory.freeUnused();
    device.close();
  }
}
