package org.comm4j.tck;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/// The JVM's own count of what threads take of processors, for tests that waiting is cheap.
public final class ProcessorTime {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private ProcessorTime() {}

  /// Does something on this thread.
  ///
  /// @param action what is measured
  /// @return the thread's processor time over the time that it took; 1 is a processor of its own
  public static double share(Runnable action) {
    long start = System.nanoTime();
    long used = THREADS.getCurrentThreadCpuTime();
    action.run();
    return (THREADS.getCurrentThreadCpuTime() - used) / (double) (System.nanoTime() - start);
  }
}
