package org.comm4j.api;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Waiting for one of many requests, or for all: looks at each in turn, which moves them along;
/// between rounds it spins for a moment, then gives the core away, then sleeps. A virtual thread
/// sleeps at once.
final class RequestWait {
  private static final int SPINS = 100;
  private static final int YIELDS = 100;
  private static final long FIRST_SLEEP_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
  private static final long LONGEST_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /// How long what peers are part of may take to end by itself after an interrupt: longer than most
  /// operations take, but not a deadline for which an executor that shuts down would wait.
  private static final long SPARE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private RequestWait() {}

  /// {@return the index of one that has ended} Sleeps longer each time.
  static int any(List<? extends Request> requests) {
    OperatorCalls.refuse("waitAny");
    check(requests);
    return any(requests, requests.size(), LONGEST_SLEEP_NANOS);
  }

  /// Waits for each, whatever becomes of the others. Those of one rank have one engine, which moves
  /// all along whichever is awaited. Those of several ranks have several, and no rank's may get on
  /// without the others': nobody else may be there to move them along, so sleeps are short.
  static void all(List<? extends Request> requests) {
    OperatorCalls.refuse("waitAll");
    check(requests);
    boolean areOfOneRank = areOfOneRank(requests);
    Throwable first = null;
    boolean wasInterrupted = false;
    for (int index = 0; index < requests.size(); index++) {
      try {
        if (!areOfOneRank) {
          any(requests.subList(index, requests.size()), 1, FIRST_SLEEP_NANOS);
        }
        requests.get(index).await();
      } catch (RuntimeException | Error failure) {
        first = first == null ? failure : first;
        if (!wasInterrupted && Thread.currentThread().isInterrupted()) {
          wasInterrupted = true;
          spare(requests.subList(index + 1, requests.size()));
        }
      }
    }
    if (first != null) {
      throw CheckedCommunicator.rethrow(first);
    }
  }

  /// Lets those end that an interrupt need not break: a wait for them would, since it leaves the
  /// flag set. A receive or probe is taken back if it can be; another interrupt ends this at once.
  private static void spare(List<? extends Request> others) {
    Thread.interrupted();
    try {
      long start = System.nanoTime();
      boolean areDone = areDone(others);
      others.forEach(RequestWait::takeBack);
      while (!areDone
          && !Thread.currentThread().isInterrupted()
          && System.nanoTime() - start < SPARE_NANOS) {
        LockSupport.parkNanos(FIRST_SLEEP_NANOS);
        areDone = areDone(others);
      }
    } finally {
      Thread.currentThread().interrupt();
    }
  }

  private static boolean areDone(List<? extends Request> requests) {
    boolean areDone = true;
    for (Request each : requests) {
      areDone &= each.isDone(); // each is moved along
    }
    return areDone;
  }

  private static void takeBack(Request request) {
    try {
      request.cancel();
    } catch (RuntimeException | Error _) {
      // Another operation, or another thread awaits it. What is broken, its own wait says.
    }
  }

  private static void check(List<? extends @Nullable Request> requests) {
    int index = 0;
    for (@Nullable Request each : requests) {
      if (each == null) {
        throw new NullPointerException("requests[%d]: null (expected: a request)".formatted(index));
      }
      index++;
    }
  }

  private static boolean areOfOneRank(List<? extends Request> requests) {
    LaunchScope first = null;
    for (Request request : requests) {
      if (request instanceof CheckedRequest checked) {
        if (first != null && checked.scope() != first) {
          return false;
        }
        first = checked.scope();
      }
    }
    return true;
  }

  /// @param wanted one of so many first ones; the others are only moved along
  private static int any(List<? extends Request> requests, int wanted, long longestSleepNanos) {
    Thread me = Thread.currentThread();
    long sleepNanos = FIRST_SLEEP_NANOS;
    for (int round = me.isVirtual() ? SPINS + YIELDS : 0; ; round++) {
      for (int index = 0; index < requests.size(); index++) {
        if (requests.get(index).isDone() && index < wanted) {
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
        sleepNanos = Math.min(2 * sleepNanos, longestSleepNanos);
      }
    }
  }

  /// What an interrupt does to an operation is the backend's decision, so it is left to an await.
  ///
  /// @throws ConcurrentUseException if that can't be, since another thread awaits it already
  private static int interrupted(List<? extends Request> requests) {
    try {
      requests.getFirst().await();
    } catch (ConcurrentUseException e) {
      throw e; // it has not ended
    } catch (CommException | IllegalStateException _) {
      // It has ended; the caller awaits it and hears why.
    }
    return 0;
  }
}
