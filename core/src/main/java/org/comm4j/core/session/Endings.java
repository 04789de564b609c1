package org.comm4j.core.session;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// The ends of threads that serve others: who waits for them, and who must not end before them.
public final class Endings {
  private static final long SLICE_MILLIS = 100;

  private Endings() {}

  /// Waits within a bound; keeps the interrupt for later. Returns at once on the thread itself.
  static void await(Thread thread, long boundNs) {
    if (Thread.currentThread().equals(thread)) {
      return;
    }
    boolean interrupted = Thread.interrupted();
    long start = System.nanoTime();
    while (thread.isAlive() && System.nanoTime() - start < boundNs) {
      try {
        thread.join(SLICE_MILLIS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /// Waits within a bound until a thread says that it is as good as over; else the same.
  ///
  /// @param over counted down by the thread
  static void await(Thread thread, CountDownLatch over, long boundNs) {
    if (Thread.currentThread().equals(thread)) {
      return;
    }
    boolean interrupted = Thread.interrupted();
    long start = System.nanoTime();
    for (long left = boundNs; left > 0; left = boundNs - (System.nanoTime() - start)) {
      try {
        if (over.await(left, TimeUnit.NANOSECONDS)) {
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
