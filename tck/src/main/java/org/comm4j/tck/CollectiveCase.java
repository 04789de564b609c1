package org.comm4j.tck;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.schedule.CollectiveKind;
import org.jspecify.annotations.Nullable;

/// One collective as all its ranks call it, what goes in and what must come out. Every rank can
/// make it alone, from the seed.
///
/// @param kind which collective
/// @param type of the elements; ignored by a barrier
/// @param op null unless the collective reduces
/// @param count the base of all counts: see [Collective][org.comm4j.api.Collective]; V-forms have
///   parts of about that size, some empty, with holes between
/// @param root of a rooted collective
/// @param inPlace in place where there is such a form
/// @param size how many ranks
/// @param values what numbers
/// @param seed decides them
record CollectiveCase(
    CollectiveKind kind,
    DataType type,
    @Nullable ReduceOp op,
    int count,
    int root,
    boolean inPlace,
    int size,
    Values values,
    long seed) {

  /// How a result is held against the expected one.
  enum Bits {
    /// Bit for bit.
    SAME,
    /// As numbers: zeros of both signs are equal.
    EQUAL,
    /// Within the error that the number of terms allows.
    NEAR
  }

  /// Elements that a rank's output must have.
  ///
  /// @param from where they start in the output
  /// @param bytes the elements
  /// @param terms how many ranks contributed
  record Part(int from, byte[] bytes, int terms) {}

  static boolean hasInPlace(CollectiveKind kind) {
    return switch (kind) {
      case BARRIER, BROADCAST, ALL_TO_ALL, ALL_TO_ALL_V -> false;
      default -> true;
    };
  }

  /// The rule that a wrong result breaks.
  static String rule(CollectiveKind kind) {
    return switch (kind) {
      case ALL_REDUCE -> "O1";
      case REDUCE -> "O2";
      case BROADCAST -> "O3";
      case ALL_GATHER -> "O4";
      case ALL_GATHER_V -> "O5";
      case GATHER -> "O6";
      case GATHER_V -> "O7";
      case SCATTER -> "O8";
      case SCATTER_V -> "O9";
      case REDUCE_SCATTER -> "O10";
      case REDUCE_SCATTER_V -> "O11";
      case ALL_TO_ALL -> "O12";
      case ALL_TO_ALL_V -> "O13";
      case SCAN -> "O14";
      case EXCLUSIVE_SCAN -> "O15";
      case BARRIER -> "O16";
    };
  }

  /// How results are compared: the order of combining is known if it is the left fold, or does not
  /// matter.
  Bits bits(Reduction reduction) {
    if (op == null || reduction == Reduction.ORDERED || op instanceof ReduceOp.UserDefined) {
      return Bits.SAME;
    }
    boolean arithmetic = op == ReduceOp.SUM || op == ReduceOp.PRODUCT || op == ReduceOp.AVERAGE;
    boolean rounds = type.kind() == Kind.FLOAT || type.kind() == Kind.COMPLEX;
    if (!arithmetic || !rounds) {
      return Bits.SAME;
    }
    if (values != Values.EXACT) {
      return Bits.NEAR;
    }
    return type.kind() == Kind.COMPLEX && op == ReduceOp.PRODUCT ? Bits.EQUAL : Bits.SAME;
  }

  // --- who has what ---

  /// Where every rank's part is, of the V-forms with one partition, as a rank has them: uneven,
  /// some empty, on all ranks alike; one behind the other, or with holes between them and not in
  /// the order of the ranks, as each rank likes.
  Partition parts(int rank) {
    long[] counts = counts(new SplittableRandom(seed ^ 0x5bd1e995));
    SplittableRandom own = new SplittableRandom(seed + 13L * rank);
    return own.nextInt(3) == 0 ? Partition.of(counts) : scattered(counts, own);
  }

  /// What a rank sends to each other one in an all-to-all-V.
  Partition sendParts(int rank) {
    SplittableRandom random = new SplittableRandom(seed + 31L * rank);
    return scattered(counts(random), random);
  }

  Partition receiveParts(int rank) {
    long[] counts = new long[size];
    for (int peer = 0; peer < size; peer++) {
      counts[peer] = sendParts(peer).count(rank);
    }
    return scattered(counts, new SplittableRandom(seed - 17L * rank));
  }

  private long[] counts(SplittableRandom random) {
    long[] counts = new long[size];
    for (int rank = 0; rank < size; rank++) {
      counts[rank] = random.nextInt(4) == 0 ? 0 : random.nextInt(2 * count + 1);
    }
    return counts;
  }

  private static Partition scattered(long[] counts, SplittableRandom random) {
    int size = counts.length;
    int first = random.nextInt(Math.max(1, size));
    int step = random.nextBoolean() ? 1 : Math.max(1, size - 1); // forwards or backwards
    long[] displacements = new long[size];
    long at = random.nextInt(3);
    for (int i = 0, rank = first; i < size; i++, rank = (rank + step) % size) {
      displacements[rank] = at;
      at += counts[rank] + random.nextInt(3);
    }
    return Partition.of(counts, displacements);
  }

  private int end(Partition parts) {
    return (int) parts.extent() + (int) (seed & 1); // sometimes longer than needed
  }

  /// How many elements a rank's input has; -1 if it has none.
  int inputCount(int rank) {
    return switch (kind) {
      case BARRIER -> -1;
      case ALL_REDUCE, REDUCE, BROADCAST, SCAN, EXCLUSIVE_SCAN, ALL_GATHER, GATHER -> count;
      case ALL_GATHER_V, GATHER_V -> (int) parts(rank).count(rank);
      case SCATTER -> rank == root ? count * size : ignored(rank);
      case SCATTER_V -> rank == root ? end(parts(rank)) : ignored(rank);
      case REDUCE_SCATTER, ALL_TO_ALL -> count * size;
      case REDUCE_SCATTER_V -> end(parts(rank));
      case ALL_TO_ALL_V -> end(sendParts(rank));
    };
  }

  /// How many elements a rank's output has; -1 if it has none.
  int outputCount(int rank) {
    return switch (kind) {
      case BARRIER -> -1;
      case ALL_REDUCE, BROADCAST, SCAN, EXCLUSIVE_SCAN, SCATTER, REDUCE_SCATTER -> count;
      case REDUCE -> rank == root ? count : ignored(rank);
      case ALL_GATHER, ALL_TO_ALL -> count * size;
      case ALL_GATHER_V -> end(parts(rank));
      case GATHER -> rank == root ? count * size : ignored(rank);
      case GATHER_V -> rank == root ? end(parts(rank)) : ignored(rank);
      case SCATTER_V, REDUCE_SCATTER_V -> (int) parts(rank).count(rank);
      case ALL_TO_ALL_V -> end(receiveParts(rank));
    };
  }

  /// How many elements a rank that is not the root gives where the root's would be: none, or some
  /// that must be ignored, however few they are.
  private int ignored(int rank) {
    return Math.floorMod((seed >> 1) + rank, 3) - 1;
  }

  /// Where, in place, the smaller buffer lies in the larger one.
  int offsetInPlace(int rank) {
    return switch (kind) {
      case ALL_GATHER, GATHER, SCATTER, REDUCE_SCATTER -> count * rank;
      case ALL_GATHER_V, GATHER_V, SCATTER_V, REDUCE_SCATTER_V ->
          (int) parts(rank).displacement(rank);
      default -> 0;
    };
  }

  /// Whether this rank's call is in place.
  boolean isInPlace(int rank) {
    if (kind == CollectiveKind.BROADCAST) {
      return true; // one buffer for both
    }
    boolean atRoot = !kind.isRooted() || rank == root;
    return inPlace && hasInPlace(kind) && atRoot;
  }

  // --- what goes in, what comes out ---

  /// Makes the inputs of all ranks and what comes out.
  Expected expected() {
    return new Expected(this);
  }

  /// Inputs and outputs of a case, made once for all ranks.
  static final class Expected {
    private final CollectiveCase of;
    private final List<byte[]> inputs;
    private byte @Nullable [] whole;

    Expected(CollectiveCase of) {
      this.of = of;
      this.inputs =
          IntStream.range(0, of.size)
              .mapToObj(rank ->
                  of.values.make(
                      of.type,
                      Math.max(0, of.inputCount(rank)),
                      of.op,
                      of.seed * 0x9e3779b97f4a7c15L + rank))
              .toList();
    }

    CollectiveCase of() {
      return of;
    }

    byte[] input(int rank) {
      return inputs.get(rank);
    }

    /// What has been combined to a rank's part of the result, from its first element on.
    List<byte[]> terms(int rank, Part part) {
      return switch (of.kind) {
        case SCAN, EXCLUSIVE_SCAN -> inputs.subList(0, part.terms());
        case REDUCE_SCATTER, REDUCE_SCATTER_V -> forPart(rank);
        default -> inputs;
      };
    }

    /// What a rank's output must hold afterwards, where it is written at all.
    List<Part> output(int rank) {
      return parts(rank).stream().filter(part -> part.bytes().length > 0).toList();
    }

    private List<Part> parts(int rank) {
      int size = of.size;
      return switch (of.kind) {
        case BARRIER -> List.of();
        case ALL_REDUCE -> List.of(reduced());
        case REDUCE -> rank == of.root ? List.of(reduced()) : List.of();
        case SCAN -> List.of(reduced(rank + 1));
        case EXCLUSIVE_SCAN -> rank == 0 ? List.of() : List.of(reduced(rank));
        case BROADCAST ->
            rank == of.root ? List.of() : List.of(new Part(0, inputs.get(of.root), 1));
        case ALL_GATHER -> gathered(Partition.even(size, of.count));
        case GATHER -> rank == of.root ? gathered(Partition.even(size, of.count)) : List.of();
        case ALL_GATHER_V -> gathered(of.parts(rank));
        case GATHER_V -> rank == of.root ? gathered(of.parts(rank)) : List.of();
        case SCATTER ->
            List.of(cut(inputs.get(of.root), Partition.even(size, of.count), rank, 0, 1));
        case SCATTER_V -> List.of(cut(inputs.get(of.root), of.parts(of.root), rank, 0, 1));
        case REDUCE_SCATTER -> List.of(cut(whole(), Partition.even(size, of.count), rank, 0, size));
        case REDUCE_SCATTER_V ->
            List.of(new Part(0, Oracle.fold(op(), of.type, forPart(rank)), of.size));
        case ALL_TO_ALL -> exchanged(rank, Partition.even(size, of.count));
        case ALL_TO_ALL_V -> exchanged(rank, of.receiveParts(rank));
      };
    }

    private byte[] whole() {
      byte[] known = whole;
      if (known == null) {
        known = Oracle.fold(op(), of.type, inputs);
        whole = known;
      }
      return known;
    }

    private Part reduced() {
      return new Part(0, whole(), of.size);
    }

    private Part reduced(int ranks) {
      return new Part(0, Oracle.fold(op(), of.type, inputs.subList(0, ranks)), ranks);
    }

    /// Every rank's values for a rank's part.
    private List<byte[]> forPart(int rank) {
      return IntStream.range(0, of.size)
          .mapToObj(peer -> {
            boolean isV = of.kind == CollectiveKind.REDUCE_SCATTER_V;
            Partition parts = isV ? of.parts(peer) : Partition.even(of.size, of.count);
            return cut(inputs.get(peer), parts, rank, 0, 1).bytes();
          })
          .toList();
    }

    private ReduceOp op() {
      return Objects.requireNonNull(of.op);
    }

    private List<Part> gathered(Partition parts) {
      List<Part> all = new ArrayList<>();
      for (int rank = 0; rank < of.size; rank++) {
        all.add(new Part((int) parts.displacement(rank), inputs.get(rank), 1));
      }
      return all;
    }

    private List<Part> exchanged(int rank, Partition to) {
      List<Part> all = new ArrayList<>();
      for (int peer = 0; peer < of.size; peer++) {
        Partition from =
            of.kind == CollectiveKind.ALL_TO_ALL
                ? Partition.even(of.size, of.count)
                : of.sendParts(peer);
        all.add(cut(inputs.get(peer), from, rank, (int) to.displacement(peer), 1));
      }
      return all;
    }

    private Part cut(byte[] from, Partition parts, int rank, int to, int terms) {
      int element = of.type.bytes();
      int count = (int) parts.count(rank) * element;
      int start = count == 0 ? 0 : (int) parts.displacement(rank) * element;
      return new Part(to, Arrays.copyOfRange(from, start, start + count), terms);
    }
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(kind.label()).append('(');
    if (op != null) {
      text.append(op.name()).append(", ");
    }
    text.append(type).append(" × ").append(count);
    if (kind.isRooted()) {
      text.append(", root ").append(root);
    }
    if (inPlace && hasInPlace(kind)) {
      text.append(", in place");
    }
    return text.append(") of ")
        .append(size)
        .append(" ranks, ")
        .append(values)
        .append(" values, seed ")
        .append(seed)
        .toString();
  }
}
