package org.comm4j.backend.local;

import org.comm4j.core.transport.PeerMemory;

/// Where things lie in the block of memory that each rank owns. All ranks compute the same one.
///
///     0          the owner sleeps: 1, else 0; ranks that have something for it look here
///     64         one bit per rank that has ever offered something to the owner
///     …          one line per peer: how many of the owner's messages it has taken
///     …          one line that tells peers how to read the owner's memory ([SingleCopy])
///     …          where each of its loans begins ([org.comm4j.core.transport.PeerMemory#LOANS])
///     …          one ring per peer for what the owner offers to it: slots, then data
///     …          the window of [org.comm4j.core.transport.PeerMemory]
///
/// Blocks are sparse: memory is behind the control lines, behind the rings of pairs that have talked,
/// and behind what was reserved of the window. A ring has 36 KiB to 2 MiB, so that the rings of a rank
/// that talks to everybody stay below 5 MiB up to 128 peers:
///
///     data = 4 MiB / peers, as a power of two in 32 KiB..2 MiB; slots = data / 1 KiB in 64..256
///
/// With few peers a ring is larger than the cache that a core has for itself: what the reader has
/// lately read is no longer there when it is written again, which would take four times as long.
///
/// A rank often looks at the same place of all blocks, so these begin at different places of a page:
/// if they did not, all such lines would compete for the eight ways of one set of its cache.
///
/// @param ranks how many ranks share memory
/// @param windowBytes the size of a window, a multiple of [#PAGE_BYTES]
record BlockLayout(int ranks, long windowBytes) {
  /// The unit in which memory is reserved: a page on x86-64. Of larger ones, up to 64 KiB on
  /// aarch64, the kernel gives as many as these lie in.
  static final long PAGE_BYTES = 4 << 10;

  /// What two cores can't share without passing it to and fro.
  static final int LINE_BYTES = 64;

  /// The unit of huge pages on x86-64 and, with 4 KiB pages, on aarch64.
  static final long HUGE_PAGE_BYTES = 2 << 20;

  static final long SLEEPING_AT = 0;
  static final long CONNECTED_AT = LINE_BYTES;

  private static final long RINGS_TOTAL_BYTES = 4 << 20;

  BlockLayout {
    assert ranks >= 1;
    assert windowBytes >= 0 && windowBytes % PAGE_BYTES == 0;
  }

  /// The memory for payloads in one ring, a power of two.
  int dataBytes() {
    long share = Long.highestOneBit(RINGS_TOTAL_BYTES / Math.max(1, ranks - 1));
    return Math.clamp(share, 32 << 10, 2 << 20);
  }

  /// How many messages one ring holds, a power of two.
  int slots() {
    return Math.clamp(dataBytes() >> 10, 64, 256);
  }

  /// A quarter of the data may be read and not yet given back, a payload may leave its own size
  /// unused at the end of the data; an eighth lets several be under way. What is larger is cut, so
  /// that it is read while it is written.
  int maxPayloadBytes() {
    return Math.min(dataBytes() >> 3, 32 << 10);
  }

  /// The word of [#CONNECTED_AT] that has a rank's bit.
  static long connectedAt(int rank) {
    return CONNECTED_AT + (rank >> 6) * (long) Long.BYTES;
  }

  /// How many words have bits.
  int connectedWords() {
    return (ranks + 63) >> 6;
  }

  /// Where `peer` writes how many of the owner's messages it has taken.
  long consumedAt(int peer) {
    return roundUp(CONNECTED_AT + connectedWords() * (long) Long.BYTES, LINE_BYTES)
        + (long) peer * LINE_BYTES;
  }

  /// A line for [SingleCopy].
  long introductionAt() {
    return consumedAt(ranks);
  }

  /// The address of one of the owner's loans, in its process.
  long loanAt(int loan) {
    return introductionAt() + LINE_BYTES + (long) loan * Long.BYTES;
  }

  /// The control lines, from 0.
  long controlBytes() {
    return roundUp(loanAt(PeerMemory.LOANS), PAGE_BYTES);
  }

  /// The ring for what the owner offers to `peer`.
  long ringAt(int peer) {
    return controlBytes() + peer * ringStrideBytes();
  }

  /// What is used of a ring: slots, then data.
  long ringBytes() {
    return slots() * (long) LINE_BYTES + dataBytes();
  }

  private long ringStrideBytes() {
    return roundUp(ringBytes(), PAGE_BYTES);
  }

  /// Where the window begins: near the beginning of a huge page.
  long windowAt() {
    return roundUp(ringAt(ranks), HUGE_PAGE_BYTES);
  }

  /// The whole block.
  long blockBytes() {
    return windowAt() + windowBytes;
  }

  /// Where a rank's block begins in its storage.
  static long blockAt(int rank) {
    return (rank & 31) * 2L * LINE_BYTES;
  }

  /// What has to be mapped for a block.
  long storageBytes() {
    return roundUp(blockBytes() + PAGE_BYTES, HUGE_PAGE_BYTES);
  }

  static long roundUp(long bytes, long unit) {
    return (bytes + unit - 1) & -unit;
  }
}
