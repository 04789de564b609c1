package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;

/// A buffer inside this rank's window: peers read it where it is.
final class WindowBuffer extends EngineBuffer {
  private final Windows windows;
  private final Windows.Part part;

  private WindowBuffer(
      Engine engine, Windows windows, Windows.Part part, DataType type, long count) {
    super(engine, part.segment(), type, count);
    this.windows = windows;
    this.part = part;
  }

  static WindowBuffer allocate(Engine engine, Windows windows, DataType type, long count) {
    Windows.Part part = windows.take(type.bytes(count));
    WindowBuffer buffer = new WindowBuffer(engine, windows, part, type, count);
    windows.add(buffer);
    return buffer;
  }

  boolean contains(MemorySegment other) {
    long start = segment.address();
    return other.address() >= start
        && other.address() + other.byteSize() <= start + segment.byteSize();
  }

  /// Where in the window a part of this buffer is.
  long windowOffset(MemorySegment inside) {
    return part.start() + inside.address() - segment.address();
  }

  @Override
  void release() {
    part.extent().close();
    windows.remove(this);
    windows.giveBack(part);
  }
}
