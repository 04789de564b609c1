package org.comm4j.api;

/// Orders a communicator's operations with a program's own work on a device, without stopping the
/// host. A stream is named by its raw handle in the device's library.
///
/// Its calls are the communicator's: one thread at a time makes them, and a [ClosedException] is
/// thrown when that is closed, a [CommException] when it is broken. An event of another backend or
/// device is an [IllegalArgumentException], a closed one an [IllegalStateException].
///
/// The usual order: record an event on the compute stream, let the communicator wait for it, start
/// the operation, record an event on the communicator, let the compute stream wait for that.
public interface StreamSync {
  /// A point in the work of a stream. Closing it while a stream still waits for it is safe, and
  /// where its rank has closed all its communicators nothing is left to close.
  interface Event extends AutoCloseable {
    @Override
    void close();
  }

  /// Makes an event without timing.
  ///
  /// @return the event, to be closed by the caller
  Event createEvent();

  /// Puts the event behind what has been started on the communicator.
  ///
  /// @param event made by [#createEvent()] of a rank that has this device
  void recordOnCommunicator(Event event);

  /// Puts the event behind what has been queued on a stream.
  ///
  /// @param event made by [#createEvent()] of a rank that has this device
  /// @param stream the stream's raw handle
  /// @throws IllegalStateException if the stream is being captured for a graph, which no operation
  ///   can be part of; the communicator stays usable
  void record(Event event, long stream);

  /// Makes the communicator's later operations wait for the event.
  ///
  /// @param event made by [#createEvent()]
  void communicatorWait(Event event);

  /// Makes a stream's later work wait for the event.
  ///
  /// @param stream the stream's raw handle
  /// @param event made by [#createEvent()]
  /// @throws IllegalStateException if the stream is being captured for a graph, which can't wait
  ///   for what is outside of it; the communicator stays usable
  void streamWait(long stream, Event event);

  /// Makes the host wait for everything started on the communicator.
  void sync();
}
