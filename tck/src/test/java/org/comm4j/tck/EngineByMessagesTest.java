package org.comm4j.tck;

import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;

/// The engine on threads, by messages alone.
class EngineByMessagesTest extends CommunicatorContract {
  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return MemoryGroups.open(size, config, 1024, 0);
  }
}
