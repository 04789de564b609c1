package org.comm4j.tck;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
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
          CollectiveCase.isRooted(kind) ? rank : 0,
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
  private final Set<Long> open = new HashSet<>();
  private final boolean canSplit;

  private CallPlan(long seed, Capabilities capabilities) {
    this.random = new SplittableRandom(seed);
    this.elements = elements(capabilities);
    this.widths = WIDTHS.clone();
    this.widths[1] = elements.size();
    this.canSplit = capabilities.supports(Capability.SPLIT);
  }

  private static List<Elements> elements(Capabilities capabilities) {
    List<Elements> all = new ArrayList<>();
    for (DataType type : DataType.values()) {
      all.add(new Elements(type, null));
      for (ReduceOp.Predefined op : ReduceOp.Predefined.values()) {
        if (op.supports(type)) {
          all.add(new Elements(type, op));
        }
      }
    }
    if (capabilities.supports(Capability.USER_DEFINED_OPERATORS)) {
      all.add(new Elements(DataType.INT64, Operators.AFFINE));
      all.add(new Elements(DataType.FLOAT32_PAIR, Operators.AFFINE));
    }
    return all;
  }

  /// Makes a plan.
  static List<Planned> of(long seed, Capabilities capabilities) {
    CallPlan plan = new CallPlan(seed, capabilities);
    return Boolean.getBoolean("comm4j.full") ? plan.product() : plan.make();
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

  private List<Planned> make() {
    for (int a = 0; a < widths.length; a++) {
      for (int b = a + 1; b < widths.length; b++) {
        for (int i = 0; i < widths[a] * widths[b]; i++) {
          open.add(pair(a, i / widths[b], b, i % widths[b]));
        }
      }
    }
    List<Planned> calls = new ArrayList<>();
    List<Long> wanted = new ArrayList<>(open);
    wanted.sort(null);
    for (int i = wanted.size() - 1; i > 0; i--) {
      int j = random.nextInt(i + 1);
      long swapped = wanted.get(i);
      wanted.set(i, wanted.get(j));
      wanted.set(j, swapped);
    }
    for (long pair : wanted) {
      if (calls.size() == MOST_CALLS) {
        break;
      }
      int[] row = open.contains(pair) ? best(pair) : null;
      if (row != null) {
        cover(row);
        calls.add(planned(row));
      }
    }
    return calls;
  }

  private int @Nullable [] best(long pair) {
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
  private int @Nullable [] candidate(long pair) {
    int[] row = new int[widths.length];
    Arrays.setAll(row, i -> random.nextInt(widths[i]));
    int a = (int) (pair >>> 48);
    int b = (int) (pair >>> 16 & 0xffff);
    row[a] = (int) (pair >>> 32 & 0xffff);
    row[b] = (int) (pair & 0xffff);
    if (isLegal(row)) {
      return row;
    }
    if (a != 0) {
      for (int tries = 0; tries < 50 && !isLegal(row); tries++) {
        row[0] = random.nextInt(widths[0]);
      }
    } else if (b != 1) {
      for (int tries = 0; tries < 50 && !isLegal(row); tries++) {
        row[1] = random.nextInt(widths[1]);
      }
    }
    return isLegal(row) ? row : null;
  }

  private boolean isLegal(int[] row) {
    CollectiveKind kind = CollectiveKind.values()[row[0]];
    return CollectiveCase.isReducing(kind) == (elements.get(row[1]).op() != null);
  }

  private int fresh(int[] row) {
    int count = 0;
    for (int a = 0; a < row.length; a++) {
      for (int b = a + 1; b < row.length; b++) {
        count += open.contains(pair(a, row[a], b, row[b])) ? 1 : 0;
      }
    }
    return count;
  }

  private void cover(int[] row) {
    for (int a = 0; a < row.length; a++) {
      for (int b = a + 1; b < row.length; b++) {
        open.remove(pair(a, row[a], b, row[b]));
      }
    }
  }

  private static long pair(int a, int i, int b, int j) {
    return (long) a << 48 | (long) i << 32 | (long) b << 16 | j;
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
