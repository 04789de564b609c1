package org.comm4j.backend.cuda;

/// What is where in the window that each rank has, and that all ranks of the group reach: signals,
/// then lines of little data, then scratch for partial results. The same on all ranks. Offsets are
/// in bytes from the window's beginning. `call.cuh` says how kernels use it.
///
/// @param ranks of the group, 1 to [#MAX_RANKS]
/// @param lineBytes how much data of one rank its lines hold, a multiple of 8
/// @param scratchBytes how much partial result one bank holds, a multiple of 16
record Window(int ranks, long lineBytes, long scratchBytes) {
  static final int MAX_RANKS = 16;

  /// How many blocks a kernel may have at most.
  static final int MAX_BLOCKS = 512;

  private static final int BANKS = 2;

  /// The size of a signal by which a rank tells that it has come; the number of the call is first.
  static final int ENTRY_BYTES = 32;

  private static final int PASS_BYTES = 8;
  private static final int GIVEN_UP_BYTES = 16 + 8 * MAX_RANKS; // this rank, and the others
  private static final int UNIT_BYTES = 16;
  private static final int WORD_BYTES = 8;

  /// Where the signals begin by which ranks tell how far they are; in front are those by which they
  /// tell that they have come.
  static final long PASSES = (long) BANKS * ENTRY_BYTES * MAX_RANKS * MAX_BLOCKS;

  /// Where a rank's kernels leave why they have given up; one that finds something there does not
  /// come.
  static final long BROKEN = PASSES + (long) PASS_BYTES * MAX_RANKS * MAX_BLOCKS;

  private static final int LEFT = 16; // behind it

  Window {
    check("ranks", ranks, 1, ranks >= 1 && ranks <= MAX_RANKS, "1.." + MAX_RANKS);
    check("lineBytes", lineBytes, 0, lineBytes % WORD_BYTES == 0, "a multiple of 8");
    check("scratchBytes", scratchBytes, 0, scratchBytes % UNIT_BYTES == 0, "a multiple of 16");
  }

  private static void check(String name, long value, long least, boolean holds, String expected) {
    if (value < least || !holds) {
      throw new IllegalArgumentException("%s: %d (expected: %s)".formatted(name, value, expected));
    }
  }

  /// Where in a bank the signals begin by which the ranks tell the first block that they have come.
  static long entries(int bank) {
    return (long) bank * ENTRY_BYTES * MAX_RANKS * MAX_BLOCKS;
  }

  /// Where the lines begin.
  long lines() {
    return BROKEN + GIVEN_UP_BYTES;
  }

  /// Where the lines begin that a rank writes in a call; a flag, half the call's number, is in the
  /// upper half of each.
  long linesOf(long number, int writer) {
    long bank = (number & 1) * ranks + writer;
    return lines() + bank * 2 * (WORD_BYTES + lineBytes);
  }

  /// Where another rank leaves that it has given up: what was read of its memory may be wrong.
  static long left(int rank) {
    return BROKEN + LEFT + (long) Long.BYTES * rank;
  }

  /// How many bytes the lines have: of each rank a word for its call and its data, each four bytes
  /// with a flag of four, in two banks.
  long linesBytes() {
    return (WORD_BYTES + lineBytes) * BANKS * ranks * 2;
  }

  /// Where the scratch begins.
  long scratch() {
    return lines() + linesBytes();
  }

  /// The size of the whole window.
  long bytes() {
    return scratch() + BANKS * scratchBytes;
  }

  /// How many bytes the largest part has of an all-reduce of so many in two stages; it must fit
  /// into a bank of scratch.
  static long partBytes(long bytes, int ranks) {
    long units = Math.ceilDiv(bytes, UNIT_BYTES);
    return Math.min(bytes, (Math.ceilDiv(units, ranks) + 1) * UNIT_BYTES);
  }
}
