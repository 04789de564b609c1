package org.comm4j.core.engine;

/// How every rank's window is laid out: flags of all lanes and one of messages, then the lanes' staging
/// areas, then room for allocated buffers.
///
///     ┌ flags ────────────────────────┬ staging ──────────────────┬ buffers ───────────────┐
///     │ lane 0 │ lane 1 │ … │ messages │ lane 0: A, B │ lane 1: … │ extents of allocate()  │
///     └───────────────────────────────┴───────────────────────────┴────────────────────────┘
///
/// A *lane* serves one communicator at a time. Its flags are [#SLOTS] slots for what was published, which
/// take turns, and one that says up to where this rank is done with what others published. A slot has
/// room for [#INLINE_BYTES] of data behind its flag, so that little data comes with the flag, in one
/// cache line; larger data lies in the staging areas A and B, which take turns too.
///
/// @param windowBytes of each window
/// @param stageBytes of one staging area; 0 if the window is too small for lanes
record WindowLayout(long windowBytes, long stageBytes) {
  static final int LANES = 64;
  static final int SLOTS = 4; // a power of two, at least as many as areas
  static final int AREAS = 2; // a power of two
  static final int SLOT_BYTES = 1024;

  /// What a slot begins with (flag, digest, place), and ends with: what was called, in a line of
  /// its own, which is read only when ranks disagree.
  static final int INLINE_AT = 24;

  static final int CALL_AT = SLOT_BYTES - 128;
  static final int INLINE_BYTES = CALL_AT - INLINE_AT;
  static final int LANE_FLAG_BYTES = (SLOTS + 1) * SLOT_BYTES;

  /// Where a rank says that it has taken back a message which a peer may have been reading.
  static final long WITHDRAWN_AT = (long) LANES * LANE_FLAG_BYTES;

  /// With a cache line for the last one; peers look at all of them
  /// ([org.comm4j.core.transport.PeerMemory#READY_BYTES]).
  static final long FLAG_BYTES = WITHDRAWN_AT + 64;

  static final long PAGE_BYTES = 4096;

  // The largest area: both together are more than the cache that a peer's core has for itself, so
  // that its lines have left that when a place is used again (Lane.putStaged).
  private static final long MOST_STAGE_BYTES = 1L << 20;
  private static final long LEAST_STAGE_BYTES = PAGE_BYTES;

  static WindowLayout of(long windowBytes) {
    // staging gets at most half of the window
    long share = windowBytes / 2 / LANES / AREAS;
    long stage = Math.min(MOST_STAGE_BYTES, share / PAGE_BYTES * PAGE_BYTES);
    return new WindowLayout(windowBytes, stage < LEAST_STAGE_BYTES ? 0 : stage);
  }

  static WindowLayout withoutLanes(long windowBytes) {
    return new WindowLayout(windowBytes, 0);
  }

  boolean hasLanes() {
    return stageBytes > 0;
  }

  long flags(int lane) {
    return (long) lane * LANE_FLAG_BYTES;
  }

  long published(int lane, long index) {
    return flags(lane) + (index & (SLOTS - 1)) * SLOT_BYTES;
  }

  long done(int lane) {
    return flags(lane) + (long) SLOTS * SLOT_BYTES;
  }

  long staging(int lane, long index) {
    return stagingStart() + ((long) AREAS * lane + (index & (AREAS - 1))) * stageBytes;
  }

  long buffersStart() {
    return hasLanes() ? stagingEnd() : 0;
  }

  private long stagingEnd() {
    return stagingStart() + (long) AREAS * LANES * stageBytes;
  }

  private static long stagingStart() {
    return (FLAG_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  }
}
