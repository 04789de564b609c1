package org.comm4j.core.engine;

import org.comm4j.api.CommBuffer;

/// A buffer of the engine's. Guarded by the engine's lock.
sealed interface EngineBuffer extends CommBuffer permits PlainBuffer, WindowBuffer {
  /// Whether it is gone.
  boolean isClosed();

  /// Ends it with its communicator.
  ///
  /// @param inUse whether a call that was ended may have let peers read it
  void end(boolean inUse);
}
