package org.comm4j.core.engine;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;

/// What others read of this rank's window for as long as they like: regions. A reader says with a
/// frame of its own that it needs one no more, so neither has to have the communicator still.
/// Guarded by the engine's lock.
final class Loans {
  private final Map<Long, Set<Integer>> readers = new HashMap<>();
  private long last;

  /// Lends something.
  ///
  /// @param worldRanks who reads it
  /// @return its number, which no other loan of this rank ever has
  long lend(Collection<Integer> worldRanks) {
    readers.put(++last, new HashSet<>(worldRanks));
    return last;
  }

  /// A rank reads it no more.
  void returned(int worldRank, long number) {
    Set<Integer> left = readers.get(number);
    if (left != null) {
      left.remove(worldRank);
    }
  }

  /// Whether somebody reads it still.
  ///
  /// @param reads which ranks can still read
  boolean isOut(long number, IntPredicate reads) {
    Set<Integer> left = readers.get(number);
    if (left == null) {
      return false;
    }
    left.removeIf(reader -> !reads.test(reader));
    return !left.isEmpty();
  }

  /// Nobody has got to know of it, or may use it.
  void forget(long number) {
    readers.remove(number);
  }
}
