package org.comm4j.backend.aeron;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// `aeron` keeps the contract, here with ranks that are threads; with processes: `comm-cli verify`.
/// Terms are small: they are soon made, and often full.
abstract class AeronContract extends CommunicatorContract {
  private static final String TERM_BYTES = "262144";

  /// What is special where a driver is not the rank's own; the rest goes as where it is, or where
  /// it is shared, both of which are tested every time. With `./verify --full` it is all.
  static final String ABOUT_DRIVERS =
      Boolean.getBoolean("comm4j.full") ? ".*" : ".*(anyArguments|[FLO]\\d).*";

  @Override
  protected CommConfig config() {
    return super.config().toBuilder().option("COMM_AERON_TERM", TERM_BYTES).build();
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new AeronProvider(), size, config);
  }
}
