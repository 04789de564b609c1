package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.SharedMemoryContract;

/// The rules of shared memory with three ranks on one host and two on another.
class HostsSharedMemoryTest extends SharedMemoryContract {
  @Override
  protected int size() {
    return 5;
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return HostsContractTest.group(size, config);
  }
}
