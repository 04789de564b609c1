package org.comm4j.core.schedule;

import java.util.Objects;
import org.comm4j.api.Partition;

/// How many elements the buffers of a rank have, and how in place the output lies on the input.
///
/// @param inputCount elements of [Space#INPUT]; 0 where a rank has none
/// @param outputCount elements of [Space#OUTPUT]; 0 where a rank has none
/// @param inPlaceOffset in place, where the input starts in the output; where the output starts in
///   the input if negative (`-1 - offset`); [#NONE] where there is no in-place form
record Buffers(long inputCount, long outputCount, long inPlaceOffset) {
  /// There is no in-place form.
  static final long NONE = Long.MIN_VALUE;

  static Buffers of(Shape shape, int rank) {
    long count = shape.count();
    long all = Math.multiplyExact(count, shape.size());
    boolean root = rank == shape.root();
    return switch (shape.kind()) {
      case BARRIER -> new Buffers(0, 0, NONE);
      case BROADCAST -> new Buffers(root ? count : 0, root ? 0 : count, NONE);
      case REDUCE -> new Buffers(count, root ? count : 0, root ? 0 : NONE);
      case ALL_REDUCE, SCAN, EXCLUSIVE_SCAN -> new Buffers(count, count, 0);
      case GATHER -> new Buffers(count, root ? all : 0, root ? rank * count : NONE);
      case GATHER_V ->
          root
              ? new Buffers(
                  parts(shape).count(rank), parts(shape).extent(), parts(shape).displacement(rank))
              : new Buffers(count, 0, NONE);
      case ALL_GATHER -> new Buffers(count, all, rank * count);
      case ALL_GATHER_V ->
          new Buffers(
              parts(shape).count(rank), parts(shape).extent(), parts(shape).displacement(rank));
      case SCATTER -> new Buffers(root ? all : 0, count, root ? -1 - rank * count : NONE);
      case SCATTER_V ->
          root
              ? new Buffers(
                  parts(shape).extent(),
                  parts(shape).count(rank),
                  -1 - parts(shape).displacement(rank))
              : new Buffers(0, count, NONE);
      case REDUCE_SCATTER -> new Buffers(all, count, -1 - rank * count);
      case REDUCE_SCATTER_V ->
          new Buffers(
              parts(shape).extent(),
              parts(shape).count(rank),
              -1 - parts(shape).displacement(rank));
      case ALL_TO_ALL -> new Buffers(all, all, NONE);
      case ALL_TO_ALL_V ->
          new Buffers(
              parts(shape).extent(),
              Objects.requireNonNull(shape.receiveParts(), "receiveParts").extent(),
              NONE);
    };
  }

  static Partition parts(Shape shape) {
    return Objects.requireNonNull(shape.parts(), "parts");
  }
}
