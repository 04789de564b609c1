package org.comm4j.api;

/// This backend can't do this; [Communicator#capabilities()] says so beforehand. Nothing was done.
public final class UnsupportedException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message what was asked for, of which backend, and what to do instead
  public UnsupportedException(String message) {
    super(message);
  }
}
