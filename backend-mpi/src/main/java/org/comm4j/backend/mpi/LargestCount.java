package org.comm4j.backend.mpi;

import org.comm4j.api.CommConfig;

/// The option `COMM_MPI_LARGEST_COUNT`: how much the library is told to count at most. Its counts
/// are ints; with a small number the tests go where else only messages beyond 2^31 elements go.
final class LargestCount {
  /// The option without its prefix.
  static final String OPTION = "LARGEST_COUNT";

  private static final String VARIABLE = "COMM_MPI_" + OPTION;

  private LargestCount() {}

  /// @throws IllegalArgumentException if the value is none
  static int of(CommConfig config) {
    String text = config.options().get(VARIABLE);
    if (text == null) {
      return Integer.MAX_VALUE;
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
