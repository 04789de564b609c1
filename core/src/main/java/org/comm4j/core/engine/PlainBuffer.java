package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.comm4j.api.DataType;
import org.comm4j.api.TransportFailedException;

/// A buffer where peers can't read memory anyway: native memory of its own.
final class PlainBuffer extends EngineBuffer {
  private final Arena arena;

  private PlainBuffer(Engine engine, Arena arena, DataType type, long count) {
    super(engine, memory(arena, "allocate", type.bytes(count)), type, count);
    this.arena = arena;
  }

  static PlainBuffer allocate(Engine engine, DataType type, long count) {
    Arena arena = Arena.ofShared();
    try {
      return new PlainBuffer(engine, arena, type, count);
    } catch (TransportFailedException e) {
      arena.close();
      throw e;
    }
  }

  /// @param call for the message
  /// @throws TransportFailedException if there is no room
  static MemorySegment memory(Arena arena, String call, long bytes) {
    try {
      return arena.allocate(bytes, 64);
    } catch (OutOfMemoryError | IllegalArgumentException e) { // the latter for absurd sizes
      throw new TransportFailedException(
          "%s: %d bytes do not fit in the native memory of this process (%s); close buffers or regions, or raise what limits it"
              .formatted(
                  call,
                  bytes,
                  Objects.requireNonNullElse(e.getMessage(), "more than can be addressed")),
          e);
    }
  }

  @Override
  void release() {
    arena.close();
  }
}
