package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.comm4j.api.BackendException;

/// A device as the ranks of this process share it: kernels that are compiled once, and memory that
/// is used again. Thread-safe.
final class Gpu implements AutoCloseable {
  private static final Map<Key, Gpu> OPEN = new HashMap<>(); // its lock guards all users

  private record Key(UUID process, int ordinal) {}

  private final Key key;
  private final CudaDevice device;
  private final Map<String, CUmodule> modules = new HashMap<>();
  private final Map<KernelName, CUfunction> kernels = new ConcurrentHashMap<>();
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

  /// {@return a kernel, compiled when it is first asked for}
  CUfunction kernel(KernelName name) {
    CUfunction known = kernels.get(name);
    return known != null ? known : compile(name);
  }

  private synchronized CUfunction compile(KernelName name) {
    CUfunction known = kernels.get(name);
    if (known != null) {
      return known;
    }
    CUmodule module = modules.computeIfAbsent(name.module(), file -> device.load(ptx(file)));
    CUfunction function = device.function(module, name.function());
    kernels.put(name, function);
    return function;
  }

  private static String ptx(String module) {
    try (InputStream in = Gpu.class.getResourceAsStream("ptx/" + module + ".ptx")) {
      if (in == null) {
        throw new AssertionError("no PTX of " + module);
      }
      return new String(in.readAllBytes(), StandardCharsets.US_ASCII);
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
