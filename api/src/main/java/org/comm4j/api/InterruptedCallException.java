package org.comm4j.api;

/// The calling thread was interrupted while it waited in an operation; its interrupt flag is set
/// again. The communicator is broken: its peers get an [AbortedException] that names this rank.
public final class InterruptedCallException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message which call was interrupted
  public InterruptedCallException(String message) {
    super(message);
  }
}
