package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;

/// A buffer of the engine's. Guarded by the engine's lock.
abstract sealed class EngineBuffer implements CommBuffer permits PlainBuffer, WindowBuffer {
  private final Engine engine;
  final MemorySegment segment;
  private final CommData data;
  private volatile boolean closed;

  /// @param segment all that goes back with it, at least as many bytes as the elements have
  EngineBuffer(Engine engine, MemorySegment segment, DataType type, long count) {
    this.engine = engine;
    this.segment = segment;
    this.data = CommData.of(type, segment.asSlice(0, type.bytes(count)));
  }

  @Override
  public final CommData data() {
    if (closed) {
      throw new IllegalStateException("buffer " + data + " is closed");
    }
    return data;
  }

  @Override
  public final void close() {
    try (var _ = engine.lock()) {
      if (!closed) {
        engine.checkUnused(segment, "buffer", data);
        release();
        closed = true;
      }
    }
  }

  /// Whether the user has no access to it any more.
  final boolean isClosed() {
    return closed;
  }

  /// Ends it with its communicator: the user has no access any more, and the memory goes back
  /// unless another communicator's call uses it.
  ///
  /// @return false if that has to be tried again later
  final boolean end() {
    closed = true;
    if (engine.userOf(segment) != null) {
      return false;
    }
    release();
    return true;
  }

  /// Gives the memory back.
  ///
  /// @throws IllegalStateException if a thread of the user's does I/O with it
  abstract void release();
}
