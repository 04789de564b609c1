package org.comm4j.core.schedule;

import java.util.Arrays;

/// One rank's memory while its plan is executed symbolically: a number of [Expressions] for each
/// element.
final class RankMemory {
  private final Region input;
  private final Region output;
  private final Region scratch;
  private final Region work;
  private final int[] outputBefore;

  /// The part of an array that is one [Space]; in place, input and output are parts of the same
  /// array.
  private static final class Region {
    final int[] cells;
    final int offset;
    final int count;

    /// The space that gave the array its name.
    final Space array;

    Region(int[] cells, int offset, int count, Space array) {
      this.cells = cells;
      this.offset = offset;
      this.count = count;
      this.array = array;
    }

    static Region fresh(Space space, long count) {
      return new Region(new int[Math.toIntExact(count)], 0, Math.toIntExact(count), space);
    }
  }

  /// @param inPlace where the shape has such a form, input and output share their memory
  RankMemory(Shape shape, int rank, Schedule plan, Expressions expressions, boolean inPlace) {
    Buffers buffers = Buffers.of(shape, rank);
    int inputCount = Math.toIntExact(buffers.inputCount());
    int outputCount = Math.toIntExact(buffers.outputCount());
    if (!inPlace || buffers.inPlaceOffset() == Buffers.NONE) {
      input = Region.fresh(Space.INPUT, inputCount);
      output = Region.fresh(Space.OUTPUT, outputCount);
    } else {
      boolean inputInOutput = buffers.inPlaceOffset() >= 0;
      int offset =
          Math.toIntExact(inputInOutput ? buffers.inPlaceOffset() : -1 - buffers.inPlaceOffset());
      int inputOffset = inputInOutput ? offset : 0;
      int outputOffset = inputInOutput ? 0 : offset;
      int[] shared = new int[Math.max(inputOffset + inputCount, outputOffset + outputCount)];
      input = new Region(shared, inputOffset, inputCount, Space.INPUT);
      output = new Region(shared, outputOffset, outputCount, Space.INPUT);
    }
    for (int index = 0; index < inputCount; index++) {
      input.cells[input.offset + index] = expressions.leaf(rank, index);
    }
    scratch = Region.fresh(Space.SCRATCH, plan.scratchCount());
    work = Region.fresh(Space.WORK, plan.workCount());
    outputBefore = Arrays.copyOfRange(output.cells, output.offset, output.offset + output.count);
  }

  /// How many elements a space has.
  int count(Space space) {
    return region(space).count;
  }

  int get(Space space, long index) {
    Region region = region(space);
    return region.cells[region.offset + (int) index];
  }

  void set(Space space, long index, int expression) {
    Region region = region(space);
    region.cells[region.offset + (int) index] = expression;
  }

  /// What an element of the output was before the plan began.
  int before(long index) {
    return outputBefore[(int) index];
  }

  /// Whether two slices are the same memory.
  boolean same(Slice slice, Slice other) {
    return array(slice) == array(other)
        && address(slice) == address(other)
        && slice.count() == other.count();
  }

  /// Whether two slices have memory in common.
  boolean overlap(Slice slice, Slice other) {
    return array(slice) == array(other)
        && address(slice) < address(other) + other.count()
        && address(other) < address(slice) + slice.count();
  }

  /// Where a slice starts in its array.
  long address(Slice slice) {
    return region(slice.space()).offset + slice.from();
  }

  /// Which array a slice is in: that of the output has the input's name where they share it.
  Space array(Slice slice) {
    return region(slice.space()).array;
  }

  private Region region(Space space) {
    return switch (space) {
      case INPUT -> input;
      case OUTPUT -> output;
      case SCRATCH -> scratch;
      case WORK -> work;
    };
  }
}
