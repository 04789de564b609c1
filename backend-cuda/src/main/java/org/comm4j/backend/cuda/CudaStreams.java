package org.comm4j.backend.cuda;

import org.comm4j.api.StreamSync;

/// Ordering with the program's streams. Where data goes through the host, what is recorded or
/// waited for is preceded by a wait of the host for what was started before.
final class CudaStreams implements StreamSync {
  private final CudaCommunicator communicator;
  private final CudaRank rank;
  private final CudaDevice device;

  CudaStreams(CudaCommunicator communicator, CudaRank rank) {
    this.communicator = communicator;
    this.rank = rank;
    this.device = rank.device();
  }

  /// An event of the driver.
  private record DriverEvent(CudaRank rank, CudaDevice.Event event) implements Event {
    @Override
    public void close() {
      rank.destroy(event);
    }
  }

  private static CudaDevice.Event of(Event event) {
    if (event instanceof DriverEvent known) {
      if (!known.rank().has(known.event())) {
        throw new IllegalStateException("the event is closed, or its rank's communicators are");
      }
      return known.event();
    }
    throw new IllegalArgumentException(
        "event: %s (expected: one that createEvent() has made)".formatted(event));
  }

  /// One to record, which a device's stream can't do to another device's.
  private CudaDevice.Event own(Event event) {
    CudaDevice.Event known = of(event);
    if (event instanceof DriverEvent(CudaRank by, _) && by.device() != device) {
      throw new IllegalArgumentException(
          "event: made for device %s (expected: one made for device %s, this rank's); other devices can wait for it"
              .formatted(by.device(), device));
    }
    return known;
  }

  @Override
  public Event createEvent() {
    return new DriverEvent(rank, rank.createEvent());
  }

  @Override
  public void recordOnCommunicator(Event event) {
    communicator.record(own(event));
  }

  @Override
  public void record(Event event, long stream) {
    CudaDevice.Event known = own(event);
    checkNotCaptured("record", stream);
    device.record(known, stream);
  }

  /// Who waits for an event of a capture becomes part of the graph, as the communicator's stream
  /// must not; and a capture can't wait for what is outside of it.
  private void checkNotCaptured(String what, long stream) {
    if (device.isCaptured(stream)) {
      throw new IllegalStateException(
          "%s: stream 0x%x, or one that waits for it, is being captured (expected: none that is); do that outside of the capture, since calls can't be part of a graph"
              .formatted(what, stream));
    }
  }

  @Override
  public void communicatorWait(Event event) {
    communicator.calls().await(of(event));
  }

  @Override
  public void streamWait(long stream, Event event) {
    CudaDevice.Event known = of(event);
    checkNotCaptured("streamWait", stream);
    device.awaitIn(stream, known);
  }

  @Override
  public void sync() {
    communicator.sync();
  }
}
