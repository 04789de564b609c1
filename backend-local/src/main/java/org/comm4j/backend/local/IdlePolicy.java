package org.comm4j.backend.local;

/// What a rank does in [SharedMemoryTransport#park] before it sleeps. A sleeper needs some 20 µs to
/// be back, so sleeping pays only when nothing has come for longer than that. With more ranks than
/// processors spinning keeps the peer that is waited for from running.
///
/// @param spinNanos for how long it spins
/// @param yieldNanos until when it yields, counted from the beginning
/// @param sleepNanos how long a sleep lasts at most, so that a thread that is interrupted while it
///   sleeps in the kernel is not kept
record IdlePolicy(long spinNanos, long yieldNanos, long sleepNanos) {
  /// A new wait begins when the last park was longer ago than this: nothing was parked for
  /// meanwhile.
  static final long GAP_NANOS = 20_000;

  private static final long YIELD_NANOS = 50_000;
  private static final long SLEEP_NANOS = 20_000_000;

  static IdlePolicy of(int ranksOnHost, int processors) {
    long spinNanos = ranksOnHost > processors ? 0 : 20_000;
    return new IdlePolicy(spinNanos, YIELD_NANOS, SLEEP_NANOS);
  }
}
