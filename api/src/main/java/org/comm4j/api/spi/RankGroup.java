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

  /// Takes a rank out that has released its last communicator or has ended: others that still need
  /// it get a [org.comm4j.api.PeerFailedException] that says it left, and nobody else is concerned.
  /// What it has sent still arrives. Never throws; after [#fail] and a second time it does nothing.
  ///
  /// @param rank the rank that leaves
  void leave(int rank);

  /// Closes every rank's communicator and frees what the group holds. Never throws.
  @Override
  void close();
}
