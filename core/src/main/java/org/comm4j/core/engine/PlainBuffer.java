package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;

/// A buffer where peers can't read memory anyway: native memory of its own.
final class PlainBuffer implements CommBuffer {
  private final Engine engine;
  private final Arena arena = Arena.ofShared();
  private final CommData data;
  private final MemorySegment segment;

  PlainBuffer(Engine engine, DataType type, long count) {
    this.engine = engine;
    this.segment = arena.allocate(type.bytes(count), 64);
    this.data = CommData.of(type, segment);
  }

  @Override
  public CommData data() {
    if (!segment.scope().isAlive()) {
      throw new IllegalStateException("buffer " + data + " is closed");
    }
    return data;
  }

  @Override
  public void close() {
    engine.lock();
    try {
      if (segment.scope().isAlive()) {
        engine.checkUnused(segment, data);
        arena.close();
      }
    } finally {
      engine.unlock();
    }
  }
}
