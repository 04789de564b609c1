package org.comm4j.backend.mpi;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Runs collectives that were started, one after the other, in the library's blocking functions: to
/// MPI a blocking collective and a non-blocking one are two operations, and here one rank may start
/// what another one runs. Where calls wait outside the library, it runs what only a blocking
/// function of it makes. One daemon thread per communicator, from the first such call on.
final class Worker {
  private static final long POLL_NS = TimeUnit.MICROSECONDS.toNanos(200);
  private static final AtomicInteger IN_LIBRARY = new AtomicInteger();

  private final String name;
  private @Nullable ExecutorService thread;
  private volatile @Nullable Thread current;
  private volatile @Nullable MpiCall last;

  Worker(String name) {
    this.name = name;
  }

  /// Whether all workers of this process are out of the library, where one may be for ever. Who has
  /// awaited a worker's call may be ahead of its way out.
  ///
  /// @param mostNs how long it waits for that
  static boolean areOutWithin(long mostNs) {
    long startNs = System.nanoTime();
    while (IN_LIBRARY.get() > 0) {
      if (System.nanoTime() - startNs >= mostNs) {
        return false;
      }
      LockSupport.parkNanos(POLL_NS);
    }
    return true;
  }

  /// Whether the calling thread is the one that runs them.
  boolean isCurrent() {
    return Thread.currentThread() == current;
  }

  /// The last call that it was given; null if there was none, or it has ended.
  @Nullable MpiCall last() {
    MpiCall given = last;
    return given == null || given.hasEnded() ? null : given;
  }

  /// Has a call run after those before it, unless it has ended by then.
  void execute(MpiCall call) {
    last = call;
    try {
      start()
          .execute(() ->
              runCounted(() -> {
                if (!call.hasEnded()) {
                  call.runBlockingForOthers();
                }
              }));
    } catch (RejectedExecutionException closed) {
      throw call.group.closed(call.label());
    }
  }

  /// Has something run and waits for it.
  ///
  /// @param patience throws if it is not to be waited for any longer: what has begun then stays in
  ///   the library, else it does not begin
  /// @throws RejectedExecutionException after [#close]
  <T extends @Nullable Object> T run(Supplier<T> body, Runnable patience) {
    FutureTask<T> running = new FutureTask<>(body::get);
    start().execute(() -> runCounted(running));
    try {
      return await(running, patience);
    } finally {
      if (running.cancel(false)) { // it has not ended
        Library.markLost();
      }
    }
  }

  private static void runCounted(Runnable task) {
    IN_LIBRARY.incrementAndGet();
    try {
      task.run();
    } finally {
      IN_LIBRARY.decrementAndGet();
    }
  }

  private synchronized ExecutorService start() {
    ExecutorService running = thread;
    if (running == null) {
      running =
          Executors.newSingleThreadExecutor(task -> {
            Thread made = Thread.ofPlatform().daemon().name("comm4j-mpi " + name).unstarted(task);
            current = made;
            return made;
          });
      thread = running;
    }
    return running;
  }

  /// Waits for what runs on a thread of ours, in the library, until other ranks have come.
  ///
  /// @param patience throws if it is not to be waited for any longer: it stays there
  static <T extends @Nullable Object> T await(FutureTask<T> running, Runnable patience) {
    while (!running.isDone()) {
      patience.run();
      LockSupport.parkNanos(POLL_NS);
    }
    if (running.state() == Future.State.FAILED) {
      throw Functions.failed(running.exceptionNow());
    }
    return running.resultNow();
  }

  /// Takes no more calls; one that is in the library stays there until it ends.
  synchronized void close() {
    if (thread != null) {
      thread.shutdown();
    }
  }
}
