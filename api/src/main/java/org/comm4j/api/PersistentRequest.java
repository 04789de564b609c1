package org.comm4j.api;

/// An operation that is prepared once and started often, always on the same memory.
public interface PersistentRequest {
  /// {@return what is prepared}
  Operation operation();

  /// Starts it.
  ///
  /// @return what to await
  /// @throws IllegalStateException if its last start has not ended
  Request start();

  /// Starts it and waits until it has ended. A collective allocates nothing once the library has
  /// warmed up, a message little.
  ///
  /// @throws IllegalStateException if its last start has not ended
  void run();
}
