package org.comm4j.core.algorithm;

import java.util.List;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;

/// A binomial tree over all ranks, seen from one of them. Positions count from the root: the rank at
/// position `v` is `root + v`, wrapped. The children of position `v` are `v + 1, v + 2, v + 4, …`, all
/// powers of two below the lowest bit of `v`; below position `v` hang the positions `v .. v + extent`.
///
///     p = 7      0
///              / | \
///             4  2  1
///            / \  \
///           6   5  3
record BinomialTree(int size, int root, int rank) {
  /// How many levels: in a collective each is one round.
  int levels() {
    return Ranks.doublings(size);
  }

  /// How far this rank is from the root on the ring of all.
  int position() {
    return Ranks.at(rank, -root, size);
  }

  /// The rank at a position.
  int rankAt(int position) {
    return Ranks.at(root, position, size);
  }

  /// How many positions hang below a position, itself included.
  int extent(int position) {
    int span = position == 0 ? size : Integer.lowestOneBit(position);
    return Math.min(span, size - position);
  }

  /// Whether this rank speaks to its parent over this distance.
  boolean isChild(int distance) {
    return position() != 0 && Integer.lowestOneBit(position()) == distance;
  }

  /// The position of this rank's parent. Not on the root.
  int parent() {
    return position() - Integer.lowestOneBit(position());
  }

  /// Whether this rank has a child at this distance.
  boolean isParent(int distance) {
    return position() % (2 * distance) == 0 && position() + distance < size;
  }

  /// The position of the child at this distance.
  int child(int distance) {
    return position() + distance;
  }

  /// The distance over which children and parents speak in a round that goes from the root outward.
  int outward(int round) {
    return 1 << (levels() - 1 - round);
  }

  /// The distance over which children and parents speak in a round that goes toward the root.
  int inward(int round) {
    return 1 << round;
  }

  /// Where the parts of all ranks below a position are in a buffer that is in the order of ranks:
  /// two slices if they go over the last rank to rank 0.
  ///
  /// @param count the elements of a rank's part
  List<Slice> below(int position, Space space, long count) {
    int first = rankAt(position);
    int extent = extent(position);
    int behind = Math.min(extent, size - first);
    Slice tail = new Slice(space, first * count, behind * count);
    return behind == extent
        ? List.of(tail)
        : List.of(tail, new Slice(space, 0, (extent - behind) * count));
  }

  /// The messages in which this rank and its parent exchange the parts of all ranks below this one:
  /// one, or two where the parent is the root and has them in two places.
  ///
  /// @param parts in the order of positions
  List<Slice> splitForRoot(Slice parts, long count) {
    int behind = size - rank;
    return parent() != 0 || behind >= extent(position())
        ? List.of(parts)
        : List.of(
            parts.part(0, behind * count),
            parts.part(behind * count, parts.count() - behind * count));
  }
}
