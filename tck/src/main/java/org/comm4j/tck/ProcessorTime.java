package org.comm4j.tck;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/// The JVM's own count of what threads take of processors, for tests that waiting is cheap.
public final class ProcessorTime {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private ProcessorTime() {}

  /// Does something on this thread.
  ///
  /// @param action what is measured
  /// @return the thread's processor time over the time that it took; 1 is a processor of its own
  public static double share(Runnable action) {
    return share(Thread.currentThread().threadId(), action);
  }

  /// The same of another thread.
  ///
  /// @param thread its name; there is one such thread
  /// @param action done on this thread meanwhile
  public static double share(String thread, Runnable action) {
    long[] named =
        Arrays.stream(THREADS.getThreadInfo(THREADS.getAllThreadIds()))
            .filter(info -> info != null && info.getThreadName().equals(thread))
            .mapToLong(ThreadInfo::getThreadId)
            .toArray();
    if (named.length != 1) {
      throw new IllegalArgumentException(
          "thread: '%s', of which there are %d (expected: one)".formatted(thread, named.length));
    }
    return share(named[0], action);
  }

  private static double share(long thread, Runnable action) {
    long start = System.nanoTime();
    long used = THREADS.getThreadCpuTime(thread);
    action.run();
    return (THREADS.getThreadCpuTime(thread) - used) / (double) (System.nanoTime() - start);
  }
}
