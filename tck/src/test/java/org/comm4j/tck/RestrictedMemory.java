package org.comm4j.tck;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Views of memory with a life of their own.
final class RestrictedMemory {
  private RestrictedMemory() {}

  @SuppressWarnings("restricted") // the memory outlives the view, in these tests
  static MemorySegment view(MemorySegment of, Arena life) {
    return MemorySegment.ofAddress(of.address()).reinterpret(of.byteSize(), life, null);
  }
}
