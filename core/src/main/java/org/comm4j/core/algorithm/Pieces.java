package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;

/// A buffer cut into pieces of equal size, the last one perhaps smaller. All ranks compute the
/// same.
///
/// @param count the elements of the buffer
/// @param limit the elements of a piece, at least 1
record Pieces(long count, long limit) {
  static Pieces of(long count, long limit) {
    return new Pieces(count, Math.max(1, limit));
  }

  /// How many pieces; none of an empty buffer.
  int number() {
    return Math.toIntExact(Math.ceilDiv(count, limit));
  }

  /// The elements of the largest piece.
  long largest() {
    return Math.min(count, limit);
  }

  /// A piece, in a buffer that starts where the first one starts.
  Slice in(Space space, int index) {
    return new Slice(space, index * limit, Math.min(limit, count - index * limit));
  }
}
