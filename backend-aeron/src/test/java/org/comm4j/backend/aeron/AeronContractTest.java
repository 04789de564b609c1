package org.comm4j.backend.aeron;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// `aeron` keeps the contract, here with ranks that are threads, each with a driver of its own;
/// with processes: `comm-cli verify`.
class AeronContractTest extends CommunicatorContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new AeronProvider(), size, config);
  }
}
