package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.core.engine.CallSignature;

/// The stage before each collective with `COMM_CHECK=full`: every rank says what it calls, and who
/// finds a difference throws.
final class Agreement {
  private static final int LONGS = 4;

  private final MpiGroup group;
  private final CallSignature signature;
  private final long number;
  private final MemorySegment mine;
  private final MemorySegment all;

  private Agreement(MpiGroup group, CallMemory memory, CallSignature signature, long number) {
    this.group = group;
    this.signature = signature;
    this.number = number;
    this.mine = memory.take(Long.BYTES * LONGS);
    this.all = memory.take((long) Long.BYTES * LONGS * group.size());
    long[] words = {number, signature.what(), signature.count(), signature.detail()};
    MemorySegment.copy(words, 0, mine, JAVA_LONG, 0, LONGS);
  }

  /// @param memory where the ranks' words go
  static Stage stage(MpiGroup group, CallMemory memory, CallSignature signature, long number) {
    var agreement = new Agreement(group, memory, signature, number);
    return Collectives.gatherAll(
            agreement.mine, agreement.all, LONGS, Long.BYTES, group.collectives())
        .then(agreement::check);
  }

  private void check() {
    for (int peer = 0; peer < group.size(); peer++) {
      long sequence = word(peer, 0);
      var theirs = new CallSignature(word(peer, 1), word(peer, 2), word(peer, 3));
      if (sequence != number || !theirs.equals(signature)) {
        throw new MismatchedCallException(
            signature.difference(group.rank(), peer, sequence, theirs.what(), theirs.count()));
      }
    }
  }

  private long word(int peer, int i) {
    return all.getAtIndex(JAVA_LONG, (long) LONGS * peer + i);
  }
}
