package org.comm4j.api;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// Writes down what the API asks of it.
class FakeCommunicator implements BackendCommunicator {
  final int rank;
  final int size;
  final String backend;
  final List<String> calls = Collections.synchronizedList(new ArrayList<>());
  @Nullable StreamSync streamSync;
  @Nullable SharedMemoryProvider sharedMemory;
  final List<FakePending> pendings = new ArrayList<>();

  /// What a blocking call does.
  Function<Operation, @Nullable Received> onRun = _ -> null;

  /// What it was told to use; null where it can't.
  @Nullable Reduction reduction = Reduction.FAST;

  volatile @Nullable CommException failure;
  @Nullable FakeCommunicator child;

  FakeCommunicator(int rank, int size, String backend) {
    this.rank = rank;
    this.size = size;
    this.backend = backend;
  }

  @Override
  public boolean useReduction(Reduction wish) {
    if (reduction == null) {
      return false;
    }
    reduction = wish;
    return true;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public String backend() {
    return backend;
  }

  @Override
  public Capabilities capabilities() {
    return new Capabilities(
        EnumSet.of(
            Capability.HOST_MEMORY,
            Capability.POINT_TO_POINT,
            Capability.SPLIT,
            Capability.USER_DEFINED_OPERATORS),
        Map.of());
  }

  @Override
  public Topology topology() {
    return new Topology(List.of(), Optional.empty(), Map.of(), List.of());
  }

  @Override
  public @Nullable Received run(Operation operation) {
    calls.add(operation.label());
    return onRun.apply(operation);
  }

  /// Whether a send has ended well before it is submitted to the end.
  boolean endsSendsAtOnce;

  @Override
  public Pending submit(Operation operation) {
    calls.add("submit " + operation.label());
    if (endsSendsAtOnce && operation instanceof PointToPoint.Send) {
      return Pending.ENDED;
    }
    var pending = new FakePending();
    pendings.add(pending);
    return pending;
  }

  @Override
  public void sync() {
    calls.add("sync");
  }

  @Override
  public Optional<BackendCommunicator> split(int color, int key) {
    return color == Communicator.NO_COLOR ? Optional.empty() : Optional.of(duplicate());
  }

  @Override
  public BackendCommunicator duplicate() {
    var made = new FakeCommunicator(rank, size, backend);
    child = made;
    return made;
  }

  @Override
  public BackendCommunicator splitLocal() {
    return duplicate();
  }

  @Override
  public Shrink shrink() {
    calls.add("shrink");
    return new Shrink(duplicate(), List.of(rank), 1);
  }

  @Override
  public CommBuffer allocate(DataType type, long count) {
    throw new TransportFailedException("no space in /fake; enlarge COMM_FAKE_SPACE", null);
  }

  @Override
  public Optional<StreamSync> streamSync() {
    return Optional.ofNullable(streamSync);
  }

  @Override
  public SharedMemoryProvider sharedMemory() {
    if (sharedMemory == null) {
      throw new UnsupportedException("no shared memory");
    }
    return sharedMemory;
  }

  @Override
  public void abort(CommException cause) {
    calls.add("abort");
    if (failure == null) {
      failure = cause;
    }
  }

  @Override
  public void abortProcess(int code) {
    calls.add("abortProcess " + code);
  }

  @Override
  public @Nullable CommException failure() {
    return failure;
  }

  @Override
  public void close() {
    calls.add(Thread.currentThread().isInterrupted() ? "close, interrupted" : "close");
  }

  /// The only one that was submitted.
  FakePending pending() {
    return pendings.getFirst();
  }

  /// An operation that ends when the test says so.
  static final class FakePending implements Pending {
    /// How long all who waited wanted to, one after the other.
    volatile long askedNanos;

    private boolean ended;
    private @Nullable Received received;
    private @Nullable RuntimeException thrown;
    private @Nullable Runnable action;
    private boolean cancellable = true;
    private volatile @Nullable Look look;
    private @Nullable Runnable whenAwaited;
    private @Nullable Error callBackFailure;

    interface Look {
      void run() throws InterruptedException;
    }

    /// Has something done when somebody asks whether it has ended, once.
    void whenLookedAt(Look action) {
      look = action;
    }

    /// Has something done when somebody has time to wait for its end, once.
    void whenAwaited(Runnable action) {
      whenAwaited = action;
    }

    /// Has the next registration of a callback fail, once.
    void failNextCallBack(Error failure) {
      callBackFailure = failure;
    }

    void end(@Nullable Received result) {
      end(result, null);
    }

    void fail(RuntimeException e) {
      end(null, e);
    }

    private void end(@Nullable Received result, @Nullable RuntimeException failure) {
      Runnable told;
      synchronized (this) {
        received = result;
        thrown = failure;
        ended = true;
        told = action;
        notifyAll();
      }
      if (told != null) {
        told.run();
      }
    }

    synchronized void match() {
      cancellable = false;
    }

    @Override
    public boolean isDone() {
      Look action = look;
      look = null;
      if (action != null) {
        try {
          action.run();
        } catch (InterruptedException e) {
          throw new AssertionError(e);
        }
      }
      synchronized (this) {
        return ended;
      }
    }

    @Override
    public synchronized boolean await(long nanos) {
      askedNanos += nanos;
      Runnable waiting = whenAwaited;
      if (waiting != null && nanos > 0) {
        whenAwaited = null;
        waiting.run();
      }
      long end = System.nanoTime() + Math.min(nanos, TimeUnit.DAYS.toNanos(1));
      while (!ended) {
        long millis = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime() + 999_999);
        if (millis <= 0) {
          return false;
        }
        try {
          wait(millis);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new InterruptedCallException("interrupted");
        }
      }
      if (thrown != null) {
        throw thrown;
      }
      return true;
    }

    @Override
    public synchronized @Nullable Received received() {
      return received;
    }

    @Override
    public synchronized boolean cancel() {
      if (ended || !cancellable) {
        return false;
      }
      ended = true;
      return true;
    }

    @Override
    public void onEnd(Runnable toTell) {
      Error failing = callBackFailure;
      callBackFailure = null;
      if (failing != null) {
        throw failing;
      }
      boolean now;
      synchronized (this) {
        now = ended;
        action = toTell;
      }
      if (now) {
        toTell.run();
      }
    }
  }
}
