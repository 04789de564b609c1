package org.comm4j.backend.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntConsumer;

/// Ranks whose kernels run on the host, in memory of the host. Each has a window, control words,
/// and parameters that know the others.
final class KernelGroup implements AutoCloseable {
  static final long LINE_BYTES = 4096;
  static final long SCRATCH_BYTES = 1 << 16;

  /// What another rank adds to the addresses that a rank publishes: as if across processes.
  private static final long BASE = 0x1000;

  private final Arena arena = Arena.ofShared();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final HostKernels kernels;
  private final Window window;
  private final List<Control> controls = new ArrayList<>();
  private final List<Parameters> parameters = new ArrayList<>();

  KernelGroup(HostKernels kernels, int ranks, long timeoutNs) {
    this.kernels = kernels;
    this.window = new Window(ranks, LINE_BYTES, SCRATCH_BYTES);
    List<MemorySegment> windows = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      windows.add(arena.allocate(window.bytes(), 16));
      controls.add(new Control(arena.allocate(Control.BYTES, 8)));
    }
    for (int rank = 0; rank < ranks; rank++) {
      var mine = new Parameters(rank, window, controls.get(rank).segment().address(), timeoutNs);
      for (int peer = 0; peer < ranks; peer++) {
        mine.peer(peer, windows.get(peer).address(), BASE);
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
  /// @param shift how far from an address that is a multiple of 16
  MemorySegment memory(long bytes, long shift) {
    return arena.allocate(bytes + shift, 16).asSlice(shift);
  }

  /// Runs a kernel on this thread.
  void launch(int rank, KernelName kernel, int blocks, int threadsOfBlock) {
    kernels.launch(kernel, blocks, threadsOfBlock, parameters.get(rank).segment());
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
    arena.close();
  }
}
