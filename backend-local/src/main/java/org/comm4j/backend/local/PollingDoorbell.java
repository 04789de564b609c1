package org.comm4j.backend.local;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;

/// Sleeps in short naps, for processes without native access.
final class PollingDoorbell implements Doorbell {
  private static final long NAP_NANOS = 50_000;

  @Override
  public void sleep(int rank, MemorySegment word, long nanos) {
    LockSupport.parkNanos(this, Math.min(nanos, NAP_NANOS));
  }

  @Override
  public void ring(int rank, MemorySegment word) {}
}
