package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.Collective;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.SplitMix;
import org.jspecify.annotations.Nullable;

/// What the ranks of a collective must agree on, in three longs that travel with its messages: so a
/// rank that calls something else is found out by the first rank that hears from it, and named.
///
/// @param what kind (bits 0..7), operator (8..15), type (16..23), purpose (24..31), root (32..63)
/// @param count as [Shape#count()]; 0 where ranks may differ
/// @param detail hashes of the operator's name and the partition (upper half), the algorithm's name
///   (lower half)
/// @param operator the name of a user-defined operator, which does not travel, and so is no part of
///   what is compared; null where there is none, or it is a peer's
public record CallSignature(long what, long count, long detail, @Nullable String operator) {
  /// Who wants the call.
  public enum Purpose {
    USER(""),
    SPLIT("split"),
    DUPLICATE("duplicate"),
    REGION("createRegion"),
    DEVICE_REGION("createDeviceRegion"),
    REGISTER("register"),
    FENCE("fence"),
    DEVICE_FENCE("device region's fence"),
    NODE_BARRIER("barrier"),
    LANE("the agreement on a lane");

    private final String label;

    Purpose(String label) {
      this.label = label;
    }

    /// {@return what messages call it; empty for users' calls, which have labels of their own}
    public String label() {
      return label;
    }
  }

  /// As a peer's travels.
  public CallSignature(long what, long count, long detail) {
    this(what, count, detail, null);
  }

  private static final int NO_OP = 0;
  private static final int USER_OP = 255;
  private static final int NO_TYPE = 255;

  /// What this rank says of a call that goes by no plan of ours.
  public static CallSignature of(Collective call, int rank, int size, Purpose purpose) {
    return of(
        Shapes.of(call, rank, size, Reduction.FAST, 0, null),
        call instanceof Collective.Barrier ? null : Buffers.type(call),
        op(call),
        purpose,
        "");
  }

  /// What this rank says of a call.
  ///
  /// @param type of the elements; null for a barrier
  /// @param op null where nothing is reduced
  /// @param algorithm of which all ranks must have the same
  public static CallSignature of(
      Shape shape,
      @Nullable DataType type,
      @Nullable ReduceOp op,
      Purpose purpose,
      String algorithm) {
    long what =
        shape.kind().ordinal()
            | (long) code(op) << 8
            | (long) (type == null ? NO_TYPE : type.id()) << 16
            | (long) purpose.ordinal() << 24
            | (long) shape.root() << 32;
    long parts = hasParts(shape.kind()) ? countsHash(shape) : 0;
    long details = 31 * parts + nameHash(op);
    return new CallSignature(
        what,
        shape.kind().isVaried() ? 0 : shape.count(),
        details << 32 | Integer.toUnsignedLong(algorithm.hashCode()),
        op instanceof ReduceOp.UserDefined own ? own.name() : null);
  }

  /// Whether all ranks name the counts of all, which are compared by their hash.
  private static boolean hasParts(CollectiveKind kind) {
    return kind == CollectiveKind.ALL_GATHER_V || kind == CollectiveKind.REDUCE_SCATTER_V;
  }

  /// Why a peer's signature is not this one; called only when it is not.
  public String difference(int rank, int peer, long sequence, long peerWhat, long peerCount) {
    String mine = describe(what, count);
    String theirs = describe(peerWhat, peerCount);
    return "rank %d's collective #%d is %s%s but rank %d started %s"
        .formatted(peer, sequence, theirs, mine.equals(theirs) ? explanation() : "", rank, this);
  }

  /// What may differ in calls that are described alike.
  private String explanation() {
    List<String> causes = new ArrayList<>();
    if ((what >>> 24 & 0xff) == Purpose.USER.ordinal()) {
      if (hasParts(CollectiveKind.values()[(int) (what & 0xff)])) {
        causes.add("other counts per rank");
      }
      if ((what >>> 8 & 0xff) == USER_OP) {
        causes.add("a user-defined operator of another name");
      }
    }
    causes.add("another algorithm");
    return " with %s (expected: the same arguments and the same COMM_TUNING on all ranks)"
        .formatted(String.join(" or ", causes));
  }

  /// {@return all of it in one long} Other calls have another one, but for one in 2⁶⁴.
  public long digest() {
    return SplitMix.mixed(SplitMix.mixed(SplitMix.mixed(what) ^ count) ^ detail);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof CallSignature that
        && what == that.what
        && count == that.count
        && detail == that.detail;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(digest());
  }

  @Override
  public String toString() {
    return describe(what, count, operator);
  }

  /// A peer's, of whose operator nobody here knows the name.
  static String describe(long what, long count) {
    return describe(what, count, null);
  }

  /// For example `reduce(SUM, FLOAT32 × 1024, root 0)`.
  private static String describe(long what, long count, @Nullable String operator) {
    int kindIndex = (int) (what & 0xff);
    int opCode = (int) (what >>> 8 & 0xff);
    int typeId = (int) (what >>> 16 & 0xff);
    int purposeIndex = (int) (what >>> 24 & 0xff);
    int root = (int) (what >>> 32);
    if (kindIndex >= CollectiveKind.values().length || purposeIndex >= Purpose.values().length) {
      return "an unknown call";
    }
    Purpose purpose = Purpose.values()[purposeIndex];
    if (purpose != Purpose.USER) {
      return purpose.label + "()";
    }
    CollectiveKind kind = CollectiveKind.values()[kindIndex];
    StringBuilder text = new StringBuilder(kind.label()).append('(');
    if (opCode != NO_OP) {
      text.append(
              opCode == USER_OP
                  ? userDefined(operator)
                  : ReduceOp.Predefined.values()[opCode - 1].name())
          .append(", ");
    }
    if (typeId != NO_TYPE) {
      text.append(DataType.ofId(typeId));
      if (!kind.isVaried() && !hasParts(kind)) {
        text.append(" × ").append(count);
      }
    }
    if (kind.isRooted()) {
      text.append(", root ").append(root);
    }
    return text.append(')').toString();
  }

  private static String userDefined(@Nullable String name) {
    return name == null ? "a user-defined operator" : "user-defined '%s'".formatted(name);
  }

  private static int code(@Nullable ReduceOp op) {
    return switch (op) {
      case null -> NO_OP;
      case ReduceOp.Predefined predefined -> 1 + predefined.ordinal();
      case ReduceOp.UserDefined _ -> USER_OP;
    };
  }

  /// Of a user-defined operator. Names that look alike, as those of versions do, have others: each
  /// letter is mixed in, the last one too.
  private static long nameHash(@Nullable ReduceOp op) {
    long hash = 0;
    if (op instanceof ReduceOp.UserDefined(var name, _)) {
      for (int at = 0; at < name.length(); at++) {
        hash = SplitMix.mixed(hash ^ name.charAt(at));
      }
    }
    return hash >>> 32;
  }

  private static long countsHash(Shape shape) {
    long hash = 1;
    var parts = shape.parts();
    for (int rank = 0; parts != null && rank < parts.ranks(); rank++) {
      hash = SplitMix.mixed(hash ^ parts.count(rank));
    }
    return (int) hash;
  }

  /// The operator of a call; null where nothing is reduced.
  public static @Nullable ReduceOp op(Collective call) {
    return call instanceof Collective.Reducing reducing ? reducing.op() : null;
  }
}
