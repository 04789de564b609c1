package org.comm4j.backend.mpi;

import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.jspecify.annotations.Nullable;

/// Says which way a collective goes, in words: what [Collectives] and [Reductions] do.
final class Ways {
  /// What a communicator's topology says where that was found.
  static final String DIFFERENT_SUMS =
      "folded by our kernels, since the library's were found to differ between ranks";

  private Ways() {}

  /// @param bytes of a rank's buffer
  /// @param largeCounts whether the library has functions with 64-bit counts, which are used then
  static String of(
      String operation,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config,
      boolean largeCounts) {
    if (ranks == 1) {
      return "a group of one: the input is copied";
    }
    if (op != null) {
      return reduction(operation, type, op, bytes, ranks, config, largeCounts);
    }
    String counts = largeCounts && !operation.equals("barrier") ? "_c" : "";
    return switch (operation) {
      case "gatherV", "scatterV", "allToAllV" ->
          "messages of the library, since only some ranks know the counts";
      case "broadcast" -> "MPI_Bcast%s, at most 1 GiB each time".formatted(counts);
      case "allGatherV" -> "MPI_Allgatherv%s; beyond 2^31 elements messages".formatted(counts);
      default ->
          "MPI_"
              + Character.toUpperCase(operation.charAt(0))
              + operation.substring(1).toLowerCase(java.util.Locale.ROOT)
              + counts;
    };
  }

  private static String reduction(
      String operation,
      DataType type,
      ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config,
      boolean largeCounts) {
    boolean isSame = Reductions.isSame(op, type) && config.reduction() == Reduction.FAST;
    long largest =
        operation.equals("allReduce")
            ? LargestCount.tried(config, largeCounts)
            : LargestCount.of(config);
    boolean isScattered = operation.startsWith("reduceScatter"); // `bytes` is what a rank gets
    boolean isCountable = bytes / type.bytes() * (isScattered ? ranks : 1) <= largest;
    if (isSame && isCountable) {
      String probed =
          Reductions.isExact(type) || ranks == 2
              ? ""
              : "; folded by our kernels if the library's sums were found to differ between ranks";
      return "the library reduces (%s in its own order)%s".formatted(operation, probed);
    }
    String why =
        config.reduction() == Reduction.ORDERED
            ? "COMM_REDUCTION=ordered"
            : isSame
                ? "the library can't count so many elements"
                : "the library's operator has other rules for %s of %s".formatted(op.name(), type);
    return "%s, and our kernels fold it in the order of the ranks: %s"
        .formatted(movement(operation, bytes, ranks), why);
  }

  private static String movement(String operation, long bytes, int ranks) {
    return switch (operation) {
      case "scan", "exclusiveScan" -> "each rank gets by a message what the ranks before it have";
      case "allReduce" ->
          bytes * ranks <= Reductions.SMALL_BYTES
              ? "MPI_Allgather brings all data to all ranks"
              : "messages bring each rank its part of all data, and then its result to all";
      case "reduce" ->
          bytes * ranks <= Reductions.SMALL_BYTES
              ? "messages bring all data to the root"
              : "messages bring each rank its part of all data, and then its result to the root";
      default -> "messages bring each rank its part of all data";
    };
  }
}
