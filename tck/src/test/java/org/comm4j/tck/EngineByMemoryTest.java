package org.comm4j.tck;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;

/// The engine on threads that read each other's memory.
class EngineByMemoryTest extends CommunicatorContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return MemoryGroups.open(size, config, 4096, 16 << 20);
  }
}
