package org.comm4j.tck;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/// The JVM's own count of what threads take of processors, for tests that waiting is cheap.
public final class ProcessorTime {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private ProcessorTime() {}

  /// Does something on this thread while another one is measured.
  ///
  /// @param thread a platform thread that lives until the action has ended
  /// @param action as long as the other thread is measured
  /// @return the other thread's processor time over the time that the action took; 1 is a processor
  ///   of its own
  /// @throws IllegalStateException if the other thread has ended
  public static double share(Thread thread, Runnable action) {
    long start = System.nanoTime();
    long used = THREADS.getThreadCpuTime(thread.threadId());
    action.run();
    long usedThen = THREADS.getThreadCpuTime(thread.threadId());
    if (used < 0 || usedThen < 0) {
      throw new IllegalStateException("thread '%s' has ended".formatted(thread.getName()));
    }
    return (usedThen - used) / (double) (System.nanoTime() - start);
  }
}
