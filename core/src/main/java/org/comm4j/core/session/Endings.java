package org.comm4j.core.session;

/// Waits for the end of a session's thread, from a thread that may be interrupted meanwhile.
final class Endings {
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
}
