package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// The one [PersistentRequest]: an operation whose shape was checked when it was prepared; that its
/// memory is still there is checked at each start.
final class PreparedRequest implements PersistentRequest {
  private final CheckedCommunicator communicator;
  private final Operation operation;
  private @Nullable CheckedRequest last; // used inside calls on the communicator alone

  PreparedRequest(CheckedCommunicator communicator, Operation operation) {
    this.communicator = communicator;
    this.operation = operation;
  }

  @Override
  public Operation operation() {
    return operation;
  }

  @Override
  public Request start() {
    return communicator.startPrepared(this);
  }

  @Override
  public void run() {
    communicator.runPrepared(this);
  }

  /// Remembers what it was started as. By who is in a call on the communicator, as below.
  void started(CheckedRequest request) {
    last = request;
  }

  void requireEnded() {
    CheckedRequest request = last;
    if (request != null && !request.hasEnded()) {
      throw new IllegalStateException(
          operation.label() + " is still in flight; await its last start before the next");
    }
    last = null;
  }
}
