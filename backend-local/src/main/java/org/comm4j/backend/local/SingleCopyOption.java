package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;

/// Whether ranks that are processes may copy from each other's memory by the kernel, instead of
/// through shared memory: `COMM_SHM_SINGLE_COPY`.
enum SingleCopyOption {
  /// Where that takes less time.
  AUTO,
  /// Wherever it can be done.
  ON,
  OFF;

  /// The option without the prefix of the backend.
  static final String NAME = "SINGLE_COPY";

  private static final String VARIABLE = "COMM_SHM_" + NAME;

  /// What is configured.
  ///
  /// @throws IllegalArgumentException if that is none of these
  static SingleCopyOption of(CommConfig config) {
    return OptionText.of(config, VARIABLE)
        .map(text -> text.word(SingleCopyOption.class))
        .orElse(AUTO);
  }
}
