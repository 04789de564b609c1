package org.comm4j.core.schedule;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// What an element of a buffer holds, as a symbol: an element of a rank's input, two expressions
/// combined, or a finished reduction. Equal expressions have equal numbers, so comparing what two
/// ranks hold is comparing two numbers. Number 0 is memory that nobody has written.
final class Expressions {
  static final int UNWRITTEN = 0;
  private static final int LEAF = -1;

  /// The number of a rank's first element.
  private final int[] firstLeaf;

  /// Per number: the left side of a combination, what a finish finishes, or the rank of a leaf.
  private int[] left = new int[1024];

  /// Per number: the right side of a combination, [#LEAF], or `-1 - divisor` of a finish.
  private int[] right = new int[1024];

  /// Per number: which element of the inputs it is about.
  private int[] element = new int[1024];

  /// Per number: how many inputs take part.
  private int[] contributions = new int[1024];

  /// Per number: the sum of a random number for each rank that takes part. With the count it tells
  /// which they are, but for a chance of 1 in 2⁶⁴.
  private long[] fingerprint = new long[1024];

  private int next = 1;

  /// Numbers of combinations and finishes by `left` and `right`: open addressing.
  private int[] table = new int[4096];

  private int entries;

  /// Per element: its left folds over ever more ranks.
  private final Map<Long, int[]> leftFolds = new HashMap<>();

  Expressions(int ranks, long[] inputCounts) {
    firstLeaf = new int[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      firstLeaf[rank] = next;
      for (int index = 0; index < inputCounts[rank]; index++) {
        add(rank, LEAF, index, 1, fingerprintOf(rank));
      }
    }
  }

  /// An element of a rank's input.
  int leaf(int rank, long index) {
    return firstLeaf[rank] + Math.toIntExact(index);
  }

  /// `low ∘ high`.
  ///
  /// @throws IllegalArgumentException saying why these two can't be combined
  int combine(int low, int high) {
    refuseFinished(low);
    refuseFinished(high);
    if (element[low] != element[high]) {
      throw new IllegalArgumentException(
          "combines element %d with element %d: %s with %s"
              .formatted(element[low], element[high], text(low), text(high)));
    }
    return intern(
        low, high, contributions[low] + contributions[high], fingerprint[low] + fingerprint[high]);
  }

  /// A finished reduction.
  ///
  /// @throws IllegalArgumentException if it is finished already
  int finish(int expression, int divisor) {
    refuseFinished(expression);
    return intern(expression, -1 - divisor, contributions[expression], fingerprint[expression]);
  }

  /// `x0 ∘ x1 ∘ … ∘ x(last)`, from the left, finished.
  int finishedLeftFold(int last, long index) {
    int[] folds =
        leftFolds.computeIfAbsent(
            index,
            _ -> {
              int[] all = new int[firstLeaf.length];
              all[0] = leaf(0, index);
              for (int rank = 1; rank < all.length; rank++) {
                all[rank] = combine(all[rank - 1], leaf(rank, index));
              }
              return all;
            });
    return finish(folds[last], last + 1);
  }

  boolean isFinished(int expression) {
    return right[expression] < LEAF;
  }

  /// Whether it is one finished reduction of `x0 … x(last)`, each once, in any order.
  boolean isFinishedReduction(int expression, int last, long index) {
    if (!isFinished(expression)
        || element[expression] != index
        || -1 - right[expression] != last + 1
        || contributions[expression] != last + 1) {
      return false;
    }
    long expected = 0;
    for (int rank = 0; rank <= last; rank++) {
      expected += fingerprintOf(rank);
    }
    return fingerprint[expression] == expected;
  }

  /// For messages: `x2[5]`, `(x0 ∘ x1)[5]`, `finish((x0 ∘ x1)[5] / 2)`.
  String text(int expression) {
    if (expression == UNWRITTEN) {
      return "nothing";
    }
    StringBuilder text = new StringBuilder();
    if (isFinished(expression)) {
      return text.append("finish(")
          .append(text(left[expression]))
          .append(" / ")
          .append(-1 - right[expression])
          .append(')')
          .toString();
    }
    append(text, expression);
    return text.append('[').append(element[expression]).append(']').toString();
  }

  private void append(StringBuilder text, int expression) {
    if (text.length() > 200) {
      text.append('…');
    } else if (right[expression] == LEAF) {
      text.append('x').append(left[expression]);
    } else {
      text.append('(');
      append(text, left[expression]);
      text.append(" ∘ ");
      append(text, right[expression]);
      text.append(')');
    }
  }

  private void refuseFinished(int expression) {
    if (isFinished(expression)) {
      throw new IllegalArgumentException("uses a finished value again: " + text(expression));
    }
  }

  private int intern(int low, int high, int contributionCount, long ranks) {
    int slot = slot(low, high);
    if (table[slot] != 0) {
      return table[slot];
    }
    int number = add(low, high, element[low], contributionCount, ranks);
    table[slot] = number;
    if (++entries * 2 > table.length) {
      rehash();
    }
    return number;
  }

  /// Where the table has this pair, or a free place for it.
  private int slot(int low, int high) {
    int mask = table.length - 1;
    int slot = (int) SplitMix.mixed(((long) low << 32) ^ (high & 0xffff_ffffL)) & mask;
    while (table[slot] != 0 && (left[table[slot]] != low || right[table[slot]] != high)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  private void rehash() {
    int[] old = table;
    table = new int[old.length * 2];
    for (int number : old) {
      if (number != 0) {
        table[slot(left[number], right[number])] = number;
      }
    }
  }

  private int add(int low, int high, int index, int contributionCount, long ranks) {
    if (next == left.length) {
      left = Arrays.copyOf(left, next * 2);
      right = Arrays.copyOf(right, next * 2);
      element = Arrays.copyOf(element, next * 2);
      contributions = Arrays.copyOf(contributions, next * 2);
      fingerprint = Arrays.copyOf(fingerprint, next * 2);
    }
    left[next] = low;
    right[next] = high;
    element[next] = index;
    contributions[next] = contributionCount;
    fingerprint[next] = ranks;
    return next++;
  }

  private static long fingerprintOf(int rank) {
    return SplitMix.mixed(rank);
  }
}
