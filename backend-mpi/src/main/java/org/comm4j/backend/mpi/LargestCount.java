package org.comm4j.backend.mpi;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;

/// How much the library is told to count at most: what an int counts, or the option
/// `COMM_MPI_LARGEST_COUNT`. With a small number the tests go where else only messages beyond 2^31
/// elements go.
///
/// That a library's functions have 64-bit counts does not make them right with these: beyond 2^31
/// MPICH 4.0.2 refuses a part of an all-gather-v, and its reduce-scatter is wrong without a word.
/// So only those go beyond that a long test has there ([#tried]).
final class LargestCount {
  /// The option without its prefix.
  static final String OPTION = "LARGEST_COUNT";

  private static final String VARIABLE = "COMM_MPI_" + OPTION;

  /// Blocks of 1 would be as many as their elements.
  private static final int LEAST = 2;

  private LargestCount() {}

  /// What all-reduces and the messages that collectives are made of count at most, as
  /// `MpiJobTest.collective_beyondInts_isWhole` has them. What is added here is added there.
  ///
  /// @param largeCounts whether the library's counts have 64 bits
  /// @throws IllegalArgumentException if the option's value is not valid
  static long tried(CommConfig config, boolean largeCounts) {
    boolean isFree = largeCounts && !config.options().containsKey(VARIABLE);
    return isFree ? Long.MAX_VALUE : of(config);
  }

  /// What all else counts at most.
  ///
  /// @throws IllegalArgumentException if the option's value is not valid
  static int of(CommConfig config) {
    return OptionText.of(config, VARIABLE)
        .map(text ->
            text.number(
                LEAST, Integer.MAX_VALUE, "it is meant for tests, leave it unset otherwise"))
        .orElse(Integer.MAX_VALUE);
  }
}
