package org.comm4j.api.spi;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import java.util.stream.Stream;
import org.comm4j.api.Communicator;
import org.jspecify.annotations.Nullable;

/// Which rank a thread of this JVM is: what [org.comm4j.api.Communicators#open()] asks first.
///
/// A launcher whose ranks are threads begins a [Launch] and runs each rank's program inside
/// [Launch#call]. A thread is a rank if it runs inside that call, or else if its context class
/// loader, or one of the classes on its stack, comes from a class loader that was given for a rank;
/// so threads that a rank's program starts are found too, where each rank has a loader of its own.
public final class ThreadRanks {
  private static final ScopedValue<Communicator> CURRENT = ScopedValue.newInstance();
  private static final Map<ClassLoader, Communicator> BY_LOADER = new HashMap<>();
  private static final AtomicInteger LAUNCHES = new AtomicInteger();
  private static final AtomicReference<@Nullable IntConsumer> ON_ABORT = new AtomicReference<>();

  private ThreadRanks() {}

  /// Begins a launch. Until it is closed, threads that are no rank can't open a communicator.
  ///
  /// @param ranks every rank's communicator, as [org.comm4j.api.LocalGroup#communicators()] has
  ///   them
  /// @return the launch
  public static Launch begin(List<Communicator> ranks) {
    return new Launch(ranks);
  }

  /// {@return the communicator of the rank that the calling thread is, if it is one}
  public static Optional<Communicator> current() {
    if (CURRENT.isBound()) {
      return Optional.of(CURRENT.get());
    }
    synchronized (BY_LOADER) {
      return BY_LOADER.isEmpty() ? Optional.empty() : byClassLoader();
    }
  }

  /// {@return whether a launch is going on in this JVM}
  public static boolean isHosting() {
    return LAUNCHES.get() > 0;
  }

  private static Optional<Communicator> byClassLoader() {
    Communicator byContext = byClassLoader(Thread.currentThread().getContextClassLoader());
    if (byContext != null) {
      return Optional.of(byContext);
    }
    return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
        .walk(frames ->
            frames
                .flatMap(frame ->
                    Stream.ofNullable(byClassLoader(frame.getDeclaringClass().getClassLoader())))
                .findFirst());
  }

  /// Ends this JVM for a rank that has asked for it ([Communicator#abortProcess]): as the launcher
  /// does that ([Launch#onAbort]), else with the code. Does not return.
  ///
  /// @param code that the rank gave
  public static void abort(int code) {
    IntConsumer launcher = ON_ABORT.get();
    if (launcher != null) {
      launcher.accept(code);
    }
    Runtime.getRuntime().halt(code);
  }

  private static @Nullable Communicator byClassLoader(@Nullable ClassLoader loader) {
    for (ClassLoader each = loader; each != null; each = each.getParent()) {
      Communicator communicator = BY_LOADER.get(each);
      if (communicator != null) {
        return communicator;
      }
    }
    return null;
  }

  /// A launch whose ranks are threads. Thread-safe.
  public static final class Launch implements AutoCloseable {
    private final List<Communicator> ranks;
    private @Nullable IntConsumer action;
    private boolean closed;

    private Launch(List<Communicator> ranks) {
      this.ranks = List.copyOf(ranks);
      LAUNCHES.incrementAndGet();
    }

    /// Says that classes of a class loader, and of its children, belong to one rank alone. Holds
    /// until the launch is closed, for threads that outlive the rank's own.
    ///
    /// @param rank the rank
    /// @param classes defines that rank's copy of the program
    public void identify(int rank, ClassLoader classes) {
      synchronized (BY_LOADER) {
        if (closed) {
          throw new IllegalStateException("the launch is closed");
        }
        BY_LOADER.put(classes, ranks.get(rank));
      }
    }

    /// Runs something as a rank, on the calling thread.
    ///
    /// @param rank the rank
    /// @param body what to run
    /// @param <T> what it returns
    /// @param <X> what it throws
    /// @return what it returned
    /// @throws X what it threw
    public <T extends @Nullable Object, X extends Throwable> T call(
        int rank, ScopedValue.CallableOp<T, X> body) throws X {
      return ScopedValue.where(CURRENT, ranks.get(rank)).call(body);
    }

    /// Says how a rank's wish to end all processes, which are this JVM, is met: for a launcher
    /// whose exit codes are its own. Holds until the launch is closed.
    ///
    /// @param action ends the JVM, given the rank's code; called on the rank's thread, where
    ///   [ThreadRanks#current()] names it
    public void onAbort(IntConsumer action) {
      this.action = action;
      ON_ABORT.set(action);
    }

    /// Ends the launch: its class loaders are forgotten. Closing twice does nothing.
    @Override
    public void close() {
      synchronized (BY_LOADER) {
        if (!closed) {
          closed = true;
          BY_LOADER.values().removeAll(ranks);
          LAUNCHES.decrementAndGet();
          ON_ABORT.compareAndSet(action, null);
        }
      }
    }
  }
}
