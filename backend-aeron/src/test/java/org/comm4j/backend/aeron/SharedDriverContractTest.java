package org.comm4j.backend.aeron;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// `aeron` keeps the contract where rank 0 runs the media driver of all, and messages go through
/// memory.
class SharedDriverContractTest extends CommunicatorContract {
  @Override
  protected CommConfig config() {
    return super.config().toBuilder().option("COMM_AERON_DRIVER", "shared").build();
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new AeronProvider(), size, config);
  }
}
