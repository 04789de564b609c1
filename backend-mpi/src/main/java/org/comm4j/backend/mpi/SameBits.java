package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// Finds out whether the library's all-reduces of floats give all ranks of a communicator the same
/// bits (rule B1). Two ranks get the same from any algorithm, since addition commutes.
///
/// Sums of both floats, since the processor's instructions for them are others; a product, an
/// average or a sum of complex numbers goes by the algorithm of a sum of as many bytes. Each
/// communicator for itself, since libraries choose by the number of ranks and by where they are.
/// Takes a few milliseconds: our own kernels, of which the JIT knows nothing yet, have no part in
/// it.
final class SameBits {
  /// Below, between and above where libraries change their algorithms: 4 bytes to 1 MiB.
  private static final int[] FLOATS = {1, 257, 40_000, 262_144};

  private static final int[] DOUBLES = {7, 5_000, 131_072};
  private static final long MOST_BYTES = 1 << 20;
  private static final int PERIOD = 41;

  private final MpiGroup group;
  private final Runnable patience;

  /// @param patience throws if other ranks are not to be waited for any longer
  SameBits(MpiGroup group, Runnable patience) {
    this.group = group;
    this.patience = patience;
  }

  /// Looks, and tells the group; a collective of the library's, the first of its communicator.
  ///
  /// @param label of what the caller makes, for messages
  void probe(String label) {
    if (group.size() > 2) {
      group.keepsBits(
          group.job().waitsInLibrary()
              ? group.watched(label, null, 0, this::isSame)
              : isSame()); // and patience ends the wait
    }
  }

  private boolean isSame() {
    return isSame(sums());
  }

  /// A number that stands for the bits of this rank's sums.
  private long sums() {
    StagingMemory memory = group.job().memory();
    List<MemorySegment> blocks =
        new ArrayList<>(List.of(memory.take(MOST_BYTES), memory.take(MOST_BYTES)));
    CRC32 sums = new CRC32();
    boolean isOver = false;
    try {
      add(DataType.FLOAT32, FLOATS, blocks.getFirst(), blocks.getLast(), sums);
      add(DataType.FLOAT64, DOUBLES, blocks.getFirst(), blocks.getLast(), sums);
      isOver = true;
      return sums.getValue();
    } finally {
      if (isOver) {
        memory.giveBackWritten(blocks);
      } else {
        CallMemory.keep(blocks); // the library may still use them
      }
    }
  }

  private void add(
      DataType type, int[] counts, MemorySegment input, MemorySegment sum, CRC32 sums) {
    fill(input, type);
    for (int count : counts) {
      long bytes = type.bytes(count);
      MemorySegment.copy(input, 0, sum, 0, bytes);
      allReduce(sum, count, type, ReduceOp.Predefined.SUM);
      sums.update(sum.asSlice(0, bytes).asByteBuffer());
    }
  }

  /// Numbers of all sizes and both signs, each rank's its own, so that the order of additions
  /// shows.
  private void fill(MemorySegment input, DataType type) {
    for (int i = 0; i < PERIOD; i++) {
      double number = Math.pow(-1.7, (i + 13 * group.rank()) % PERIOD - 20);
      if (type == DataType.FLOAT32) {
        input.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) number);
      } else {
        input.setAtIndex(ValueLayout.JAVA_DOUBLE, i, number);
      }
    }
    for (long filled = type.bytes(PERIOD); filled < MOST_BYTES; filled *= 2) {
      MemorySegment.copy(input, 0, input, filled, Math.min(filled, MOST_BYTES - filled));
    }
  }

  /// Whether all ranks have the same number.
  boolean isSame(long mine) {
    MemorySegment all = Arena.ofAuto().allocateFrom(JAVA_LONG, mine, ~mine);
    allReduce(all, 2, DataType.INT64, ReduceOp.Predefined.BIT_AND);
    return all.getAtIndex(JAVA_LONG, 0) == ~all.getAtIndex(JAVA_LONG, 1);
  }

  /// By the function that users' calls take: the other may have other algorithms.
  private void allReduce(MemorySegment data, long count, DataType type, ReduceOp.Predefined op) {
    MemorySegment inPlace = Collectives.inPlace();
    long mpiType = Functions.constants().type(type);
    long mpiOp = Functions.constants().op(op);
    long comm = group.collectives();
    if (group.job().waitsInLibrary()) {
      int code = MpiCollectives.allReduce(inPlace, data, count, mpiType, mpiOp, comm);
      Errors.check(code, "MPI_Allreduce");
      return;
    }
    Requests request = new Requests(1);
    int code =
        MpiCollectives.startAllReduce(inPlace, data, count, mpiType, mpiOp, comm, request.next());
    Errors.check(code, "MPI_Iallreduce");
    Comms.await(request, patience, data);
  }
}
