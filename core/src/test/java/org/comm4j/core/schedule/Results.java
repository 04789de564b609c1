package org.comm4j.core.schedule;

import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import org.comm4j.api.Partition;

/// What every element of every output must be in the end, per collective.
///
/// @param shapes each rank's
/// @param leftFold whether a reduction must be the left fold over ranks
record Results(Expressions expressions, List<Shape> shapes, boolean leftFold) {
  /// @throws ScheduleCheck.Fault for the first element that is something else
  void check(IntFunction<RankMemory> memories) {
    for (int rank = 0; rank < shapes.size(); rank++) {
      check(rank, memories);
    }
  }

  private void check(int rank, IntFunction<RankMemory> memories) {
    RankMemory memory = memories.apply(rank);
    Shape shape = shapes.get(rank);
    int count = memory.count(Space.OUTPUT);
    switch (shape.kind()) {
      case BARRIER -> {}
      case BROADCAST ->
          moved(rank, memory, element -> expressions.leaf(shape.root(), element), count);
      case GATHER, ALL_GATHER ->
          moved(
              rank,
              memory,
              element -> expressions.leaf((int) (element / shape.count()), element % shape.count()),
              count);
      case GATHER_V, ALL_GATHER_V -> {
        if (count > 0) {
          placed(rank, memory, Buffers.parts(shape), expressions::leaf);
        }
      }
      case SCATTER ->
          moved(
              rank,
              memory,
              element -> expressions.leaf(shape.root(), rank * shape.count() + element),
              count);
      case SCATTER_V -> {
        Partition parts = Buffers.parts(shapes.get(shape.root()));
        moved(
            rank,
            memory,
            element -> expressions.leaf(shape.root(), parts.displacement(rank) + element),
            count);
      }
      case ALL_TO_ALL ->
          placed(
              rank,
              memory,
              Partition.even(shape.size(), shape.count()),
              (peer, element) -> expressions.leaf(peer, rank * shape.count() + element));
      case ALL_TO_ALL_V ->
          placed(
              rank,
              memory,
              Objects.requireNonNull(shape.receiveParts(), "receiveParts"),
              (peer, element) ->
                  expressions.leaf(
                      peer, Buffers.parts(shapes.get(peer)).displacement(rank) + element));
      case REDUCE -> reduced(rank, memory, 0, shape.size() - 1, count);
      case ALL_REDUCE -> {
        reduced(rank, memory, 0, shape.size() - 1, count);
        same(rank, memory, memories.apply(0), count);
      }
      case REDUCE_SCATTER -> reduced(rank, memory, rank * shape.count(), shape.size() - 1, count);
      case REDUCE_SCATTER_V ->
          reduced(rank, memory, Buffers.parts(shape).displacement(rank), shape.size() - 1, count);
      case SCAN -> reduced(rank, memory, 0, rank, count);
      case EXCLUSIVE_SCAN -> {
        if (rank == 0) {
          moved(rank, memory, memory::before, count);
        } else {
          reduced(rank, memory, 0, rank - 1, count);
        }
      }
    }
  }

  /// What an element of a peer's part must be.
  private interface ExpectedPart {
    int at(int peer, long element);
  }

  /// @param expected what an element must be
  private void moved(int rank, RankMemory memory, IntUnaryOperator expected, int count) {
    for (int element = 0; element < count; element++) {
      is(rank, memory, element, expected.applyAsInt(element));
    }
  }

  private void placed(int rank, RankMemory memory, Partition parts, ExpectedPart expected) {
    boolean[] due = new boolean[memory.count(Space.OUTPUT)];
    for (int peer = 0; peer < parts.ranks(); peer++) {
      for (int index = 0; index < parts.count(peer); index++) {
        int element = (int) parts.displacement(peer) + index;
        due[element] = true;
        is(rank, memory, element, expected.at(peer, index));
      }
    }
    for (int element = 0; element < due.length; element++) {
      if (!due[element]) {
        is(rank, memory, element, memory.before(element));
      }
    }
  }

  private void reduced(int rank, RankMemory memory, long first, int last, int count) {
    for (int element = 0; element < count; element++) {
      if (leftFold) {
        is(rank, memory, element, expressions.finishedLeftFold(last, first + element));
        continue;
      }
      int actual = memory.get(Space.OUTPUT, element);
      if (actual == Expressions.UNWRITTEN
          || !expressions.isFinishedReduction(actual, last, first + element)) {
        throw new ScheduleCheck.Fault(
            "rank %d, output[%d] is %s (expected: each of x0..x%d once, element %d, finished / %d)"
                .formatted(
                    rank, element, expressions.text(actual), last, first + element, last + 1));
      }
    }
  }

  private void same(int rank, RankMemory memory, RankMemory first, int count) {
    for (int element = 0; element < count; element++) {
      int here = memory.get(Space.OUTPUT, element);
      int there = first.get(Space.OUTPUT, element);
      if (here != there) {
        throw new ScheduleCheck.Fault(
            "rank %d, output[%d] is %s but rank 0's is %s (expected: the same order on all ranks)"
                .formatted(rank, element, expressions.text(here), expressions.text(there)));
      }
    }
  }

  private void is(int rank, RankMemory memory, int element, int expected) {
    int actual = memory.get(Space.OUTPUT, element);
    if (actual != expected) {
      throw new ScheduleCheck.Fault(
          "rank %d, output[%d] is %s (expected: %s)"
              .formatted(rank, element, expressions.text(actual), expressions.text(expected)));
    }
  }
}
