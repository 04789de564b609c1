package org.comm4j.cli;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine.ITypeConverter;

/// What [Bench] can measure, by the names that benchmark files have.
enum BenchOperation {
  ALL_REDUCE("allreduce", Kind.REDUCTION),
  REDUCE("reduce", Kind.ROOTED_REDUCTION),
  BROADCAST("broadcast", Kind.ROOTED),
  ALL_GATHER("allgather", Kind.SYMMETRIC),
  ALL_GATHER_V("allgatherv", Kind.SYMMETRIC),
  GATHER("gather", Kind.ROOTED),
  GATHER_V("gatherv", Kind.ROOTED),
  SCATTER("scatter", Kind.ROOTED),
  SCATTER_V("scatterv", Kind.ROOTED),
  REDUCE_SCATTER("reduce_scatter", Kind.REDUCTION),
  REDUCE_SCATTER_V("reduce_scatterv", Kind.REDUCTION),
  ALL_TO_ALL("alltoall", Kind.SYMMETRIC),
  ALL_TO_ALL_V("alltoallv", Kind.SYMMETRIC),
  SCAN("scan", Kind.ROOTED_REDUCTION),
  EXCLUSIVE_SCAN("exscan", Kind.ROOTED_REDUCTION),
  BARRIER("barrier", Kind.SYMMETRIC),
  PING_PONG("pingpong", Kind.MESSAGES),
  STREAM("stream", Kind.MESSAGES);

  private enum Kind {
    /// Every rank waits for every other one, so that none can run ahead.
    SYMMETRIC,
    /// The same, with an operator.
    REDUCTION,
    /// Some rank may leave early.
    ROOTED,
    /// The same, with an operator.
    ROOTED_REDUCTION,
    /// Between ranks 0 and 1.
    MESSAGES
  }

  private final String label;
  private final Kind kind;

  BenchOperation(String label, Kind kind) {
    this.label = label;
    this.kind = kind;
  }

  String label() {
    return label;
  }

  /// Whether it has an operator.
  boolean isReduction() {
    return kind == Kind.REDUCTION || kind == Kind.ROOTED_REDUCTION;
  }

  /// Whether ranks could run ahead, so that a barrier must stand before each call.
  boolean isRooted() {
    return kind == Kind.ROOTED || kind == Kind.ROOTED_REDUCTION;
  }

  boolean isOfMessages() {
    return kind == Kind.MESSAGES;
  }

  /// The bytes from which the bus bandwidth is computed: what each link must carry at least, with
  /// nccl-tests' factors.
  ///
  /// @param bytes of a rank's buffer; of what a rank contributes or gets where buffers have a part
  ///   for every rank; of a message
  double busBytes(long bytes, int ranks) {
    return switch (this) {
      case ALL_REDUCE -> 2.0 * (ranks - 1) / ranks * bytes;
      case ALL_GATHER,
          ALL_GATHER_V,
          GATHER,
          GATHER_V,
          SCATTER,
          SCATTER_V,
          REDUCE_SCATTER,
          REDUCE_SCATTER_V,
          ALL_TO_ALL,
          ALL_TO_ALL_V ->
          (ranks - 1.0) * bytes;
      case REDUCE, BROADCAST, SCAN, EXCLUSIVE_SCAN, BARRIER, PING_PONG, STREAM -> bytes;
    };
  }

  /// What the positional parameter names: one, several with commas, or `all`.
  ///
  /// @param operations in the order of their names
  record Several(List<BenchOperation> operations) {
    Several {
      operations = List.copyOf(operations);
    }

    /// From what people type.
    static final class Converter implements ITypeConverter<Several> {
      @Override
      public Several convert(String text) {
        if (Names.plain(text).equals("all")) {
          return new Several(List.of(values()));
        }
        return new Several(
            Arrays.stream(text.split(",", -1))
                .map(name ->
                    Names.find(name, List.of(values()), each -> Stream.of(each.label, each.name())))
                .toList());
      }
    }
  }

  /// For help.
  static final class Labels implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Arrays.stream(values()).map(BenchOperation::label).iterator();
    }
  }
}
