package org.comm4j.api;

/// Memory that the ranks of one host share: one copy of a large table for all of them.
///
/// Got from [Communicator#sharedMemory()]; the *node group* is the communicator's ranks on this
/// host. On a group of one a region is plain memory.
public interface SharedMemoryProvider {
  /// {@return the node group}
  NodeCommunicator splitLocal();

  /// {@return whether this rank is the node group's rank 0, which populates regions}
  default boolean isLeader() {
    return splitLocal().rank() == 0;
  }

  /// Makes a region; a collective of the node group. The storage is the leader's.
  ///
  /// @param type what the elements are, the same on every rank
  /// @param count how many, the same on every rank; may be 0
  /// @return the region, allocated; every rank closes it
  /// @throws MismatchedCallException if ranks disagree
  /// @throws TransportFailedException on every rank, if there is no space; the message names the
  ///   place
  SharedRegion createRegion(DataType type, long count);
}
