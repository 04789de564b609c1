package org.comm4j.api;

/// Memory that a communicator allocated for its own data ([Communicator#allocate]) and that it can
/// move without a copy. Whoever allocated it closes it.
///
/// Closing is local. A buffer closed while an operation uses it is an [IllegalStateException], and
/// so is any use after it, or after its communicator, was closed.
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

  /// Gives the memory back. Closing twice does nothing.
  ///
  /// @throws IllegalStateException while an operation in flight uses it; it stays open
  @Override
  void close();
}
