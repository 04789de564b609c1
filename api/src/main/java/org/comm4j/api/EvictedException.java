package org.comm4j.api;

/// This rank was silent for longer than the liveness time (`COMM_LIVENESS`): its peers have
/// declared it failed and gone on without it. Its communicators are broken for good.
public final class EvictedException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message for how long this rank was silent, as far as it knows
  public EvictedException(String message) {
    super(message);
  }
}
