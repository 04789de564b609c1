package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;

/// Sleeps on the word itself, with Linux' futex: between processes.
final class FutexDoorbell implements Doorbell {
  private static final long VIRTUAL_NAP_NANOS = 50_000;

  private final NativeCalls calls;

  /// Of the one thread that sleeps: memory of its own each time would be most of what a sleep
  /// costs.
  private final MemorySegment time = Arena.ofAuto().allocate(JAVA_LONG, 2);

  FutexDoorbell(NativeCalls calls) {
    this.calls = calls;
  }

  @Override
  public void sleep(int rank, MemorySegment word, long nanos) {
    if (Thread.currentThread().isVirtual()) {
      // In the kernel it would hold its carrier.
      LockSupport.parkNanos(this, Math.min(nanos, VIRTUAL_NAP_NANOS));
      return;
    }
    time.setAtIndex(JAVA_LONG, 0, nanos / 1_000_000_000);
    time.setAtIndex(JAVA_LONG, 1, nanos % 1_000_000_000);
    calls.futexWait(word, 1, time);
  }

  @Override
  public void ring(int rank, MemorySegment word) {
    calls.futexWake(word);
  }
}
