package org.comm4j.api;

/// The communicator was closed, or an operation on it was pending when that happened.
public final class ClosedException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message what was attempted and on which communicator
  public ClosedException(String message) {
    super(message);
  }
}
