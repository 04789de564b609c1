package org.comm4j.tck;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;

/// The engine's shared memory.
class EngineSharedMemoryTest extends SharedMemoryContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return MemoryGroups.open(size, config, 4096, 16 << 20);
  }
}
