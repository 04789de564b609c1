package org.comm4j.api;

/// Two threads called one communicator at once, or a user-defined operator called back into it. The
/// second call did nothing; the communicator is as it was.
public final class ConcurrentUseException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message both threads and what to do
  public ConcurrentUseException(String message) {
    super(message);
  }
}
