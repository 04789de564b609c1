package org.comm4j.api.spi;

import org.comm4j.api.Operation;
import org.jspecify.annotations.Nullable;

/// Hears of every blocking call and every awaited request, for tracing. Found by
/// [java.util.ServiceLoader]; called on the thread of the call; must be fast and must not throw.
public interface CallListener {
  /// {@return whether it wants to hear of the next call; asked before each one, so that silence
  /// costs nothing}
  boolean isEnabled();

  /// A call has ended.
  ///
  /// @param communicator its name
  /// @param rank this rank
  /// @param operation what was called
  /// @param startNanos when, on the clock of [System#nanoTime()]
  /// @param endNanos when it ended
  /// @param failure what it threw, or null
  void ended(
      String communicator,
      int rank,
      Operation operation,
      long startNanos,
      long endNanos,
      @Nullable Throwable failure);
}
