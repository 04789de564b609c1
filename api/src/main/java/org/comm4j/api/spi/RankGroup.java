package org.comm4j.api.spi;

/// A group whose ranks are threads of this JVM.
public interface RankGroup extends AutoCloseable {
  /// {@return how many ranks}
  int size();

  /// {@return a rank's communicator of the whole group; the same object at every call}
  ///
  /// @param rank in `0..size()-1`
  BackendCommunicator communicator(int rank);

  /// Tells the others that a rank has ended without closing: they get a
  /// [org.comm4j.api.PeerFailedException] with this cause.
  ///
  /// @param rank the rank that has ended
  /// @param cause what it threw
  void fail(int rank, Throwable cause);

  /// Closes every rank's communicator and frees what the group holds. Never throws.
  @Override
  void close();
}
