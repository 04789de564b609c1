package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// `local` keeps the contract.
class LocalContractTest extends CommunicatorContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new LocalProvider(), size, config);
  }
}
