package org.comm4j.core.algorithm;

import org.comm4j.api.Partition;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;

/// Which elements of a buffer belong to which rank. Indices wrap: chunk -1 is the last one.
sealed interface Chunks {
  /// How many chunks.
  int parts();

  /// Where a chunk starts.
  long from(int index);

  /// How many elements a chunk has; may be 0.
  long count(int index);

  /// A buffer cut as evenly as it goes: the first chunks have one element more where it does not
  /// go. With fewer elements than chunks the last chunks are empty.
  static Chunks split(long count, int parts) {
    return new Split(count, parts);
  }

  /// A buffer of chunks that all have `count` elements.
  static Chunks even(long count, int parts) {
    return new Split(Math.multiplyExact(count, parts), parts);
  }

  /// A buffer with parts of any size at any place.
  static Chunks of(Partition partition) {
    return new Given(partition);
  }

  /// A chunk in a buffer that holds all of them.
  default Slice in(Space space, int index) {
    int wrapped = Math.floorMod(index, parts());
    return new Slice(space, from(wrapped), count(wrapped));
  }

  /// The chunks from one to another as one slice. Only where chunks stand one behind the other.
  ///
  /// @param to the first chunk that does not belong to it
  default Slice range(Space space, int from, int to) {
    return new Slice(space, from(from), from(to - 1) + count(to - 1) - from(from));
  }

  /// The elements of the largest chunk.
  default long largest() {
    long largest = 0;
    for (int index = 0; index < parts(); index++) {
      largest = Math.max(largest, count(index));
    }
    return largest;
  }

  /// See [#split].
  record Split(long total, int parts) implements Chunks {
    @Override
    public long from(int index) {
      return index * (total / parts) + Math.min(index, total % parts);
    }

    @Override
    public long count(int index) {
      return total / parts + (index < total % parts ? 1 : 0);
    }

    @Override
    public long largest() {
      return count(0);
    }
  }

  /// See [#of].
  record Given(Partition partition) implements Chunks {
    @Override
    public int parts() {
      return partition.ranks();
    }

    @Override
    public long from(int index) {
      return partition.displacement(index);
    }

    @Override
    public long count(int index) {
      return partition.count(index);
    }
  }
}
