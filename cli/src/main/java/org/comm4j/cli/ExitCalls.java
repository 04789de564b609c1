package org.comm4j.cli;

import java.util.function.IntConsumer;
import java.util.logging.Filter;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Hears of each `System.exit` of this JVM, with its code, on the thread that calls it and before
/// any shutdown hook runs. Nothing else tells the code; the JDK logs it there, as `Runtime.exit`
/// says. A program that resets what is logged is not heard.
final class ExitCalls implements AutoCloseable {
  private static final Pattern CALLED = Pattern.compile("Runtime\\.exit\\(.*status: (-?\\d+)");

  private final IntConsumer listener;
  private final Logger logger = Logger.getLogger("java.lang.Runtime"); // nobody else keeps it
  private final boolean isLogged = logger.isLoggable(Level.FINE);
  private final @Nullable Level level = logger.getLevel();
  private final @Nullable Filter filter = logger.getFilter();

  /// @param listener gets the code, and may itself exit with another one
  ExitCalls(IntConsumer listener) {
    this.listener = listener;
    logger.setFilter(this::hear);
    if (!isLogged) {
      logger.setLevel(Level.FINE);
    }
  }

  private boolean hear(LogRecord entry) {
    Matcher call = CALLED.matcher(String.valueOf(entry.getMessage()));
    if (call.find()) {
      listener.accept(Integer.parseInt(call.group(1)));
    }
    return isLogged && (filter == null || filter.isLoggable(entry));
  }

  @Override
  public void close() {
    logger.setLevel(level);
    logger.setFilter(filter);
  }
}
