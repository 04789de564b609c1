package org.comm4j.backend.aeron;

import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.EpochClock;

/// The clock by which our media drivers and their clients judge each other's silence. It is the
/// same in all processes of a host, and nobody sets it: by the wall clock a step of an hour would
/// end every rank.
final class SteadyClock {
  /// Far from 0, which a client leaves behind to say that it has closed.
  private static final long OFFSET_MS = 1L << 41;

  static final EpochClock EPOCH =
      () -> OFFSET_MS + TimeUnit.NANOSECONDS.toMillis(System.nanoTime());

  private SteadyClock() {}
}
