package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.CommException;
import org.comm4j.api.DeviceData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.Received;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// A collective of data in devices' memory that was started: kernels in the communicator's stream
/// with an event behind them, or work of its thread. Thread-safe.
final class DeviceCall implements InFlight, Pending {
  private static final long SPIN_NS =
      TimeUnit.MICROSECONDS.toNanos(200); // small calls take up to 100
  static final long SHORT_NS = TimeUnit.MICROSECONDS.toNanos(50);
  static final long LONG_NS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LONG_AFTER_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private final DeviceCalls calls;
  private final CudaCommunicator communicator;
  private final String label;
  private final String text;
  private final List<DeviceData> data;
  private final long startNs = System.nanoTime();
  private final List<Runnable> actions = new ArrayList<>();
  private volatile CudaDevice.@Nullable Event
      event; // behind its kernels; null again when it was reached
  private volatile long number;
  private volatile boolean launched;
  private volatile boolean isOnHost; // the thread may be at its memory
  private long brokenNs;
  private boolean isBroken;
  private long endedNs; // when its kernels were seen to have ended, perhaps before it has
  private boolean haveKernelsEnded;
  private volatile boolean watched;
  private volatile boolean done;
  private volatile @Nullable RuntimeException failure;

  /// @param text what this rank calls, for messages
  /// @param data what it reads and writes
  DeviceCall(DeviceCalls calls, String label, String text, List<DeviceData> data) {
    this.calls = calls;
    this.communicator = calls.communicator();
    this.label = label;
    this.text = text;
    this.data = data;
  }

  String label() {
    return label;
  }

  @Override
  public String text() {
    return text;
  }

  @Override
  public boolean uses(long address, long bytes) {
    return data.stream().anyMatch(each -> overlap(each, address, bytes));
  }

  /// Its kernels are in the stream, and behind them this event, which is now the call's.
  ///
  /// @param last the number of the last of its kernels
  synchronized void launched(CudaDevice.Event behind, long last) {
    number = last;
    event = behind;
    launched = true;
  }

  /// The communicator's thread begins to copy from and to its memory. Who closes ends the call
  /// first, and then looks whether it has begun.
  ///
  /// @return false if it has been ended, and its memory may be another's
  boolean beginsOnHost() {
    isOnHost = true;
    return !done;
  }

  /// The thread is done with that.
  void endsOnHost() {
    isOnHost = false;
  }

  /// {@return whether its kernels are in the stream, or it has ended: so what comes behind it may
  /// be put there} Looks at nothing.
  boolean isInStream() {
    return launched || done;
  }

  /// Not all of its kernels are in the stream. At once, as they end well that are: who saw that and
  /// not the reason would take the call for done.
  ///
  /// @param behind as in [#launched]; null if there are no kernels
  void launchedInPart(CudaDevice.@Nullable Event behind, long last, RuntimeException reason) {
    List<Runnable> called;
    synchronized (this) {
      number = last;
      event = behind;
      called = ended(reason);
    }
    called.forEach(Runnable::run);
  }

  /// {@return the number of the last of its kernels; 0 if there are none}
  long number() {
    return number;
  }

  /// {@return how long ago it was started}
  long elapsedNs() {
    return System.nanoTime() - startNs;
  }

  /// It has ended for whoever waits for it, though perhaps not its kernels.
  ///
  /// @param reason why it failed; null if it did not
  void end(@Nullable RuntimeException reason) {
    ended(reason).forEach(Runnable::run);
  }

  /// {@return whom to call back}
  private synchronized List<Runnable> ended(@Nullable RuntimeException reason) {
    if (done) {
      return List.of();
    }
    failure = reason;
    done = true;
    List<Runnable> called = List.copyOf(actions);
    actions.clear();
    return called;
  }

  /// Nobody asks for it any more; it is in no list where somebody might.
  synchronized void abandon() {
    CudaDevice.Event behind = event;
    event = null;
    if (behind != null) {
      calls.discard(behind);
    }
  }

  static boolean overlap(DeviceData data, long address, long bytes) {
    return data.address() < address + bytes && address < data.address() + data.bytes();
  }

  /// Also its kernels, and what the thread copies.
  @Override
  public boolean hasEnded() {
    return done && event == null && !isOnHost;
  }

  /// {@return whether somebody wants to be called back}
  boolean isWatched() {
    return watched;
  }

  CudaCommunicator communicator() {
    return communicator;
  }

  @Override
  public boolean isDone() {
    if (!hasEnded()) {
      calls.look();
      if (event != null && turnNs() > communicator.timeoutNs()) {
        calls.lookBefore(this); // nobody may have asked for those
      }
      look();
      if (!done) {
        calls.lookAtStall(this);
      }
    }
    return done;
  }

