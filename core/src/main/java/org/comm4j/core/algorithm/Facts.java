package org.comm4j.core.algorithm;

import org.comm4j.api.Partition;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.Shape;

/// What a choice may depend on: only what all ranks know alike, or they would choose differently
/// and wait for each other for ever.
///
/// Of GATHER_V and SCATTER_V only the root knows all parts, of ALL_TO_ALL_V every rank knows its
/// own: their sizes are no facts.
///
/// @param shape without what ranks know differently
/// @param bytes of one rank's buffer, or of one part where a buffer has a part for every rank (the
///   mean of uneven ones); 0 where ranks know it differently
public record Facts(Shape shape, long bytes) {
  /// {@return what all ranks know alike of a shape that one of them has}
  public static Facts of(Shape shape) {
    if (shape.kind().isVaried()) {
      Shape known =
          new Shape(
              shape.kind(),
              shape.size(),
              0,
              shape.root(),
              null,
              null,
              shape.valueBytes(),
              shape.accumulatorBytes(),
              shape.widened(),
              shape.ordered(),
              shape.windowBytes(),
              shape.hosts());
      return new Facts(known, 0);
    }
    Partition parts = shape.parts();
    if (parts == null) {
      return new Facts(shape, shape.bytes());
    }
    long total = 0;
    for (int rank = 0; rank < parts.ranks(); rank++) {
      total += parts.count(rank);
    }
    return new Facts(shape, total / shape.size() * shape.valueBytes());
  }

  /// How many ranks.
  public int size() {
    return shape.size();
  }

  /// The bytes of all ranks together.
  long total() {
    return bytes * size();
  }

  boolean windows() {
    return shape.windowBytes() > 0;
  }

  /// How many hosts, where some ranks share memory and some don't; else 0.
  int hosts() {
    Hosts hosts = shape.hosts();
    return hosts == null || hosts.mostRanks() == 1 ? 0 : hosts.count();
  }

  boolean fast() {
    return !shape.ordered();
  }

  boolean powerOfTwo() {
    return Integer.bitCount(size()) == 1;
  }
}
