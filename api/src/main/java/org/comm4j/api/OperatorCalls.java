package org.comm4j.api;

import org.comm4j.api.ReduceOp.Function;

/// Knows which threads are inside a user-defined operator: often a thread of the backend's, which
/// is inside no call on the communicator.
final class OperatorCalls {
  private static final ThreadLocal<Function> RUNNING = new ThreadLocal<>();

  private OperatorCalls() {}

  /// {@return the same function, while which runs its thread [#isRunning]}
  static Function marked(Function function) {
    return (source, accumulator, type, count) -> {
      Function outer = RUNNING.get(); // of another launch's
      RUNNING.set(function);
      try {
        function.combine(source, accumulator, type, count);
      } finally {
        if (outer == null) {
          RUNNING.remove();
        } else {
          RUNNING.set(outer);
        }
      }
    };
  }

  /// Checks that the calling thread is inside none.
  ///
  /// @param call what it calls
  static void refuse(String call) {
    if (isRunning()) {
      throw new ConcurrentUseException(
          "%s on thread '%s' from inside a user-defined operator (expected: a pure function of its arguments)"
              .formatted(call, Thread.currentThread().getName()));
    }
  }

  /// Whether the calling thread is inside one.
  static boolean isRunning() {
    return RUNNING.get() != null;
  }
}