  /// {@return for how long, at most, its kernels may have been those that run}
  private long turnNs() {
    long now = System.nanoTime();
    return Math.min(now - startNs, now - calls.reachedNs());
  }

  /// Sees whether its kernels have ended, or should have long ago. Where a peer may still say why
  /// they did, it has not ended.
  void look() {
    RuntimeException reason;
    boolean isGivenUp = false;
    synchronized (this) {
      try {
        lookAtEvent();
        if (done || (event == null && !haveKernelsEnded)) {
          return;
        }
        Reasons.Ending ending =
            haveKernelsEnded ? calls.endingOf(this, System.nanoTime() - endedNs) : stuck();
        if (ending == null) {
          return;
        }
        reason = ending.reason();
        isGivenUp = !haveKernelsEnded;
      } catch (BackendException e) {
        if (CudaDriver.isOver(e)) {
          event = null;
        }
        if (done) {
          return;
        }
        reason = communicator.breakWith(e);
      } catch (CommException e) {
        reason = communicator.breakWith(e);
      } catch (RuntimeException e) { // so have we, and the call must end all the same
        reason =
            communicator.breakWith(
                new AbortedException(communicator.rank(), text + " failed: " + e, e));
      }
    }
    if (isGivenUp) {
      calls.leave();
    }
    end(reason);
  }

  private void lookAtEvent() {
    CudaDevice.Event behind = event;
    if (behind != null && calls.isReached(behind)) {
      haveKernelsEnded = true;
      endedNs = System.nanoTime();
      event = null;
      calls.forget(behind);
    }
  }

  /// Kernels leave at their deadline, and soon after the communicator broke.
  private Reasons.@Nullable Ending stuck() {
    long now = System.nanoTime();
    CommException broken = communicator.failure();
    if (broken != null && !isBroken) {
      isBroken = true;
      brokenNs = now;
    }
    if (isBroken && now - brokenNs > communicator.graceNs()) {
      return new Reasons.Ending(broken);
    }
    long beyondNs = turnNs() - communicator.timeoutNs() - communicator.graceNs();
    return beyondNs > 0 ? late(beyondNs) : null;
  }

  /// A block may have said whom it has waited for in vain while others go on: their deadline begins
  /// with each of their waits. Else it is the device.
  ///
  /// @param beyondNs for how long the call should have ended
  private Reasons.@Nullable Ending late(long beyondNs) {
    if (calls.haveKernelsLeft()) {
      Reasons.Ending said = calls.endingOf(this, beyondNs);
      if (said == null || said.reason() != null) {
        return said;
      }
    }
    return new Reasons.Ending(
        communicator.breakWith(
            new TransportFailedException(
                "rank %d's device has not come to the end of %s of '%s' for %.1f s: an event that the stream waits for was not reached, or other work keeps the device"
                    .formatted(communicator.rank(), text, communicator.name(), elapsedNs() / 1e9),
                null)));
  }

  @Override
  public boolean await(long nanos) {
    return await(nanos, this::isDone);
  }

  /// Returns when it [#isInStream].
  void awaitInStream() {
    await(Long.MAX_VALUE, () -> isDone() || launched);
  }

  private boolean await(long nanos, BooleanSupplier isOver) {
    long beginNs = System.nanoTime();
    while (!isOver.getAsBoolean()) {
      long waitedNs = System.nanoTime() - beginNs;
      if (waitedNs >= nanos) {
        return false;
      }
      if (Thread.currentThread().isInterrupted() && communicator.failure() == null) {
        communicator.breakWith(
            new InterruptedCallException(
                "rank %d was interrupted in %s of '%s'"
                    .formatted(communicator.rank(), text, communicator.name())));
      }
      if (waitedNs < SPIN_NS && !Thread.currentThread().isVirtual()) { // others want its carrier
        Thread.onSpinWait();
      } else if (Thread.currentThread().isInterrupted()) {
        Thread.yield(); // it can't sleep; kernels leave soon
      } else {
        LockSupport.parkNanos(
            this, Math.min(nanos - waitedNs, waitedNs < LONG_AFTER_NS ? SHORT_NS : LONG_NS));
      }
    }
    RuntimeException reason = failure;
    if (reason != null) {
      throw reason;
    }
    return true;
  }

  @Override
  public @Nullable Received received() {
    return null;
  }

  @Override
  public void onEnd(Runnable action) {
    boolean isLate;
    synchronized (this) {
      isLate = done;
      if (!isLate) {
        actions.add(action);
        watched = true;
      }
    }
    if (isLate) {
      action.run();
    } else {
      calls.watch();
    }
  }
}
