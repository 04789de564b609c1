package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// A message that has come and that nothing has received.
///
/// @param tag as the library has it
/// @param bytes how long it is
record Probe(int source, int tag, long bytes) {
  private static final ThreadLocal<MemorySegment> FOUND =
      ThreadLocal.withInitial(
          () -> Arena.ofAuto().allocate(8L + Functions.constants().statusBytes, 8));

  /// Looks for one.
  ///
  /// @param comm the library's
  /// @param source as the library has it, as are the tags
  /// @return null if there is none
  static @Nullable Probe of(long comm, int source, int tag) {
    MemorySegment flag = FOUND.get();
    MemorySegment status = flag.asSlice(8);
    Errors.check(Mpi.iprobe(source, tag, comm, flag, status), "MPI_Iprobe");
    if (flag.get(JAVA_INT, 0) == 0) {
      return null;
    }
    return new Probe(Statuses.source(status), Statuses.tag(status), Statuses.bytes(status));
  }
}
