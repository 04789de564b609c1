package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/// Handles in memory, 4 or 8 bytes each.
final class Handles {
  private Handles() {}

  /// The first handle there.
  static long get(MemorySegment memory) {
    return isNarrow() ? memory.get(JAVA_INT, 0) : memory.get(JAVA_LONG, 0);
  }

  /// Stores the i-th one of an array.
  static void set(MemorySegment array, int i, long handle) {
    if (isNarrow()) {
      array.setAtIndex(JAVA_INT, i, (int) handle);
    } else {
      array.setAtIndex(JAVA_LONG, i, handle);
    }
  }

  private static boolean isNarrow() {
    return Functions.constants().handleBytes == Integer.BYTES;
  }
}
