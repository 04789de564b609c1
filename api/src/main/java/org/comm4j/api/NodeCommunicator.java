package org.comm4j.api;

/// The least that a group of ranks offers: who am I, how many are we, and a barrier.
public interface NodeCommunicator {
  /// {@return this rank, in `0..size()-1`}
  int rank();

  /// {@return the number of ranks, at least 1}
  int size();

  /// Returns when every rank of the group has called it.
  ///
  /// @throws CommException if the group is or gets broken
  void barrier();
}
