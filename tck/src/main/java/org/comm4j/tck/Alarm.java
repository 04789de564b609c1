package org.comm4j.tck;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.Communicator;

/// Gets ranks out of a check that has failed on another rank. They may wait on any communicator
/// that the check has made, and the rank that failed has closed its own, which tells them nothing;
/// so it breaks one that is for nothing else, and those who see that are interrupted.
final class Alarm implements AutoCloseable {
  private static final Duration PERIOD = Duration.ofMillis(20);

  private final Communicator bell;
  private final Thread guarded = Thread.currentThread();
  private final Thread watching;
  private boolean ended;
  private boolean interrupted;

  /// Watches over the calling thread.
  ///
  /// @param bell of all ranks, used for nothing else
  Alarm(Communicator bell) {
    this.bell = bell;
    this.watching = Thread.ofPlatform().daemon().name("tck-alarm").start(this::watch);
  }

  private void watch() {
    while (look()) {
      LockSupport.parkNanos(PERIOD.toNanos());
    }
  }

  /// Interrupts again and again, since a check may go on to the next wait.
  private synchronized boolean look() {
    if (!ended && hasRung()) {
      interrupted = true;
      guarded.interrupt();
    }
    return !ended;
  }

  /// Tells all ranks.
  void ring(String reason) {
    bell.abort(reason);
  }

  boolean hasRung() {
    return bell.failure().isPresent();
  }

  /// Ends the watch: from here on the calling thread is not interrupted.
  @Override
  public synchronized void close() {
    ended = true;
    LockSupport.unpark(watching);
    if (interrupted) {
      Thread.interrupted();
    }
  }
}
