package org.comm4j.backend.aeron;

import org.comm4j.api.CommConfig;

/// The contract where rank 0 runs the media driver of all, and messages go through memory.
class SharedDriverContractTest extends AeronContract {
  @Override
  protected CommConfig config() {
    return super.config().toBuilder().option("COMM_AERON_DRIVER", "shared").build();
  }

  @Override
  protected String wanted() {
    return ABOUT_DRIVERS;
  }
}
