package org.comm4j.backend.cuda;

import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// The windows of a group of workers, each within the reach of all ([CudaIpcBlocks]): one per rank,
/// on its device.
///
/// TVM's class of this name has the same parts: workers, a worker's id, pointers to the workers'
/// data and to the signals of the two barriers, and an epoch. All signals are in the windows here,
/// so that one handle is exchanged and nothing is freed while another part is in use.
///
/// A window goes back to the device's pool: freeing would wait for kernels of other groups. Where a
/// process that reached it was killed, the pool gives it to nobody until it is freed with the rest.
///
/// Used by one thread at a time, besides [#leave] and [#hasLeft], which another one may use.
final class CudaIpcMemory implements AutoCloseable {
  private static final long LEAVE_NS = TimeUnit.MILLISECONDS.toNanos(300);

  private final Session session;
  private final Gpu gpu;
  private final Window layout;
  private final CudaIpcBlocks blocks;
  private long epoch;
  private CudaDevice.@Nullable Stream leaving; // what leave() has not seen the end of

  private CudaIpcMemory(Session session, Gpu gpu, Window layout, CudaIpcBlocks blocks) {
    this.session = session;
    this.gpu = gpu;
    this.layout = layout;
    this.blocks = blocks;
  }

  /// Makes this worker's window and reaches those of the others. All workers of the session call it
  /// at once; it succeeds on all of them or on none.
  ///
  /// @param session of the workers alone; still open when this is closed
  /// @param key the same on all workers, and used once, as for [CudaIpcBlocks#open]
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
    CudaIpcBlocks.sweep();
    Gpu gpu = null;
    CudaIpcBlocks.Block own;
    try {
      gpu = Gpu.open(driver, ordinal, process, timeout);
      own = CudaIpcBlocks.Block.cleared(gpu, layout.bytes()); // before anybody writes a signal
    } catch (BackendException e) {
      if (gpu != null) {
        gpu.close();
      }
      throw CudaIpcBlocks.withdraw(session, key, timeout, String.valueOf(e.getMessage()));
    }
    var blocks = CudaIpcBlocks.open(session, key, driver, process, gpu, own, timeout);
    return new CudaIpcMemory(session, gpu, layout, blocks);
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
    return blocks.address(worker) + layout.scratch();
  }

  /// {@return the address here of the signals by which the others tell a worker that they have
  /// come}
  long barrierIn(int worker) {
    return blocks.address(worker);
  }

  /// {@return the address here of those by which they tell it that they have read its data}
  long barrierOut(int worker) {
    return blocks.address(worker) + Window.PASSES;
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
      parameters.peer(worker, blocks.address(worker), blocks.base(worker));
    }
    return parameters;
  }

  /// {@return this worker's device; closed with this}
  CudaDevice device() {
    return gpu.device();
  }

  /// Gives up calls whose kernels have not ended: those that have not begun will not come, and the
  /// others' leave if they have read this worker's memory, which may change afterwards. So does a
  /// kernel that leaves on its own. Whose process seems to have ended is not told: its device may
  /// have failed with it, and ours with a copy to there. Waits for a moment only, as the device may
  /// be stuck: until [#hasLeft] this must not be closed.
  ///
  /// @param control the address of this worker's [Control], in which it has aborted
  void leave(long control) {
    CudaIpcBlocks.tried(
        "leaving calls",
        () -> {
          CudaDevice.Stream stream = gpu.takeStream();
          leaving = stream;
          tell(control, barrierIn(workerId()) + Window.BROKEN, stream);
          for (int worker = 0; worker < workers(); worker++) {
            if (worker != workerId() && !blocks.seemsEnded(worker)) {
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
    CudaDevice.Stream stream = leaving;
    if (stream == null) {
      return true;
    }
    try {
      if (!gpu.device().isDone(stream)) {
        return false;
      }
    } catch (BackendException e) {
      if (!CudaDriver.isOver(e)) {
        return false;
      }
    }
    leaving = null;
    gpu.giveBack(stream);
    return true;
  }

  /// The first word there is not 0 any more, which is all that matters.
  private void tell(long control, long to, CudaDevice.Stream stream) {
    gpu.device().copy(control, to, Long.BYTES, stream);
  }

  /// Closes what this worker has opened, as [CudaIpcBlocks#close] does.
  @Override
  public void close() {
    blocks.close();
  }
}
