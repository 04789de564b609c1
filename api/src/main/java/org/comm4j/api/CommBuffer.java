package org.comm4j.api;

import java.lang.foreign.MemorySegment;

/// Memory that a communicator allocated for its own data ([Communicator#allocate]) and that it can
/// move without a copy. Whoever allocated it closes it.
///
/// Any thread may use and close it. Closing is local. A buffer closed while an operation uses it is
/// an [IllegalStateException], and so is any use after it, or after its communicator, was closed.
public interface CommBuffer extends AutoCloseable {
  /// {@return the whole buffer; valid until [#close()]}
  ///
  /// @throws IllegalStateException once the buffer is closed
  CommData data();

  /// {@return the whole buffer, for the host to read and write}
  ///
  /// @throws IllegalStateException once the buffer is closed, or if it is in a device's memory
  default HostData hostData() {
    return switch (data()) {
      case HostData host -> host;
      case DeviceData device ->
          throw new IllegalStateException(
              device + " can't be read by the host; copy it there first");
    };
  }

  /// Copies from the host's memory into the buffer, wherever that is; returns when it is there.
  ///
  /// @param from which element of the buffer becomes the first one
  /// @param source of the buffer's type
  /// @throws IllegalArgumentException if the type is another one, the buffer is too short, or the
  ///   source is closed or another thread's
  /// @throws IllegalStateException once the buffer is closed
  default void write(long from, HostData source) {
    HostData whole = hostData();
    Checks.sameType("source", source, whole);
    MemorySegment target = whole.slice(from, source.count()).segment();
    MemorySegment.copy(source.segment(), 0, target, 0, source.bytes());
  }

  /// Copies from the buffer, wherever that is, into the host's memory; returns when it is there.
  ///
  /// @param from which element of the buffer is the first one
  /// @param target of the buffer's type
  /// @throws IllegalArgumentException if the type is another one, the buffer is too short, or the
  ///   target is read-only, closed or another thread's
  /// @throws IllegalStateException once the buffer is closed
  default void read(long from, HostData target) {
    HostData whole = hostData();
    Checks.sameType("target", target, whole);
    Checks.written("target", target);
    MemorySegment source = whole.slice(from, target.count()).segment();
    MemorySegment.copy(source, 0, target.segment(), 0, target.bytes());
  }

  /// Gives the memory back. Closing twice does nothing.
  ///
  /// @throws IllegalStateException while an operation in flight uses it; it stays open
  /// @throws ConcurrentUseException if a user-defined operator closes it; it stays open
  @Override
  void close();
}
