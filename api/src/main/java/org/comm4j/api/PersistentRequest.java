package org.comm4j.api;

/// An operation that is prepared once and started often, always on the same memory.
public interface PersistentRequest {
  /// What is prepared.
  Operation operation();

  /// Starts it.
  ///
  /// @throws IllegalStateException if its last start has not ended
  Request start();

  /// Starts it and waits until it has ended; allocates nothing once the library has warmed up.
  void run();
}
