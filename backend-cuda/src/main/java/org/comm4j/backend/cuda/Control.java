package org.comm4j.backend.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.BitSet;

/// How the host and its kernels speak while they run: a few words of the host's memory that the
/// device reaches, laid out as `call.cuh` has them. Thread-safe.
///
/// @param segment [#BYTES] zeroed bytes
record Control(MemorySegment segment) {
  static final int BYTES = 32 + 8 * Window.MAX_RANKS;

  private static final VarHandle WORD = JAVA_LONG.varHandle();
  private static final int ABORT = 0;
  private static final int OUTCOME = 8;
  private static final int NUMBER = 16;
  private static final int CONCERNS = 32;

  /// Why a kernel has left.
  enum Outcome {
    /// At its end.
    DONE,
    /// Because the host has said so.
    ABORTED,
    /// Because it has waited for too long.
    LATE,
    /// Because a peer has called something else.
    MISMATCH,
    /// Because a peer has left, so that what was read of its memory may be wrong.
    LEFT
  }

  /// Makes the kernels leave that wait for a peer, now and later. One that waits for none does not
  /// look.
  void abort() {
    WORD.setVolatile(segment, ABORT, 1L);
  }

  /// {@return why a kernel has left; where several have for different reasons, one of them}
  Outcome outcome() {
    return Outcome.values()[(int) (long) WORD.getVolatile(segment, OUTCOME)];
  }

  /// {@return the number of the first call that a kernel has left early; 0 if there is none}
  long number() {
    return (long) WORD.getVolatile(segment, NUMBER);
  }

  /// {@return the ranks that the outcome concerns: those that were waited for in vain, that called
  /// something else, or that have left}
  BitSet concerns() {
    long outcome = outcome().ordinal();
    var ranks = new BitSet();
    for (int rank = 0; rank < Window.MAX_RANKS && outcome != 0; rank++) {
      ranks.set(rank, (long) WORD.getVolatile(segment, CONCERNS + 8L * rank) == outcome);
    }
    return ranks;
  }
}
