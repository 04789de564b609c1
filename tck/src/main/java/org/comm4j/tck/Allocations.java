package org.comm4j.tck;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/// The JVM's own count of what threads allocate, for tests of backends that promise to allocate
/// nothing.
public final class Allocations {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Allocations() {}

  /// Calls something until the compiler has removed what it can.
  ///
  /// @param calls of one round
  /// @param rounds of which the least counts
  /// @param call what is measured, on this thread
  /// @return bytes that one call allocates on the heap
  public static double perCall(int calls, int rounds, Runnable call) {
    long least = Long.MAX_VALUE;
    for (int round = 0; round < rounds; round++) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < calls; i++) {
        call.run();
      }
      least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
    }
    return (double) least / calls;
  }
}
