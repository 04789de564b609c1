package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.core.transport.PeerMemory;

/// The windows of two ranks of one process, without room for buffers.
class TwoWindows implements PeerMemory {
  private static final long BYTES = 1 << 20;

  private final MemorySegment[] windows;

  TwoWindows(Arena arena) {
    windows =
        new MemorySegment[] {
          arena.allocate(BYTES, WindowLayout.PAGE_BYTES),
          arena.allocate(BYTES, WindowLayout.PAGE_BYTES)
        };
  }

  /// The same windows, for what else differs between the ranks.
  TwoWindows(TwoWindows same) {
    windows = same.windows;
  }

  @Override
  public final long windowBytes() {
    return BYTES;
  }

  @Override
  public final MemorySegment window(int rank) {
    return windows[rank];
  }

  @Override
  public final void reserve(long offset, long bytes) {}

  @Override
  public final Extent map(long offset, long bytes) {
    throw new UnsupportedOperationException("no buffers here");
  }

  @Override
  public final void wake(int rank) {}
}
