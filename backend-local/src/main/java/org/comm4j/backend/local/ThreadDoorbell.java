package org.comm4j.backend.local;

import static org.comm4j.backend.local.SharedMemoryTransport.INT;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;

/// Sleeps with [LockSupport]: for ranks of one JVM, which share this object.
final class ThreadDoorbell implements Doorbell {
  private final AtomicReferenceArray<Thread> sleepers;

  ThreadDoorbell(int ranks) {
    sleepers = new AtomicReferenceArray<>(ranks);
  }

  @Override
  public void sleep(int rank, MemorySegment word, long nanos) {
    // Set before the word is read again; who rings clears the word before it looks for the thread.
    sleepers.set(rank, Thread.currentThread());
    if ((int) INT.getVolatile(word, 0L) == 1) {
      LockSupport.parkNanos(this, nanos);
    }
    sleepers.set(rank, null);
  }

  @Override
  public void ring(int rank, MemorySegment word) {
    LockSupport.unpark(sleepers.get(rank));
  }
}
