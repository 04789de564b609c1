package org.comm4j.tck;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.schedule.CollectiveKind;
import org.jspecify.annotations.Nullable;

/// Which collectives live ranks are tried with: at most 2,000 calls in which, as far as that goes,
/// each two choices meet (which collective, type with operator, count, root, in place or not, kind
/// of memory, way to call, communicator, numbers). With `-Dcomm4j.full=true` it is every collective
/// × type × operator × count × root × in place or not, with the other choices at random. From a
/// seed, so that all ranks have the same.
final class CallPlan {
  /// The most calls.
  static final int MOST_CALLS = 2000;

  private static final Map<Key, Map<CollectiveKind, List<Planned>>> PLANS =
      new ConcurrentHashMap<>(); // ranks that are threads, and all their checks, have the same
  private static final int CANDIDATES = 12;
  private static final int PRODUCT_COLUMNS = 5; // of a row, from the left

  /// How a call is made.
  enum Mode {
    /// The method that waits.
    BLOCKING,
    /// Started, with others in flight.
    STARTED,
    /// Prepared once, run twice.
    PREPARED
  }

  /// On which communicator.
  enum Group {
    /// All ranks.
    WORLD,
    /// Every other rank.
    SPLIT,
    /// All ranks again.
    DUPLICATE
  }

  /// One call.
  ///
  /// @param count which of the counts that depend on the group's size
  /// @param root which of first, middle and last
  /// @param place of rank 0; other ranks have others now and then
  record Planned(
      CollectiveKind kind,
      DataType type,
      @Nullable ReduceOp op,
      int count,
      int root,
      boolean inPlace,
      CaseMemory.Place place,
      Mode mode,
      Group group,
      boolean ordinary,
      long seed) {

    /// The call in a group of this size.
    CollectiveCase in(int size, Reduction reduction) {
      int elements =
          switch (count) {
            case 0 -> 0;
            case 1 -> 1;
            case 2 -> 7;
            case 3 -> Math.max(0, size - 1);
            case 4 -> size + 1;
            case 5 -> 33;
            default -> seed % 8 == 0 ? 20_011 : 1027;
          };
      int rank = root == 0 ? 0 : root == 1 ? size / 2 : size - 1;
      Values exact = reduction == Reduction.ORDERED ? Values.ANY : Values.EXACT;
      return new CollectiveCase(
          kind,
          type,
          op,
          elements,
          kind.isRooted() ? rank : 0,
          inPlace,
          size,
          ordinary ? Values.ORDINARY : exact,
          seed);
    }
  }

  /// A type, with an operator if it is to be reduced.
  private record Elements(DataType type, @Nullable ReduceOp op) {}

  private static final int[] WIDTHS = {
    CollectiveKind.values().length,
    0,
    7,
    3,
    2,
    CaseMemory.Place.values().length,
    Mode.values().length,
    Group.values().length,
    2
  };

  private final List<Elements> elements;
  private final SplittableRandom random;
  private final int[] widths;
  private final boolean canSplit;
  private final List<Pair> pairs = new ArrayList<>();
  private final int[][] firstPairs; // of each two columns, the index in `pairs`
  private final BitSet open = new BitSet(); // the pairs that no call has yet, by their index

  /// Two choices.
  ///
  /// @param a a column
  /// @param i what is chosen there
  /// @param b a column behind it
  /// @param j what is chosen there
  private record Pair(int a, int i, int b, int j) {}

  private CallPlan(Key key) {
    this.random = new SplittableRandom(key.seed);
    this.elements = elements(key.hasUserOperators);
    this.widths = WIDTHS.clone();
    this.widths[1] = elements.size();
    this.canSplit = key.canSplit;
    this.firstPairs = new int[widths.length][widths.length];
  }

  private static List<Elements> elements(boolean hasUserOperators) {
    List<Elements> all = new ArrayList<>();
    for (DataType type : DataType.values()) {
      all.add(new Elements(type, null));
      for (ReduceOp.Predefined op : ReduceOp.Predefined.values()) {
        if (op.supports(type)) {
          all.add(new Elements(type, op));
        }
      }
    }
    if (hasUserOperators) {
      all.add(new Elements(DataType.INT64, Operators.AFFINE));
      all.add(new Elements(DataType.FLOAT32_PAIR, Operators.AFFINE));
    }
    return all;
  }

  /// What a plan depends on.
  private record Key(long seed, boolean canSplit, boolean hasUserOperators) {}

