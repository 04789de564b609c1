package org.comm4j.tck;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/// The JVM's own count of what threads allocate, for tests of backends that promise to allocate
/// nothing.
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
}
