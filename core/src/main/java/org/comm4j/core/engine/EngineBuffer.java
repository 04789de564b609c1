package org.comm4j.core.engine;

import org.comm4j.api.CommBuffer;

/// A buffer of the engine's. Guarded by the engine's lock.
sealed interface EngineBuffer extends CommBuffer permits PlainBuffer, WindowBuffer {
  /// Whether the user has no access to it any more.
  boolean isClosed();

  /// Ends it with its communicator: the user has no access any more, and the memory goes back
  /// unless another communicator's call uses it.
  ///
  /// @return false if that has to be tried again later
  boolean end();
}
