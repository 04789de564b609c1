package org.comm4j.core.engine;

import org.comm4j.api.Collective;
import org.comm4j.api.DataType;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.Shape;
import org.jspecify.annotations.Nullable;

/// The shape of a call: what is left of it without its memory.
public final class Shapes {
  private Shapes() {}

  /// The shape that this rank's call has in a group.
  ///
  /// @param rank the caller's
  /// @param size the group's
  /// @param windowBytes what one rank can publish at once to all; 0 where it can't
  /// @param hosts who shares memory, where some ranks do and some don't; else null
  public static Shape of(
      Collective call,
      int rank,
      int size,
      Reduction reduction,
      long windowBytes,
      @Nullable Hosts hosts) {
    return of(
        CollectiveKind.of(call),
        size,
        count(call, size),
        call instanceof Collective.Rooted rooted ? rooted.root() : 0,
        parts(call, rank),
        call instanceof Collective.AllToAllV c ? c.receiveParts() : null,
        Buffers.type(call),
        CallSignature.op(call),
        reduction,
        windowBytes,
        hosts);
  }

  /// The shape that a rank's call of a kind would have, as [#of] says, where all parts are alike.
  ///
  /// @param count the elements of a buffer, or of a part where it has one for every rank
  /// @param root whoever is it, if the kind has one
  /// @param type of the elements, if the kind has some
  /// @param op what is reduced with, if the kind reduces
  public static Shape even(
      CollectiveKind kind,
      int rank,
      int size,
      long count,
      int root,
      DataType type,
      ReduceOp op,
      Reduction reduction,
      long windowBytes,
      @Nullable Hosts hosts) {
    Partition parts = Partition.even(size, count);
    boolean hasCount =
        switch (kind) {
          case BARRIER, ALL_GATHER_V, REDUCE_SCATTER_V, ALL_TO_ALL_V -> false;
          default -> true;
        };
    boolean knowsParts =
        switch (kind) {
          case ALL_GATHER_V, REDUCE_SCATTER_V, ALL_TO_ALL_V -> true;
          case GATHER_V, SCATTER_V -> rank == root;
          default -> false;
        };
    return of(
        kind,
        size,
        hasCount ? count : 0,
        kind.isRooted() ? root : 0,
        knowsParts ? parts : null,
        kind == CollectiveKind.ALL_TO_ALL_V ? parts : null,
        kind == CollectiveKind.BARRIER ? DataType.UINT8 : type,
        kind.isReducing() ? op : null,
        reduction,
        windowBytes,
        hosts);
  }

  private static Shape of(
      CollectiveKind kind,
      int size,
      long count,
      int root,
      @Nullable Partition parts,
      @Nullable Partition receiveParts,
      DataType type,
      @Nullable ReduceOp op,
      Reduction reduction,
      long windowBytes,
      @Nullable Hosts hosts) {
    DataType accumulator = op == null ? type : op.accumulationType(type);
    boolean ordered =
        op != null && (reduction == Reduction.ORDERED || op instanceof ReduceOp.UserDefined);
    return new Shape(
        kind,
        size,
        count,
        root,
        parts,
        receiveParts,
        type.bytes(),
        accumulator.bytes(),
        accumulator != type,
        ordered,
        windowBytes,
        hosts);
  }

  /// Whether a call has this shape, given that its type and operator are those of the call that the
  /// shape was made for. Equal partitions that are not the same count as different: comparing them
  /// takes longer than a new shape.
  static boolean isOf(Shape shape, Collective call, int rank) {
    return CollectiveKind.of(call) == shape.kind()
        && count(call, shape.size()) == shape.count()
        && (!(call instanceof Collective.Rooted rooted) || rooted.root() == shape.root())
        && parts(call, rank) == shape.parts()
        && (!(call instanceof Collective.AllToAllV c) || c.receiveParts() == shape.receiveParts());
  }

  /// A number that calls of one shape share, and few others.
  static long key(Shape shape) {
    return key(shape.kind(), shape.count());
  }

  static long key(Collective call, int size) {
    return key(CollectiveKind.of(call), count(call, size));
  }

  private static long key(CollectiveKind kind, long count) {
    return count << Byte.SIZE | kind.ordinal();
  }

  private static long count(Collective call, int size) {
    return switch (call) {
      case Collective.AllReduce c -> c.input().count();
      case Collective.Reduce c -> c.input().count();
      case Collective.Broadcast c -> c.data().count();
      case Collective.AllGather c -> c.input().count();
      case Collective.Gather c -> c.input().count();
      case Collective.GatherV c -> c.input().count();
      case Collective.Scatter c -> c.output().count();
      case Collective.ScatterV c -> c.output().count();
      case Collective.ReduceScatter c -> c.output().count();
      case Collective.AllToAll c -> c.input().count() / size;
      case Collective.Scan c -> c.input().count();
      case Collective.ExclusiveScan c -> c.input().count();
      case Collective.AllGatherV _,
          Collective.ReduceScatterV _,
          Collective.AllToAllV _,
          Collective.Barrier _ ->
          0;
    };
  }

  private static @Nullable Partition parts(Collective call, int rank) {
    return switch (call) {
      case Collective.AllGatherV c -> c.parts();
      case Collective.ReduceScatterV c -> c.parts();
      case Collective.AllToAllV c -> c.sendParts();
      case Collective.GatherV c -> rank == c.root() ? c.parts() : null;
      case Collective.ScatterV c -> rank == c.root() ? c.parts() : null;
      default -> null;
    };
  }
}
