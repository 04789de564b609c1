package org.comm4j.api;

/// This rank is out of the launch, and its communicators are broken for good. Either it was silent
/// for longer than the liveness time (`COMM_LIVENESS`): its peers have declared it failed and gone
/// on without it. Or the session is no more: the launcher that hosted it is gone, which all ranks
/// are told so, or rank 0 where that hosted it, which those are told so whose communicator it has
/// left or is no member of; or this rank can follow it no longer.
public final class EvictedException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Makes the exception.
  ///
  /// @param message for how long this rank was silent, as far as it knows, or what it has lost
  public EvictedException(String message) {
    super(message);
  }
}
