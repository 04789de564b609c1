package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// The technology that moves the bytes failed, on this rank. The communicator is broken, unless the
/// call was an `allocate` that found no space, or made a region of shared memory for which there is
/// none.
public final class TransportFailedException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message what was attempted, what happened, what to do
  /// @param cause the exception below, or null
  public TransportFailedException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
