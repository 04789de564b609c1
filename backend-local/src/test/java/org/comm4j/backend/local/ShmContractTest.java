package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// `shm` keeps the contract, here with ranks that are threads; with processes: `comm-cli verify`.
class ShmContractTest extends CommunicatorContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new ShmProvider(), size, config);
  }
}