  /// {@return the calls of one collective}
  static List<Planned> of(CollectiveKind kind, long seed, Capabilities capabilities) {
    Key key =
        new Key(
            seed,
            capabilities.supports(Capability.SPLIT),
            capabilities.supports(Capability.USER_DEFINED_OPERATORS));
    return PLANS.computeIfAbsent(key, CallPlan::make).getOrDefault(kind, List.of());
  }

  private static Map<CollectiveKind, List<Planned>> make(Key key) {
    CallPlan plan = new CallPlan(key);
    List<Planned> calls = Boolean.getBoolean("comm4j.full") ? plan.product() : plan.pairwise();
    return calls.stream().collect(Collectors.groupingBy(Planned::kind));
  }

  private List<Planned> product() {
    List<Planned> calls = new ArrayList<>();
    int[] row = new int[widths.length];
    int column;
    do {
      for (int other = PRODUCT_COLUMNS; other < row.length; other++) {
        row[other] = random.nextInt(widths[other]);
      }
      if (isLegal(row)) {
        calls.add(planned(row));
      }
      column = PRODUCT_COLUMNS - 1;
      while (column >= 0 && ++row[column] == widths[column]) {
        row[column--] = 0;
      }
    } while (column >= 0);
    return calls;
  }

  private List<Planned> pairwise() {
    for (int a = 0; a < widths.length; a++) {
      for (int b = a + 1; b < widths.length; b++) {
        firstPairs[a][b] = pairs.size();
        for (int i = 0; i < widths[a] * widths[b]; i++) {
          pairs.add(new Pair(a, i / widths[b], b, i % widths[b]));
        }
      }
    }
    open.set(0, pairs.size());
    List<Pair> wanted = new ArrayList<>(pairs);
    for (int i = wanted.size() - 1; i > 0; i--) {
      Collections.swap(wanted, i, random.nextInt(i + 1));
    }
    List<Planned> calls = new ArrayList<>();
    for (Pair pair : wanted) {
      if (calls.size() == MOST_CALLS) {
        break;
      }
      int[] row = open.get(index(pair.a, pair.i, pair.b, pair.j)) ? best(pair) : null;
      if (row != null) {
        cover(row);
        calls.add(planned(row));
      }
    }
    return calls;
  }

  private int @Nullable [] best(Pair pair) {
    int[] best = null;
    int most = -1;
    for (int i = 0; i < CANDIDATES; i++) {
      int[] row = candidate(pair);
      if (row == null) {
        continue;
      }
      int fresh = fresh(row);
      if (fresh > most) {
        most = fresh;
        best = row;
      }
    }
    return best;
  }

  /// A random call with these two choices; null if they exclude each other.
  private int @Nullable [] candidate(Pair pair) {
    int[] row = new int[widths.length];
    Arrays.setAll(row, i -> random.nextInt(widths[i]));
    row[pair.a] = pair.i;
    row[pair.b] = pair.j;
    if (isLegal(row)) {
      return row;
    }
    if (pair.a != 0) {
      for (int tries = 0; tries < 50 && !isLegal(row); tries++) {
        row[0] = random.nextInt(widths[0]);
      }
    } else if (pair.b != 1) {
      for (int tries = 0; tries < 50 && !isLegal(row); tries++) {
        row[1] = random.nextInt(widths[1]);
      }
    }
    return isLegal(row) ? row : null;
  }

  private boolean isLegal(int[] row) {
    CollectiveKind kind = CollectiveKind.values()[row[0]];
    return kind.isReducing() == (elements.get(row[1]).op() != null);
  }

  private int fresh(int[] row) {
    int count = 0;
    for (int a = 0; a < row.length; a++) {
      for (int b = a + 1; b < row.length; b++) {
        count += open.get(index(a, row[a], b, row[b])) ? 1 : 0;
      }
    }
    return count;
  }

  private void cover(int[] row) {
    for (int a = 0; a < row.length; a++) {
      for (int b = a + 1; b < row.length; b++) {
        open.clear(index(a, row[a], b, row[b]));
      }
    }
  }

  private int index(int a, int i, int b, int j) {
    return firstPairs[a][b] + i * widths[b] + j;
  }

  private Planned planned(int[] row) {
    Elements what = elements.get(row[1]);
    Group group = Group.values()[row[7]];
    return new Planned(
        CollectiveKind.values()[row[0]],
        what.type(),
        what.op(),
        row[2],
        row[3],
        row[4] == 1,
        CaseMemory.Place.values()[row[5]],
        Mode.values()[row[6]],
        canSplit ? group : Group.WORLD,
        row[8] == 1,
        random.nextLong() >>> 1);
  }
}
