package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.SharedMemoryContract;
import org.comm4j.tck.ThreadGroups;

/// The shared memory of `local`.
class LocalSharedMemoryTest extends SharedMemoryContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new LocalProvider(), size, config);
  }
}
