package org.comm4j.backend.cuda;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The thread of a communicator: does what it is given one after the other, in that order. There is
/// none before the first.
///
/// What it does may wait for ranks that never come, so nobody waits for it where the communicator
/// breaks: what it has not begun is dropped, and done by whoever looks next, who finds the
/// communicator broken. Work is given under a lock of the caller's; all else needs none, since a
/// launch that the driver holds back has that one for long.
final class CallThread {
  private final String name;
  private final Queue<Runnable> dropped = new ConcurrentLinkedQueue<>();
  private volatile @Nullable ExecutorService thread; // set under the caller's lock

  CallThread(String name) {
    this.name = name;
  }

  /// Gives it work, which is done at once, here, if [#drop] or [#end] was before.
  void give(Runnable work) {
    ExecutorService running = thread;
    if (running == null) {
      running =
          Executors.newSingleThreadExecutor(
              task -> Thread.ofPlatform().daemon().name(name).unstarted(task));
      thread = running;
    }
    try {
      running.execute(work);
    } catch (RejectedExecutionException _) { // broken or closed just now, which it says
      work.run();
    }
  }

  /// Lets it end behind what it does now, and interrupts that; the rest is for [#doDropped].
  void drop() {
    ExecutorService running = thread;
    if (running != null && !running.isShutdown()) {
      dropped.addAll(running.shutdownNow());
    }
  }

  /// Does what was dropped. Not under a call's lock: that calls back whoever waits.
  void doDropped() {
    for (Runnable next = dropped.poll(); next != null; next = dropped.poll()) {
      next.run();
    }
  }

  /// Lets it end behind what it was given.
  void end() {
    ExecutorService ending = thread;
    if (ending != null) {
      ending.shutdown();
    }
  }

  /// Waits, unless interrupted, until it has ended.
  ///
  /// @return whether it has, or there was none
  boolean awaitEnd(long nanos) {
    ExecutorService ending = thread;
    try {
      return ending == null || ending.awaitTermination(nanos, TimeUnit.NANOSECONDS);
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      return ending.isTerminated();
    }
  }
}
