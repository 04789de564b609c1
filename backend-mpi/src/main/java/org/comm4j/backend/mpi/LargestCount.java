package org.comm4j.backend.mpi;

import org.comm4j.api.CommConfig;

/// The option `COMM_MPI_LARGEST_COUNT`: how much the library is told to count at most. Unless its
/// functions have 64-bit counts these are ints; with a small number the tests go where else only
/// messages beyond 2^31 elements go.
final class LargestCount {
  /// The option without its prefix.
  static final String OPTION = "LARGEST_COUNT";

  private static final String VARIABLE = "COMM_MPI_" + OPTION;

  private LargestCount() {}

  /// @param largeCounts whether the library's counts have 64 bits
  /// @throws IllegalArgumentException if the value is none
  static long of(CommConfig config, boolean largeCounts) {
    String text = config.options().get(VARIABLE);
    if (text == null) {
      return largeCounts ? Long.MAX_VALUE : Integer.MAX_VALUE;
    }
    try {
      int count = Integer.parseInt(text);
      if (count >= 1) {
        return count;
      }
    } catch (NumberFormatException _) {
      // as below
    }
    throw new IllegalArgumentException(
        "%s: '%s' (expected: a count of elements, 1..2147483647; leave it out but for tests)"
            .formatted(VARIABLE, text));
  }
}
