package org.comm4j.tck;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/// What a logger is told while this is open, for tests of what operators read; nobody else gets it
/// meanwhile. Thread-safe.
public final class LogLines implements AutoCloseable {
  private final Logger logger;
  private final List<String> lines = new CopyOnWriteArrayList<>();
  private final Handler handler =
      new Handler() {
        @Override
        public void publish(LogRecord each) {
          lines.add(new SimpleFormatter().formatMessage(each));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
      };

  /// Begins to listen.
  ///
  /// @param logger its name
  public LogLines(String logger) {
    this.logger = Logger.getLogger(logger);
    this.logger.addHandler(handler);
    this.logger.setUseParentHandlers(false);
  }

  /// {@return all lines until now}
  public List<String> lines() {
    return List.copyOf(lines);
  }

  /// Waits for a line that an expression matches as a whole.
  ///
  /// @throws AssertionError if there is none in that time
  public void await(String expression, Duration time) {
    long endNs = System.nanoTime() + time.toNanos();
    while (lines.stream().noneMatch(line -> line.matches(expression))) {
      if (System.nanoTime() - endNs >= 0) {
        throw new AssertionError("no line matches '%s': %s".formatted(expression, lines));
      }
      LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(1));
    }
  }

  @Override
  public void close() {
    logger.setUseParentHandlers(true);
    logger.removeHandler(handler);
  }
}
