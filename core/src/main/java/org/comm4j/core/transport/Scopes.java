package org.comm4j.core.transport;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// What the scope of memory says about who may touch it, and about lending it ([PeerMemory#lend]).
/// What no arena owns (the global scope, direct buffers) may be freed by hand at any time.
public final class Scopes {
  private static final Class<?> AUTOMATIC = Arena.ofAuto().scope().getClass();
  private static final Class<?> SHARED = shared();
  private static final Thread SOME_OTHER_THREAD = new Thread();

  private Scopes() {}

  private static Class<?> shared() {
    try (Arena arena = Arena.ofShared()) {
      return arena.scope().getClass();
    }
  }

  /// Whether no other thread than one may touch memory: what a confined arena owns.
  public static boolean isConfined(MemorySegment memory) {
    return !memory.isAccessibleBy(SOME_OTHER_THREAD);
  }

  /// Whether something else may be where memory is while it is in use: all but arrays and what an
  /// automatic arena owns.
  public static boolean canBeClosed(MemorySegment memory) {
    return memory.isNative() && !AUTOMATIC.isInstance(memory.scope());
  }

  /// Whether any thread of this process may read memory at any time, even when its owner has closed
  /// it: it gets an exception then. So it is with arrays and with what a shared or an automatic
  /// arena owns.
  public static boolean isSafeToRead(MemorySegment memory) {
    return !canBeClosed(memory) || memory.scope().getClass() == SHARED;
  }
}
