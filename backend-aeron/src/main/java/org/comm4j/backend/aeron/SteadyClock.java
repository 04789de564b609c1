package org.comm4j.backend.aeron;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.agrona.concurrent.EpochClock;
import org.agrona.concurrent.NanoClock;

/// The clocks by which our media drivers judge the silence of others.
final class SteadyClock {
  /// Far from 0, which a client leaves behind to say that it has closed.
  private static final long OFFSET_MS = 1L << 41;

  /// For drivers and their clients. It is the same in all processes of a host, and nobody sets it:
  /// by the wall clock a step of an hour would end every rank.
  static final EpochClock EPOCH =
      () -> OFFSET_MS + TimeUnit.NANOSECONDS.toMillis(System.nanoTime());

  private SteadyClock() {}

  /// For the peers of a driver. It stands still while the driver is stopped, as where somebody
  /// stops the whole job and continues it: then nobody has said anything that it could have heard.
  /// Of two threads that ask, one has to know of the other's end.
  ///
  /// @param mostNs how long a driver may be without a turn; what is longer is a stop
  /// @param source in nanoseconds
  static NanoClock withoutStops(long mostNs, LongSupplier source) {
    return new NanoClock() {
      private long lastNs = source.getAsLong();
      private long stoppedNs;

      @Override
      public long nanoTime() {
        long nowNs = source.getAsLong();
        stoppedNs += Math.max(0, nowNs - lastNs - mostNs);
        lastNs = nowNs;
        return nowNs - stoppedNs;
      }
    };
  }
}
