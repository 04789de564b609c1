package org.comm4j.api;

/// Ranks disagree on a call: its operation, operator, type, count, root or order, or a message's
/// type or length. The communicator is broken on every rank.
public final class MismatchedCallException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message who called what
  public MismatchedCallException(String message) {
    super(message);
  }
}
