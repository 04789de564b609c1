package org.comm4j.core.events;

import org.comm4j.api.Operation;
import org.comm4j.api.spi.CallListener;
import org.jspecify.annotations.Nullable;

/// Makes a [CallEvent] of each call while a flight recording asks for it. Else a call costs one
/// look at whether one does, and no memory. Silent in a Java that comes without the recorder.
public final class CallEvents implements CallListener {
  /// Answers whether a recording asks for events; null without a recorder.
  private final @Nullable CallEvent any;

  /// For [java.util.ServiceLoader].
  public CallEvents() {
    CallEvent made;
    try {
      made = new CallEvent();
    } catch (NoClassDefFoundError _) { // the module jdk.jfr is not there
      made = null;
    }
    this.any = made;
  }

  @Override
  public @Nullable Call begins(String communicator, int rank, Operation operation) {
    if (any == null || !any.isEnabled()) {
      return null;
    }
    CallEvent event = new CallEvent();
    event.communicator = communicator;
    event.rank = rank;
    event.operation = operation.label();
    event.bytes = CallBytes.of(operation);
    event.begin();
    return failure -> end(event, failure);
  }

  private static void end(CallEvent event, @Nullable Throwable failure) {
    event.end();
    if (event.shouldCommit()) {
      event.failure = failure == null ? null : failure.toString();
      event.commit();
    }
  }
}
