package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// The one [PersistentRequest]: an operation whose shape was checked when it was prepared; that its
/// memory is still there is checked at each start.
final class PreparedRequest implements PersistentRequest {
  private final CheckedCommunicator communicator;
  private final Operation operation;
  private @Nullable CheckedRequest last;

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
    requireEnded();
    CheckedRequest request = communicator.startPrepared(operation);
    last = request;
    return request;
  }

  @Override
  public void run() {
    requireEnded();
    communicator.runPrepared(operation);
  }

  private void requireEnded() {
    CheckedRequest request = last;
    if (request != null && !request.isDone()) {
      throw new IllegalStateException(
          operation.label() + " is still in flight; await its last start before the next");
    }
    last = null;
  }
}
