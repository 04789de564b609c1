package org.comm4j.backend.mpi;

import java.util.BitSet;
import java.util.List;
import org.comm4j.api.Communicator;
import org.comm4j.api.PointToPoint;

/// The ranks of a communicator that have left the session, and how far they had come by then.
/// Guarded by the group's lock.
///
/// A rank that has left is needed by messages, and by collectives in which it had no part yet. What
/// it did of one it did before it left, though the library may still deliver it.
final class Leavers {
  private final int rank;
  private final BitSet left = new BitSet();
  private final long[] collectives;

  /// @param rank this rank, which is still there
  /// @param size of the communicator
  Leavers(int rank, int size) {
    this.rank = rank;
    this.collectives = new long[size];
  }

  /// A rank has left.
  ///
  /// @param collectives how many of the communicator's it has had a part in
  void add(int leaver, long collectives) {
    left.set(leaver);
    this.collectives[leaver] = collectives;
  }

  boolean contains(int peer) {
    return left.get(peer);
  }

  boolean isEmpty() {
    return left.isEmpty();
  }

  /// Those that a collective needs, in ascending order.
  ///
  /// @param number of the collective, from 0
  List<Integer> neededBy(long number) {
    return left.stream().filter(peer -> collectives[peer] <= number).boxed().toList();
  }

  /// Those of some ranks, in their order.
  List<Integer> amongst(List<Integer> ranks) {
    return ranks.stream().filter(left::get).toList();
  }

  /// Those that a message needs, in ascending order.
  List<Integer> neededBy(PointToPoint message) {
    BitSet needed = new BitSet();
    switch (message) {
      case PointToPoint.Send send -> needed.set(send.destination());
      case PointToPoint.Receive receive -> addSource(needed, receive.source());
      case PointToPoint.SendReceive both -> {
        needed.set(both.destination());
        addSource(needed, both.source());
      }
      case PointToPoint.Probe probe -> addSource(needed, probe.source());
    }
    needed.and(left);
    return needed.stream().boxed().toList();
  }

  /// Of ANY_SOURCE one of the others will do.
  private void addSource(BitSet needed, int source) {
    if (source != Communicator.ANY_SOURCE) {
      needed.set(source);
    } else if (left.cardinality() == collectives.length - 1) {
      needed.set(0, collectives.length);
      needed.clear(rank);
    }
  }
}
