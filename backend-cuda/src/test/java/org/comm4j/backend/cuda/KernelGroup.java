package org.comm4j.backend.cuda;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import java.util.function.IntConsumer;

/// Ranks that share a device. Each has a window, a stream, control words, and parameters that know
/// the others; what they reduce is memory of the host that the device reaches.
final class KernelGroup implements AutoCloseable {
  static final long LINE_BYTES = 4096;
  static final long SCRATCH_BYTES = 1 << 16;

  /// What another rank adds to the addresses that a rank publishes: as if across processes.
  private static final long BASE = 0x1000;

  private static final int CHUNK_BYTES = 1 << 20;
  private static final int ALIGNMENT = 256;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final CudaDevice device;
  private final Function<KernelName, CudaDevice.Kernel> kernels;
  private final Window window;
  private final CudaDevice.HostMemory controlMemory;
  private final List<CudaDevice.HostMemory> chunks = new ArrayList<>();
  private long room; // in the last chunk
  private final List<Long> windows = new ArrayList<>();
  private final List<CudaDevice.Stream> streams = new ArrayList<>();
  private final List<Control> controls = new ArrayList<>();
  private final List<Parameters> parameters = new ArrayList<>();

  KernelGroup(int ranks, long timeoutNs) {
    this(TestDevice.get().device(), TestDevice.get()::function, ranks, timeoutNs);
  }

  /// @param kernels of the device, which have been loaded
  KernelGroup(
      CudaDevice device,
      Function<KernelName, CudaDevice.Kernel> kernels,
      int ranks,
      long timeoutNs) {
    this.device = device;
    this.kernels = kernels;
    this.window = new Window(ranks, LINE_BYTES, SCRATCH_BYTES);
    this.controlMemory = device.allocateHost(Control.BYTES * ranks);
    for (int rank = 0; rank < ranks; rank++) {
      windows.add(device.allocate(window.bytes()));
      streams.add(device.createStream());
      device.clear(windows.get(rank), window.bytes(), streams.get(rank));
      device.await(streams.get(rank));
      controls.add(
          new Control(controlMemory.segment().asSlice((long) rank * Control.BYTES, Control.BYTES)));
    }
    for (int rank = 0; rank < ranks; rank++) {
      var mine = new Parameters(rank, window, controls.get(rank).segment().address(), timeoutNs);
      for (int peer = 0; peer < ranks; peer++) {
        mine.peer(peer, windows.get(peer), BASE);
      }
      parameters.add(mine);
    }
  }

  Window window() {
    return window;
  }

  Control control(int rank) {
    return controls.get(rank);
  }

  Parameters parameters(int rank) {
    return parameters.get(rank);
  }

  /// Tells a rank's kernel where its data is.
  void data(int rank, MemorySegment input, MemorySegment output, boolean isLent) {
    parameters.get(rank).data(input.address() - BASE, output.address(), isLent);
  }

  /// Memory for data, zeroed.
  ///
  /// @param bytes less than 1 MiB
  /// @param shift how far from an address that is a multiple of 16
  synchronized MemorySegment memory(long bytes, long shift) {
    long needed = Math.ceilDiv(Math.max(1, bytes + shift), ALIGNMENT) * ALIGNMENT;
    if (room < needed) {
      chunks.add(device.allocateHost(CHUNK_BYTES));
      room = CHUNK_BYTES;
    }
    long from = CHUNK_BYTES - room;
    room -= needed;
    return chunks.getLast().segment().asSlice(from + shift, bytes);
  }

  /// Runs a kernel to its end.
  void launch(int rank, KernelName kernel, int blocks, int threadsOfBlock) {
    start(rank, kernel, blocks, threadsOfBlock);
    await(rank);
  }

  /// Puts a kernel into a rank's stream.
  void start(int rank, KernelName kernel, int blocks, int threadsOfBlock) {
    device.launch(
        kernels.apply(kernel), blocks, threadsOfBlock, streams.get(rank), parameters.get(rank));
  }

  /// Returns when all is done that is in a rank's stream.
  void await(int rank) {
    device.await(streams.get(rank));
  }

  CudaDevice.Stream stream(int rank) {
    return streams.get(rank);
  }

  /// Does something on each of the first ranks at once, and waits for all.
  void onRanks(int ranks, IntConsumer action) {
    List<Future<?>> running = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      int mine = rank;
      running.add(threads.submit(() -> action.accept(mine)));
    }
    for (Future<?> each : running) {
      try {
        each.get();
      } catch (InterruptedException | ExecutionException e) {
        throw new AssertionError(e);
      }
    }
  }

  @Override
  public void close() {
    threads.close();
    streams.forEach(device::destroy);
    windows.forEach(device::free);
    device.freeHost(controlMemory);
    chunks.forEach(device::freeHost);
  }
}
