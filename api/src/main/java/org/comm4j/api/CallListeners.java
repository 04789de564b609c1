package org.comm4j.api;

import java.util.ArrayList;
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

  /// {@return who wants to hear of the end of a call that begins; null, and nothing allocated, if
  /// nobody does}
  @Nullable Heard begins(String communicator, int rank, Operation operation) {
    Heard heard = null;
    for (CallListener listener : listeners) {
      try {
        CallListener.Call call = listener.begins(communicator, rank, operation);
        if (call != null) {
          heard = heard == null ? new Heard() : heard;
          heard.calls.add(call);
        }
      } catch (RuntimeException | Error e) {
        warn(listener, e);
      }
    }
    return heard;
  }

  private static void warn(Object listener, Throwable failure) {
    LOG.log(System.Logger.Level.WARNING, "a call listener failed: " + listener.getClass(), failure);
  }

  /// A call whose end somebody wants to hear of.
  static final class Heard {
    private final List<CallListener.Call> calls = new ArrayList<>(1);

    private Heard() {}

    void ended(@Nullable Throwable failure) {
      for (CallListener.Call call : calls) {
        try {
          call.ended(failure);
        } catch (RuntimeException | Error e) {
          warn(call, e);
        }
      }
    }
  }

  private static final class Installed {
    static final CallListeners LISTENERS =
        new CallListeners(Services.usable(CallListener.class, Services.loader()));
  }
}
