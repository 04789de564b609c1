package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// The library's communicators.
final class Comms {
  private static final int GROUP_TAG = Tags.CLOSED + 1; // above those of collectives
  private static final long YIELD_NS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long PARK_NS = TimeUnit.MICROSECONDS.toNanos(200);

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
  /// Who gives up breaks the communicator that it works for, so that happens to each one at most
  /// once. What is copied is not freed then, also if it was made for that alone: the library may
  /// still be at it.
  ///
  /// @param check throws if it is not to be waited for any longer
  static long duplicate(long comm, Runnable check) {
    Requests request = new Requests(1);
    MemorySegment made = Arena.ofAuto().allocate(JAVA_LONG);
    Errors.check(Mpi.commIdup(comm, made, request.next()), "MPI_Comm_idup");
    await(request, check, made);
    return withErrors(Handles.get(made));
  }

  /// Waits for requests without keeping other ranks of this host from running.
  ///
  /// @param check throws if they are not to be waited for any longer
  /// @param used what the library uses until they end
  static void await(Requests requests, Runnable check, MemorySegment... used) {
    boolean haveEnded = false;
    try {
      long sinceNs = System.nanoTime();
      while (!requests.test()) {
        check.run();
        if (System.nanoTime() - sinceNs < YIELD_NS) {
          Thread.yield();
        } else {
          LockSupport.parkNanos(PARK_NS);
        }
      }
      haveEnded = true;
    } finally {
      if (!haveEnded) {
        CallMemory.keep(requests, used); // they may still end
        Library.markLost();
      }
    }
  }

  static long split(long comm, int color, int key) {
    return make("MPI_Comm_split", made -> Mpi.commSplit(comm, color, key, made));
  }

  /// Of the ranks of another one that share memory with this one, in their order, as the library
  /// sees it.
  static long sharing(long comm) {
    Constants constants = Functions.constants();
    return make(
        "MPI_Comm_split_type",
        made -> Mpi.commSplitType(comm, constants.commTypeShared, 0, constants.infoNull, made));
  }

  /// Which ranks of another one it has, in its own order.
  static List<Integer> ranks(long comm, long other) {
    try (Arena arena = Arena.ofConfined()) {
      int count = Errors.ask("MPI_Comm_size", size -> Mpi.commSize(comm, size));
      MemorySegment numbers = numbers(arena, IntStream.range(0, count));
      MemorySegment found = arena.allocate(JAVA_INT, count);
      MemorySegment own = arena.allocate(JAVA_LONG);
      MemorySegment everybody = arena.allocate(JAVA_LONG);
      Errors.check(Mpi.commGroup(comm, own), "MPI_Comm_group");
      Errors.check(Mpi.commGroup(other, everybody), "MPI_Comm_group");
      Errors.check(
          Mpi.groupTranslateRanks(Handles.get(own), count, numbers, Handles.get(everybody), found),
          "MPI_Group_translate_ranks");
      Errors.check(Mpi.groupFree(own), "MPI_Group_free");
      Errors.check(Mpi.groupFree(everybody), "MPI_Group_free");
      return IntStream.of(found.toArray(JAVA_INT)).boxed().toList();
    }
  }

  private static MemorySegment numbers(Arena arena, IntStream ranks) {
    return arena.allocateFrom(JAVA_INT, ranks.toArray());
  }

  /// Of some ranks of another one; a collective of these alone.
  static long ofRanks(long comm, List<Integer> ranks) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment numbers = numbers(arena, ranks.stream().mapToInt(Integer::intValue));
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
