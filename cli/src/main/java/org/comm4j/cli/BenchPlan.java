package org.comm4j.cli;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// What the ranks of [Bench] measure, all the same.
///
/// @param operations in this order
/// @param sizes in bytes, each a multiple of the type's size
/// @param repetitions of a point, of which the median counts
/// @param repetitionNs how long one is meant to take
/// @param iterations calls of one repetition; 0 to have as many as fit into its time
/// @param warmUpNs at least so long before an operation is measured, so that it is compiled
/// @param result rank 0 writes there how many elements were wrong
/// @param times where rank 0 finds what was measured before, if anything, and leaves its own
record BenchPlan(
    List<BenchOperation> operations,
    List<Long> sizes,
    DataType type,
    ReduceOp.Predefined op,
    BenchMemory memory,
    Listing.Format format,
    int repetitions,
    long repetitionNs,
    int iterations,
    long warmUpNs,
    Path result,
    Path times) {

  /// How many arguments a plan is.
  static final int ARGUMENTS = 12;

  BenchPlan {
    operations = List.copyOf(operations);
    sizes = List.copyOf(sizes);
    if (repetitions < 1 || repetitions > 1000) {
      throw new IllegalArgumentException(
          "--repetitions: %d (expected: 1..1000)".formatted(repetitions));
    }
    if (iterations < 0) {
      throw new IllegalArgumentException(
          "--iterations: %d (expected: 1 or more, or 0 for as many as fit)".formatted(iterations));
    }
    if (repetitionNs <= 0 || warmUpNs < 0) {
      throw new IllegalArgumentException(
          "--time: %d ms, --warm-up: %d ms (expected: more than 0, and 0 or more)"
              .formatted(
                  TimeUnit.NANOSECONDS.toMillis(repetitionNs),
                  TimeUnit.NANOSECONDS.toMillis(warmUpNs)));
    }
    for (long size : sizes) {
      if (size < 1 || size % type.bytes() != 0) {
        throw new IllegalArgumentException(
            "--sizes: %d (expected: multiples of %d, the size of %s)"
                .formatted(size, type.bytes(), Names.of(type)));
      }
    }
    if (operations.stream().anyMatch(BenchOperation::isReduction) && !op.supports(type)) {
      throw new IllegalArgumentException(
          "--op: %s is not defined for %s (expected: one that is); choose another --op or --dtype"
              .formatted(Names.of(op), Names.of(type)));
    }
  }

  /// For the rank program's command line.
  List<String> arguments() {
    return List.of(
        operations.stream().map(BenchOperation::name).collect(Collectors.joining(",")),
        sizes.stream().map(String::valueOf).collect(Collectors.joining(",")),
        type.name(),
        op.name(),
        memory.name(),
        format.name(),
        Integer.toString(repetitions),
        Long.toString(repetitionNs),
        Integer.toString(iterations),
        Long.toString(warmUpNs),
        result.toString(),
        times.toString());
  }

  static BenchPlan of(String[] arguments) {
    return new BenchPlan(
        Arrays.stream(arguments[0].split(",", -1)).map(BenchOperation::valueOf).toList(),
        Arrays.stream(arguments[1].split(",", -1)).map(Long::valueOf).toList(),
        DataType.valueOf(arguments[2]),
        ReduceOp.Predefined.valueOf(arguments[3]),
        BenchMemory.valueOf(arguments[4]),
        Listing.Format.valueOf(arguments[5]),
        Integer.parseInt(arguments[6]),
        Long.parseLong(arguments[7]),
        Integer.parseInt(arguments[8]),
        Long.parseLong(arguments[9]),
        Path.of(arguments[10]),
        Path.of(arguments[11]));
  }
}
