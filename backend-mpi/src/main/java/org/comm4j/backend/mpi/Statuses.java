package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// What the library says of a message.
final class Statuses {
  private static final ThreadLocal<MemorySegment> COUNT =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(JAVA_LONG));

  private Statuses() {}

  /// Who sent it.
  static int source(MemorySegment status) {
    return status.get(JAVA_INT, Functions.constants().statusSourceOffset);
  }

  /// Its tag, as the library has it.
  static int tag(MemorySegment status) {
    return status.get(JAVA_INT, Functions.constants().statusTagOffset);
  }

  /// How many bytes a message has.
  static long bytes(MemorySegment status) {
    MemorySegment count = COUNT.get();
    Errors.check(
        Mpi.getElements(status, Functions.constants().byteType, count), "MPI_Get_elements_x");
    return count.get(JAVA_LONG, 0);
  }
}
