package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.core.transport.PeerMemory;

/// A buffer inside this rank's window: peers read it where it is.
final class WindowBuffer implements EngineBuffer {
  private final Engine engine;
  private final Windows windows;
  private final Windows.Range range;
  private final PeerMemory.Extent extent;
  private final MemorySegment segment;
  private final HostData data;
  private volatile boolean closed;

  private WindowBuffer(
      Engine engine,
      Windows windows,
      Windows.Range range,
      PeerMemory.Extent extent,
      DataType type,
      long count) {
    this.engine = engine;
    this.windows = windows;
    this.range = range;
    this.extent = extent;
    this.segment = extent.segment();
    this.data = CommData.of(type, segment.asSlice(0, type.bytes(count)));
  }

  static WindowBuffer allocate(Engine engine, Windows windows, DataType type, long count) {
    Windows.Range range = windows.take(type.bytes(count));
    WindowBuffer buffer = new WindowBuffer(engine, windows, range, windows.map(range), type, count);
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

  boolean contains(MemorySegment part) {
    long start = segment.address();
    return part.address() >= start
        && part.address() + part.byteSize() <= start + segment.byteSize();
  }

  /// Where in the window a part of this buffer is.
  long windowOffset(MemorySegment part) {
    return range.start() + part.address() - segment.address();
  }

  @Override
  public void close() {
    engine.lock();
    try {
      if (!closed) {
        engine.checkUnused(segment, data);
        release();
        windows.giveBack(range);
      }
    } finally {
      engine.unlock();
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
    windows.giveBack(range);
    return true;
  }

  /// Ends the buffer with its communicator's session.
  void release() {
    extent.close();
    windows.remove(this);
    closed = true;
  }
}
