package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;

/// The size of the windows, `COMM_SHM_WINDOW` and `COMM_LOCAL_WINDOW`: bytes, or a number with a
/// unit (`512MiB`), the same on all ranks.
///
/// A window costs address space, not memory; memory is behind what is used of it. So the default is
/// large: 1 GiB, of which 128 MiB are for the engine's own use and the rest for allocated buffers.
///
/// @param variable the option's name
record WindowOption(String variable) {
  static final WindowOption SHM = new WindowOption("COMM_SHM_WINDOW");
  static final WindowOption LOCAL = new WindowOption("COMM_LOCAL_WINDOW");

  /// The option without the prefix of the backend.
  static final String NAME = "WINDOW";

  private static final long DEFAULT_BYTES = 1L << 30;
  private static final long LEAST_BYTES = 1L << 20;
  private static final long MOST_BYTES = 1L << 40;

  /// What is configured, rounded up to whole pages.
  ///
  /// @throws IllegalArgumentException if that is not a size from 1 MiB to 1 TiB
  long bytes(CommConfig config) {
    return OptionText.of(config, variable)
        .map(text -> text.size(LEAST_BYTES, MOST_BYTES, 1))
        .map(bytes -> BlockLayout.roundUp(bytes, BlockLayout.PAGE_BYTES))
        .orElse(DEFAULT_BYTES);
  }
}
