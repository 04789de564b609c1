package org.comm4j.api;

import java.util.Objects;

/// The one [StreamSync] that users see: what it does is a call on its communicator, which one
/// thread at a time may make, also where that is broken, and nobody when it is closed.
final class CheckedStreamSync implements StreamSync {
  private final CheckedCommunicator communicator;
  private final StreamSync backend;

  CheckedStreamSync(CheckedCommunicator communicator, StreamSync backend) {
    this.communicator = communicator;
    this.backend = backend;
  }

  @Override
  public Event createEvent() {
    return communicator.insideAlsoBroken("createEvent", backend::createEvent);
  }

  @Override
  public void recordOnCommunicator(Event event) {
    Objects.requireNonNull(event, "event");
    communicator.insideAlsoBroken(
        "recordOnCommunicator", () -> backend.recordOnCommunicator(event));
  }

  @Override
  public void record(Event event, long stream) {
    Objects.requireNonNull(event, "event");
    communicator.insideAlsoBroken("record", () -> backend.record(event, stream));
  }

  @Override
  public void communicatorWait(Event event) {
    Objects.requireNonNull(event, "event");
    communicator.insideAlsoBroken("communicatorWait", () -> backend.communicatorWait(event));
  }

  @Override
  public void streamWait(long stream, Event event) {
    Objects.requireNonNull(event, "event");
    communicator.insideAlsoBroken("streamWait", () -> backend.streamWait(stream, event));
  }

  @Override
  public void sync() {
    communicator.sync();
  }
}
