package org.comm4j.backend.aeron;

import java.util.List;
import org.comm4j.api.CommConfig;

/// The whole contract where rank 0 runs the media driver of all, and messages go through memory;
/// with fewer numbers of ranks than where each has its own.
class SharedDriverContractTest extends AeronContract {
  @Override
  protected CommConfig config() {
    return super.config().toBuilder().option("COMM_AERON_DRIVER", "shared").build();
  }

  @Override
  protected int size() {
    return 3;
  }

  @Override
  protected List<Integer> otherSizes() {
    return List.of(5);
  }
}
