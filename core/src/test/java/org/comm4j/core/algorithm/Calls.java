package org.comm4j.core.algorithm;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.comm4j.api.Partition;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.ScheduleCheck;
import org.comm4j.core.schedule.Shape;
import org.jspecify.annotations.Nullable;

/// Shapes to try algorithms with.
///
/// @param windowBytes of all ranks, or of those that share a host
/// @param hosts a way to distribute the ranks over hosts, of [#HOSTS], or [#PAIRS]; 0 for none
record Calls(
    CollectiveKind kind,
    int size,
    long count,
    int root,
    boolean widened,
    long windowBytes,
    int hosts) {
  /// How many ways there are to distribute ranks over hosts, with none.
  static final int HOSTS = 6;

  /// A further way: two ranks on each host.
  static final int PAIRS = HOSTS;

  private static final Map<Layout, Hosts> LAYOUTS = new ConcurrentHashMap<>();

  /// Messages, in a type that is its own accumulation type.
  static Calls of(CollectiveKind kind, int size, long count) {
    return new Calls(kind, size, count, 0, false, 0, 0);
  }

  Calls withRoot(int root) {
    return new Calls(kind, size, count, root, widened, windowBytes, hosts);
  }

  Calls withWidened(boolean widened) {
    return new Calls(kind, size, count, root, widened, windowBytes, hosts);
  }

  Calls withWindow(long windowBytes) {
    return new Calls(kind, size, count, root, widened, windowBytes, hosts);
  }

  Calls withHosts(int way) {
    return new Calls(kind, size, count, root, widened, windowBytes, way);
  }

  private record Layout(int size, int way, long windowBytes) {
    Hosts make() {
      int[] labels =
          IntStream.range(0, size)
              .map(rank ->
                  switch (way) {
                    case 1 -> rank * 2 / size; // two, one after the other
                    case 2 -> rank % 3; // three in turn
                    case 3 -> Math.min(rank, 1); // the first rank alone
                    case 4 -> rank == size - 1 ? 1 : 0; // the last rank alone
                    case 5 -> rank % 5 * rank % 4; // uneven and mixed
                    case PAIRS -> rank / 2;
                    default -> 0;
                  })
              .toArray();
      return Hosts.of(labels, windowBytes);
    }
  }

  /// Null where no two ranks are on one host, or all are.
  private @Nullable Hosts layout() {
    Hosts layout = LAYOUTS.computeIfAbsent(new Layout(size, hosts, windowBytes), Layout::make);
    return layout.count() == 1 ? null : layout;
  }

  boolean isRooted() {
    return switch (kind) {
      case BROADCAST, REDUCE, GATHER, GATHER_V, SCATTER, SCATTER_V -> true;
      default -> false;
    };
  }

  boolean isReduction() {
    return switch (kind) {
      case REDUCE, ALL_REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, SCAN, EXCLUSIVE_SCAN -> true;
      default -> false;
    };
  }

  /// Whether a buffer holds as many parts of `count` elements as there are ranks.
  boolean hasPartPerRank() {
    return switch (kind) {
      case BARRIER, BROADCAST, REDUCE, ALL_REDUCE, SCAN, EXCLUSIVE_SCAN -> false;
      default -> true;
    };
  }

  boolean hasInPlace() {
    return switch (kind) {
      case BARRIER, BROADCAST, ALL_TO_ALL, ALL_TO_ALL_V -> false;
      default -> true;
    };
  }

  /// What one rank knows. The V-forms have parts of different sizes, some empty, and gaps between
  /// them, all from the count.
  Shape shape(int rank) {
    return switch (kind) {
      case ALL_GATHER_V, REDUCE_SCATTER_V -> shape(0, uneven(0), null);
      case GATHER_V, SCATTER_V -> {
        Partition parts = uneven(0);
        yield shape(parts.count(rank), rank == root ? parts : null, null);
      }
      case ALL_TO_ALL_V -> {
        long[] sent = new long[size];
        long[] received = new long[size];
        for (int peer = 0; peer < size; peer++) {
          sent[peer] = uneven(rank).count(peer);
          received[peer] = uneven(peer).count(rank);
        }
        yield shape(0, Partition.of(sent), Partition.of(received));
      }
      case BARRIER -> shape(0, null, null);
      default -> shape(count, null, null);
    };
  }

  private Shape shape(long count, @Nullable Partition parts, @Nullable Partition receiveParts) {
    return new Shape(
        kind,
        size,
        count,
        root,
        parts,
        receiveParts,
        widened ? 2 : 4,
        4,
        widened,
        false,
        hosts == 0 ? windowBytes : 0,
        layout());
  }

  private Partition uneven(int salt) {
    RandomGenerator random = new java.util.Random(31 * count + salt);
    long[] counts = new long[size];
    long[] displacements = new long[size];
    long end = 0;
    for (int rank = 0; rank < size; rank++) {
      counts[rank] = count == 0 ? 0 : Math.max(0, random.nextLong(-1, count + 2));
      displacements[rank] = end;
      end += counts[rank] + (random.nextInt(4) == 0 ? random.nextInt(3) : 0);
    }
    return Partition.of(counts, displacements);
  }

  /// Proves that an algorithm does this.
  void check(Algorithm algorithm, boolean inPlace) {
    IntFunction<Shape> shapes = this::shape;
    try {
      ScheduleCheck.check(
          size,
          shapes,
          rank -> algorithm.plan(shapes.apply(rank), rank),
          algorithm.order() == Algorithm.Order.LEFT_FOLD,
          inPlace);
    } catch (RuntimeException | AssertionError wrong) {
      throw new AssertionError(
          "%s %s%s: %s".formatted(this, algorithm.name(), inPlace ? " in place" : "", wrong),
          wrong);
    }
  }
}
