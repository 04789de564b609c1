package org.comm4j.api;

import java.util.List;
import org.comm4j.api.spi.CallListener;
import org.jspecify.annotations.Nullable;

/// Those who hear of calls. One that throws has broken its promise; the call goes on and a log line
/// says so.
final class CallListeners {
  /// Nobody.
  static final CallListeners NONE = new CallListeners(List.of());

  private static final System.Logger LOG = System.getLogger("org.comm4j.api");

  private final CallListener[] listeners;

  CallListeners(List<CallListener> listeners) {
    this.listeners = listeners.toArray(CallListener[]::new);
  }

  /// {@return the listeners on the class path, looked up once}
  static CallListeners installed() {
    return Installed.LISTENERS;
  }

  /// Whether there may ever be somebody to tell.
  boolean any() {
    return listeners.length > 0;
  }

  /// Whether somebody wants to hear of the next call.
  boolean enabled() {
    for (CallListener listener : listeners) {
      if (listener.isEnabled()) {
        return true;
      }
    }
    return false;
  }

  void ended(
      String communicator,
      int rank,
      Operation operation,
      long startNanos,
      @Nullable Throwable failure) {
    long endNanos = System.nanoTime();
    for (CallListener listener : listeners) {
      try {
        if (listener.isEnabled()) {
          listener.ended(communicator, rank, operation, startNanos, endNanos, failure);
        }
      } catch (RuntimeException | LinkageError e) {
        LOG.log(System.Logger.Level.WARNING, "a call listener failed: " + listener.getClass(), e);
      }
    }
  }

  private static final class Installed {
    static final CallListeners LISTENERS =
        new CallListeners(Services.usable(CallListener.class, Services.loader()));
  }
}
