package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;

/// How much a call moves, as the library is told: ours are longs, its counts may be ints. What
/// those can't count is one element of a type made for it.
///
/// @param count of elements of the type
/// @param type a handle
/// @param isMade whether the type was made for this amount, and is to be freed once it is used
record Amount(long count, long type, boolean isMade) {
  /// An amount of elements that are moved, never calculated with.
  ///
  /// @param largest what is counted at most ([LargestCount])
  static Amount of(long count, DataType type, long largest) {
    long unit = unit(type.bytes());
    return count <= largest
        ? new Amount(count, unit, false)
        : new Amount(1, make(count, unit, type.bytes(), (int) largest), true);
  }

  /// MPI's type of elements of this size: moving them is copying.
  static long unit(int bytes) {
    Constants constants = Functions.constants();
    return switch (bytes) {
      case 1 -> constants.byteType;
      case 2 -> constants.type(DataType.UINT16);
      case 4 -> constants.type(DataType.UINT32);
      case 8 -> constants.type(DataType.UINT64);
      case 16 -> constants.type(DataType.COMPLEX128);
      default ->
          throw new IllegalArgumentException("bytes: " + bytes + " (expected: 1, 2, 4, 8, 16)");
    };
  }

  private static long make(long count, long unit, int bytes, int largest) {
    try (Arena arena = Arena.ofConfined()) {
      long made = nest(arena, count, unit, bytes, largest);
      MemorySegment handle = arena.allocate(JAVA_LONG);
      Handles.set(handle, 0, made);
      Errors.check(Mpi.typeCommit(handle), "MPI_Type_commit");
      return made;
    }
  }

  /// Blocks of the largest count, as often as needed one in the other, then the rest.
  private static long nest(Arena arena, long count, long type, long bytes, int largest) {
    if (count <= largest) {
      return contiguous(arena, (int) count, type);
    }
    long block = contiguous(arena, largest, type);
    long blocks = nest(arena, count / largest, block, bytes * largest, largest);
    free(block);
    int rest = (int) (count % largest);
    if (rest == 0) {
      return blocks;
    }
    MemorySegment lengths = arena.allocateFrom(JAVA_INT, 1, rest);
    MemorySegment places = arena.allocateFrom(JAVA_LONG, 0, (count - rest) * bytes);
    MemorySegment types = arena.allocate(2L * Long.BYTES);
    Handles.set(types, 0, blocks);
    Handles.set(types, 1, type);
    MemorySegment made = arena.allocate(JAVA_LONG);
    Errors.check(Mpi.typeCreateStruct(2, lengths, places, types, made), "MPI_Type_create_struct");
    free(blocks);
    return Handles.get(made);
  }

  private static long contiguous(Arena arena, int count, long type) {
    MemorySegment made = arena.allocate(ADDRESS);
    Errors.check(Mpi.typeContiguous(count, type, made), "MPI_Type_contiguous");
    return Handles.get(made);
  }

  /// Gives the type back; what moves goes on moving.
  void free() {
    if (isMade) {
      free(type);
    }
  }

  private static void free(long type) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(JAVA_LONG);
      Handles.set(handle, 0, type);
      Errors.check(Mpi.typeFree(handle), "MPI_Type_free");
    }
  }
}
