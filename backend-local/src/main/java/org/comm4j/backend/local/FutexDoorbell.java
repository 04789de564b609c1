package org.comm4j.backend.local;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;

/// Sleeps on the word itself, with Linux' futex: between processes.
final class FutexDoorbell implements Doorbell {
  private static final long VIRTUAL_NAP_NANOS = 50_000;

  private final NativeCalls calls;

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
    calls.futexWait(word, 1, nanos);
  }

  @Override
  public void ring(int rank, MemorySegment word) {
    calls.futexWake(word);
  }
}
