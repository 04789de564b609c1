package org.comm4j.backend.aeron;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.agrona.DirectBuffer;

/// The terms of one log as segments; there are three, used in turn.
final class Terms {
  private static final int TERMS = 3;

  private final ByteBuffer[] buffers = new ByteBuffer[TERMS];
  private final MemorySegment[] segments = new MemorySegment[TERMS];
  private int next;

  /// The memory that a buffer of Aeron's is a view of.
  MemorySegment of(DirectBuffer view) {
    ByteBuffer buffer = view.byteBuffer();
    for (int i = 0; i < TERMS; i++) {
      if (buffers[i] == buffer) {
        return segments[i];
      }
    }
    MemorySegment segment = MemorySegment.ofBuffer(buffer.duplicate().clear());
    buffers[next] = buffer;
    segments[next] = segment;
    next = (next + 1) % TERMS;
    return segment;
  }
}
