package org.comm4j.core.kernel;

import org.comm4j.api.CommException;

/// A user-defined operator threw an exception of this library, as it does when it uses a
/// communicator: without a wrapper that would be taken for a failure of the one it works for.
public final class OperatorFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private final CommException thrown;

  OperatorFailedException(CommException thrown) {
    super(thrown);
    this.thrown = thrown;
  }

  /// {@return what the operator threw}
  public CommException thrown() {
    return thrown;
  }
}
