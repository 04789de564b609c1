package org.comm4j.api;

/// An operation that is prepared once and started often, always on the same memory. Its calls are
/// calls on the communicator: one thread at a time.
public interface PersistentRequest {
  /// {@return what is prepared}
  Operation operation();

  /// Starts it.
  ///
  /// @return what to await
  /// @throws IllegalStateException if its last start has not ended, or the communicator is closed
  ///   ([ClosedException])
  /// @throws IllegalArgumentException if its memory was closed meanwhile, or is of a confined
  ///   arena, which only [#run()] may use
  /// @throws CommException why the communicator is broken
  Request start();

  /// Starts it and waits until it has ended. A collective allocates nothing once the library has
  /// warmed up, a message little. What a receive or a probe got is told only by [#start()].
  ///
  /// @throws IllegalStateException if its last start has not ended, or the communicator is closed
  ///   ([ClosedException])
  /// @throws IllegalArgumentException if its memory was closed meanwhile, or is another thread's
  /// @throws CommException why it failed, or why the communicator is broken
  void run();
}
