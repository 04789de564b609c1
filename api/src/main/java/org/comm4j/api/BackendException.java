package org.comm4j.api;

/// A library below the backend (MPI, CUDA) reported an error. The communicator is broken.
public final class BackendException extends CommException {
  private static final long serialVersionUID = 1L;
  private final int code;

  /// Makes the exception.
  ///
  /// @param code the library's own number
  /// @param message what was attempted, the library's name for the error and its text
  public BackendException(int code, String message) {
    super(message);
    this.code = code;
  }

  /// {@return the library's own number for the error}
  public int code() {
    return code;
  }
}
