package org.comm4j.api.spi;

/// A group whose ranks are threads of this JVM.
public interface RankGroup extends AutoCloseable {
  /// How many ranks.
  int size();

  /// A rank's communicator of the whole group; the same object at every call.
  BackendCommunicator communicator(int rank);

  /// Tells the others that a rank has ended without closing: they get a
  /// [org.comm4j.api.PeerFailedException] with this cause.
  void fail(int rank, Throwable cause);

  /// Closes every rank's communicator and frees what the group holds. Never throws.
  @Override
  void close();
}
