package org.comm4j.core.session;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// The ends of threads that serve others: who waits for them, and who must not end before them.
public final class Endings {
  /// Waits for something for so many nanoseconds at most, and says whether it is over.
  private interface Wait {
    boolean isOver(long ns) throws InterruptedException;
  }

  private static final long MEMORY_NS = TimeUnit.MILLISECONDS.toNanos(10);

  private Endings() {}

  /// Waits for a moment before a thread that ends tries again to say why: the heap was full.
  static void awaitMemory() {
    LockSupport.parkNanos(MEMORY_NS);
  }

  /// Waits within a bound until a thread has ended; keeps the interrupt for later. Returns at once
  /// on the thread itself.
  ///
  /// @param thread that was started
  public static void await(Thread thread, long boundNs) {
    await(thread, boundNs, ns -> thread.join(Duration.ofNanos(ns)));
  }

  /// Waits within a bound until a thread says that it is as good as over; else the same.
  ///
  /// @param over counted down by the thread
  static void await(Thread thread, CountDownLatch over, long boundNs) {
    await(thread, boundNs, ns -> over.await(ns, TimeUnit.NANOSECONDS));
  }

  private static void await(Thread thread, long boundNs, Wait wait) {
    if (Thread.currentThread().equals(thread)) {
      return;
    }
    boolean interrupted = Thread.interrupted();
    long start = System.nanoTime();
    for (long left = boundNs; left > 0; left = boundNs - (System.nanoTime() - start)) {
      try {
        if (wait.isOver(left)) {
          break;
        }
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /// Keeps the JVM from ending by itself while a daemon thread goes on, by one whose name says for
  /// what; whoever interrupts that one wants the process to end.
  ///
  /// @param end the daemon
  public static void keepProcessUntil(Thread end) {
    Thread.ofPlatform()
        .daemon(false)
        .name(end.getName() + "-for-others")
        .inheritInheritableThreadLocals(false)
        .start(() -> join(end));
  }

  private static void join(Thread end) {
    while (end.isAlive()) {
      try {
        end.join();
      } catch (InterruptedException _) {
        return;
      }
    }
  }
}
