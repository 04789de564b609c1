package org.comm4j.api;

/// Memory of their own that the ranks of a host have let each other's devices reach
/// ([SharedMemoryProvider#register]): the pointers that a program's own kernels need to read and
/// write their peers' memory.
///
/// When such a kernel may do so, the program's ranks settle among themselves, for example by
/// barriers. Any thread may ask for data; the close is for the thread that calls the communicator.
public interface RegisteredMemory extends AutoCloseable {
  /// {@return a rank's data, where this rank's device reaches it; valid until [#close()]}
  ///
  /// @param rank of the node group, in `0..size()-1`
  /// @throws IllegalStateException once this is closed
  DeviceData data(int rank);

  /// Ends it; a collective of the node group. What a program has its devices do with others' memory
  /// must have ended. Collectives on devices that are in flight in this process, of any
  /// communicator, may be waited for. Afterwards nobody reaches this rank's memory any more, and it
  /// may be freed. Closing twice does nothing.
  ///
  /// @throws CommException if another rank has failed or does not come; closed all the same, but
  ///   who is alive may still reach this rank's memory until it has closed, or ended
  /// @throws ClosedException if the rank's last communicator was closed before, so that others
  ///   can't be awaited; closed all the same
  @Override
  void close();
}
