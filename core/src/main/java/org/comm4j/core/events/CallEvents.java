package org.comm4j.core.events;

import jdk.jfr.FlightRecorder;
import org.comm4j.api.CommData;
import org.comm4j.api.Operation;
import org.comm4j.api.spi.CallListener;
import org.comm4j.core.schedule.Ends;
import org.jspecify.annotations.Nullable;

/// Makes a [CallEvent] of each call while a flight recording asks for it. Else a call costs one
/// look at whether one does, and no memory. Silent in a Java that comes without the recorder.
public final class CallEvents implements CallListener {
  private final boolean hasRecorder;

  /// For [java.util.ServiceLoader].
  public CallEvents() {
    this.hasRecorder = hasRecorder();
  }

  private static boolean hasRecorder() {
    try {
      return FlightRecorder.isAvailable();
    } catch (NoClassDefFoundError _) { // the module jdk.jfr is not there
      return false;
    }
  }

  /// Only there once somebody records: the first event of a JVM sets the recorder up, for a tenth
  /// of a second.
  private static final class Asked {
    static final CallEvent ANY = new CallEvent();
  }

  @Override
  public @Nullable Call begins(String communicator, int rank, Operation operation) {
    if (!hasRecorder || !FlightRecorder.isInitialized() || !Asked.ANY.isEnabled()) {
      return null;
    }
    CallEvent event = new CallEvent();
    event.communicator = communicator;
    event.rank = rank;
    event.operation = operation.label();
    Ends ends = Ends.of(operation, rank);
    event.bytes = Math.max(bytes(ends.input()), bytes(ends.output()));
    event.begin();
    return failure -> end(event, failure);
  }

  private static long bytes(@Nullable CommData data) {
    return data == null ? 0 : data.bytes();
  }

  private static void end(CallEvent event, @Nullable Throwable failure) {
    event.end();
    if (event.shouldCommit()) {
      event.failure = failure == null ? null : failure.toString();
      event.commit();
    }
  }
}
