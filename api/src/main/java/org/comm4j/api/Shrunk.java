package org.comm4j.api;

import java.util.List;

/// What [Communicator#shrink()] made.
///
/// @param communicator the survivors' communicator; whoever shrank closes it
/// @param oldRanks for each new rank the rank it had in the broken communicator, ascending
/// @param epoch how often the session has shrunk, from 1
public record Shrunk(Communicator communicator, List<Integer> oldRanks, int epoch) {
  /// Copies the collections.
  public Shrunk {
    oldRanks = List.copyOf(oldRanks);
  }
}
