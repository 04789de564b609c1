package org.comm4j.backend.local;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;

/// Sleeps in short naps, for processes without native access; in longer ones while nothing comes.
final class PollingDoorbell implements Doorbell {
  private static final long SHORTEST_NAP_NANOS = 50_000;
  private static final long LONGEST_NAP_NANOS = 5_000_000;

  /// A rank to which something has come is busy, and awake for longer than this, before it sleeps
  /// again.
  private static final long BETWEEN_NAPS_NANOS = 200_000;

  private long napNanos = SHORTEST_NAP_NANOS;
  private long awakeSince = System.nanoTime();

  @Override
  public void sleep(int rank, MemorySegment word, long nanos) {
    boolean goesOn = System.nanoTime() - awakeSince < BETWEEN_NAPS_NANOS;
    napNanos = goesOn ? Math.min(napNanos + napNanos / 8, LONGEST_NAP_NANOS) : SHORTEST_NAP_NANOS;
    LockSupport.parkNanos(this, Math.min(nanos, napNanos));
    awakeSince = System.nanoTime();
  }

  @Override
  public void ring(int rank, MemorySegment word) {}
}
