package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// The library's communicators.
final class Comms {
  private static final int GROUP_TAG = Tags.CLOSED + 1; // above those of collectives

  private Comms() {}

  private interface Maker {
    int make(MemorySegment handle);
  }

  private static long make(String function, Maker maker) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment made = arena.allocate(JAVA_LONG);
      Errors.check(maker.make(made), function);
      return withErrors(Handles.get(made));
    }
  }

  /// Has its errors returned.
  private static long withErrors(long comm) {
    Constants constants = Functions.constants();
    if (comm != constants.commNull) {
      Errors.check(Mpi.commSetErrhandler(comm, constants.errorsReturn), "MPI_Comm_set_errhandler");
    }
    return comm;
  }

  /// Of the same ranks. The library's blocking form would not let other ranks of this host run, and
  /// could not be left when one of them does not come.
  ///
  /// @param check throws if it is not to be waited for any longer
  static long duplicate(long comm, Runnable check) {
    Requests request = new Requests(1);
    MemorySegment made = Arena.ofAuto().allocate(JAVA_LONG);
    Errors.check(Mpi.commIdup(comm, made, request.next()), "MPI_Comm_idup");
    boolean isMade = false;
    try {
      while (!request.test()) {
        check.run();
        Thread.yield();
      }
      isMade = true;
    } finally {
      if (!isMade) {
        CallMemory.keep(request, made); // it may still be made
        Library.markLost();
      }
    }
    return withErrors(Handles.get(made));
  }

  static long split(long comm, int color, int key) {
    return make("MPI_Comm_split", made -> Mpi.commSplit(comm, color, key, made));
  }

  /// Of some ranks of another one; a collective of these alone.
  static long ofRanks(long comm, List<Integer> ranks) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment numbers =
          arena.allocateFrom(JAVA_INT, ranks.stream().mapToInt(Integer::intValue).toArray());
      MemorySegment everybody = arena.allocate(JAVA_LONG);
      MemorySegment chosen = arena.allocate(JAVA_LONG);
      Errors.check(Mpi.commGroup(comm, everybody), "MPI_Comm_group");
      Errors.check(
          Mpi.groupIncl(Handles.get(everybody), ranks.size(), numbers, chosen), "MPI_Group_incl");
      long made =
          make(
              "MPI_Comm_create_group",
              handle -> Mpi.commCreateGroup(comm, Handles.get(chosen), GROUP_TAG, handle));
      Errors.check(Mpi.groupFree(chosen), "MPI_Group_free");
      Errors.check(Mpi.groupFree(everybody), "MPI_Group_free");
      return made;
    }
  }

  /// Frees one. MPI lets a library wait for the others here; no library that we know does.
  static void free(long comm) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(JAVA_LONG);
      Handles.set(handle, 0, comm);
      int ignored = Mpi.commFree(handle);
    }
  }
}
