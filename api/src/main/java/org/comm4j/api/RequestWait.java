package org.comm4j.api;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Waiting for one of many requests: looks at each in turn, which moves them along; between rounds
/// it spins for a moment, then gives the core away, then sleeps, longer each time. A virtual thread
/// sleeps at once.
final class RequestWait {
  private static final int SPINS = 100;
  private static final int YIELDS = 100;
  private static final long FIRST_SLEEP_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
  private static final long LONGEST_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private RequestWait() {}

  static int any(List<? extends Request> requests) {
    Thread me = Thread.currentThread();
    long sleepNanos = FIRST_SLEEP_NANOS;
    for (int round = me.isVirtual() ? SPINS + YIELDS : 0; ; round++) {
      for (int index = 0; index < requests.size(); index++) {
        if (requests.get(index).isDone()) {
          return index;
        }
      }
      if (me.isInterrupted()) {
        return interrupted(requests);
      }
      if (round < SPINS) {
        Thread.onSpinWait();
      } else if (round < SPINS + YIELDS) {
        Thread.yield();
      } else {
        LockSupport.parkNanos(sleepNanos);
        sleepNanos = Math.min(2 * sleepNanos, LONGEST_SLEEP_NANOS);
      }
    }
  }

  /// What an interrupt does to an operation is the backend's decision, so it is left to an await.
  private static int interrupted(List<? extends Request> requests) {
    try {
      requests.getFirst().await();
    } catch (CommException | IllegalStateException _) {
      // It has ended; the caller awaits it and hears why.
    }
    return 0;
  }
}
