package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;

/// A buffer inside this rank's window: peers read it where it is.
final class WindowBuffer implements EngineBuffer {
  private final Engine engine;
  private final Windows windows;
  private final Windows.Part part;
  private final MemorySegment segment;
  private final HostData data;
  private volatile boolean closed;

  private WindowBuffer(
      Engine engine, Windows windows, Windows.Part part, DataType type, long count) {
    this.engine = engine;
    this.windows = windows;
    this.part = part;
    this.segment = part.segment();
    this.data = CommData.of(type, segment.asSlice(0, type.bytes(count)));
  }

  static WindowBuffer allocate(Engine engine, Windows windows, DataType type, long count) {
    Windows.Part part = windows.take(type.bytes(count));
    WindowBuffer buffer = new WindowBuffer(engine, windows, part, type, count);
    windows.add(buffer);
    return buffer;
  }

  @Override
  public CommData data() {
    if (closed) {
      throw new IllegalStateException("buffer " + data + " is closed");
    }
    return data;
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
  public void close() {
    try (var _ = engine.lock()) {
      if (!closed) {
        engine.checkUnused(segment, "buffer", data);
        release();
        windows.giveBack(part);
      }
    }
  }

  @Override
  public boolean isClosed() {
    return closed;
  }

  @Override
  public boolean end() {
    closed = true;
    if (engine.userOf(segment) != null) {
      return false;
    }
    release();
    windows.giveBack(part);
    return true;
  }

  /// Ends the buffer with its communicator's session.
  void release() {
    part.extent().close();
    windows.remove(this);
    closed = true;
  }
}
