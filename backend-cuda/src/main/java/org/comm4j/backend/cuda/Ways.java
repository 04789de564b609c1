package org.comm4j.backend.cuda;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.schedule.CollectiveKind;
import org.jspecify.annotations.Nullable;

/// Says which way a collective of data in devices' memory goes, in words: what [KernelCollectives],
/// [CudaTable] and [HostPath] do. It needs no device.
final class Ways {
  private Ways() {}

  static String of(
      String operation,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config) {
    CollectiveKind kind =
        Stream.of(CollectiveKind.values())
            .filter(each -> each.label().equals(operation))
            .findFirst()
            .orElseThrow(() -> new IllegalArgumentException("operation: '" + operation + "'"));
    if (kind == CollectiveKind.BARRIER) {
      return "as on shm, since it has no data";
    }
    CudaOptions options = CudaOptions.of(config);
    String host =
        "through the host's memory, in chunks of %d bytes, and there as on shm"
            .formatted(options.chunkBytes());
    String way =
        whyThroughTheHost(kind, type, op, ranks, options.path())
            .map(why -> host + ": " + why)
            .orElseGet(() -> {
              String kernels = kernels(kind, type, op, bytes, ranks, config, options.chunkBytes());
              if (ranks == 1) {
                return kernels;
              }
              String elsewhere =
                  options.path() == CudaOptions.Path.P2P ? "not at all (COMM_CUDA_PATH=p2p)" : host;
              return "where the ranks' devices reach each other's memory %s; elsewhere %s"
                  .formatted(kernels, elsewhere);
            });
    return way + expressions(kind, type, op, options.expressions());
  }

  /// What a call may have at its epilogue's end.
  private static String expressions(
      CollectiveKind kind, DataType type, @Nullable ReduceOp op, List<Expression> declared) {
    List<Expression> some = declared.stream().filter(each -> each.from() == type).toList();
    return some.isEmpty() || op == null || !isWithEpilogue(kind, op)
        ? ""
        : "; an epilogue may end in %s, by kernels that are compiled when a rank opens"
            .formatted(some);
  }

  private static boolean isWithEpilogue(CollectiveKind kind, ReduceOp op) {
    return (op == ReduceOp.SUM || op == ReduceOp.AVERAGE)
        && switch (kind) {
          case ALL_REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V -> true;
          case REDUCE,
              SCAN,
              EXCLUSIVE_SCAN,
              BROADCAST,
              ALL_GATHER,
              ALL_GATHER_V,
              GATHER,
              GATHER_V,
              SCATTER,
              SCATTER_V,
              ALL_TO_ALL,
              ALL_TO_ALL_V,
              BARRIER ->
              false;
        };
  }

  private static Optional<String> whyThroughTheHost(
      CollectiveKind kind, DataType type, @Nullable ReduceOp op, int ranks, CudaOptions.Path path) {
    if (!KernelCollectives.has(kind)) {
      return Optional.of("there are no kernels for " + kind.label());
    }
    if (op != null && KernelName.reduce(op, type).isEmpty()) {
      return Optional.of("no kernel combines with an operator of the user's");
    }
    if (path == CudaOptions.Path.NAIVE) {
      return Optional.of("COMM_CUDA_PATH=naive");
    }
    return ranks > Window.MAX_RANKS
        ? Optional.of("kernels are for at most %d ranks".formatted(Window.MAX_RANKS))
        : Optional.empty();
  }

  private static String kernels(
      CollectiveKind kind,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config,
      long chunkBytes) {
    if (kind == CollectiveKind.ALL_REDUCE && op != null) {
      boolean hasLines = KernelName.lowLatency(op, type).isPresent();
      return "by a kernel, "
          + CudaTable.of(config)
              .explain(
                  new CudaTable.Call(
                      CudaDevice.OLDEST_CAPABILITY, ranks, bytes, hasLines, chunkBytes));
    }
    return "by a kernel in which each rank reads what it gets of the others"
        + (op == null ? "" : " and reduces it");
  }
}
