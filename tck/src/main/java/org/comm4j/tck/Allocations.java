package org.comm4j.tck;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.Objects;

/// The JVM's own count of what threads allocate and of what stays, for checks and tests of backends
/// that promise to allocate nothing or to keep little.
public final class Allocations {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Allocations() {}

  /// Calls something many times. What the compiler can remove it has removed only when that was
  /// done often enough.
  ///
  /// @param calls how many times
  /// @param call what is measured, on this thread
  /// @return bytes that one call allocates on the heap, on average
  public static double perCall(int calls, Runnable call) {
    long before = THREADS.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < calls; i++) {
      call.run();
    }
    return (double) (THREADS.getCurrentThreadAllocatedBytes() - before) / calls;
  }

  /// Collects, and counts what is left, whatever was allocated since: a thread that warms loops up
  /// fills megabytes in the time between a collection and a look at the heap.
  ///
  /// @return bytes of reachable objects on the heap
  public static long heldBytes() {
    // twice: the first collection finds what was unreachable, the second what cleaners let go
    System.gc();
    System.gc();
    return ManagementFactory.getMemoryPoolMXBeans().stream()
        .filter(pool -> pool.getType() == MemoryType.HEAP)
        .map(MemoryPoolMXBean::getCollectionUsage)
        .filter(Objects::nonNull) // where a collector does not tell
        .mapToLong(MemoryUsage::getUsed)
        .sum();
  }
}
