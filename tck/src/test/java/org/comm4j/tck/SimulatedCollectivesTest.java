package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.sim.SimGroup;
import org.comm4j.core.sim.SimNetwork;
import org.comm4j.tck.CollectiveCase.Bits;
import org.comm4j.tck.CollectiveCase.Expected;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every collective × type × operator on the real engine over a simulated network, by messages, by
/// reading peers' memory, and by both on several hosts, against the [Oracle]: with counts that are
/// 0, 1, smaller and larger than the group or no multiple of anything, any root, in place or not,
/// in memory of every kind, with ranks that come late in any order.
///
/// Usually each combination of collective, type, operator and algorithm is tried once for each size
/// of group and way to run it, with the other choices rotating; with `-Dcomm4j.full=true` all of
/// them are.
class SimulatedCollectivesTest {
  private static final boolean FULL = Boolean.getBoolean("comm4j.full");
  private static final long SEED = Long.getLong("comm4j.seed", 20260101L);
  private static final long WINDOW_BYTES = 1 << 20;
  private static final int MOST_ALGORITHMS = 10;

  /// Which of the other choices is next.
  private static final AtomicInteger TURN = new AtomicInteger();

  /// A group and the way it runs.
  ///
  /// @param hosts of which the ranks read each other's memory; 0 where none do
  record Way(int size, int hosts, Reduction reduction) {
    @Override
    public String toString() {
      String how =
          switch (hosts) {
            case 0 -> "by messages";
            case 1 -> "reading memory";
            default -> "on " + hosts + " hosts";
          };
      return "%d ranks, %s, %s".formatted(size, how, reduction);
    }

    boolean isInHosts() {
      return hosts > 1;
    }

    boolean windows() {
      return hosts > 0;
    }
  }

  /// A collective with what decides its arithmetic.
  private record Combination(
      CollectiveKind kind, DataType type, @org.jspecify.annotations.Nullable ReduceOp op) {}

  static Stream<Way> ways() {
    int[] sizes =
        FULL
            ? new int[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33}
            : new int[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 17};
    return Arrays.stream(sizes)
        .boxed()
        .flatMap(size ->
            IntStream.of(0, 1, 2, 3)
                .filter(hosts -> hosts < Math.max(2, size))
                .boxed()
                .flatMap(hosts ->
                    Arrays.stream(Reduction.values())
                        .map(reduction -> new Way(size, hosts, reduction))));
  }

  @ParameterizedTest
  @MethodSource("ways")
  void collective_everyTypeAndOperator_isAsTheOracleSays(Way way) {
    List<Combination> combinations = combinations();
    for (int turn = 0; turn < MOST_ALGORITHMS; turn++) {
      Map<CollectiveKind, String> tuning = tuning(way, turn);
      List<Combination> some =
          combinations.stream().filter(each -> tuning.containsKey(each.kind())).toList();
      for (int i = 0; i < some.size(); i += 100) {
        List<Combination> few = some.subList(i, Math.min(i + 100, some.size()));
        try (SimGroup group = group(way, tuning, SEED + i)) {
          few.forEach(each -> check(group, way, each));
        }
      }
    }
  }

  /// Algorithms to try together, one for each collective that has so many for this way to run it.
  private static Map<CollectiveKind, String> tuning(Way way, int turn) {
    Map<CollectiveKind, String> tuning = new EnumMap<>(CollectiveKind.class);
    for (CollectiveKind kind : CollectiveKind.values()) {
      boolean fixed = way.reduction() == Reduction.ORDERED && kind.isReducing();
      List<Algorithm> usable =
          Algorithms.of(kind).stream()
              .filter(each -> way.size() > 1 && !each.name().equals("alone"))
              .filter(each ->
                  way.isInHosts()
                      ? each.usesPeerMemory() && each.usesMessages()
                      : each.usesPeerMemory() == way.windows()
                          && each.usesMessages() != way.windows())
              .filter(each -> !fixed || each.order() != Algorithm.Order.FIXED)
              .toList();
      if (turn < usable.size()) {
        tuning.put(kind, usable.get(turn).name());
      } else if (turn == 0 && !way.isInHosts()) {
        tuning.put(kind, ""); // whatever is chosen
      }
    }
    return tuning;
  }

  private static SimGroup group(Way way, Map<CollectiveKind, String> tuning, long seed) {
    var random = new Random(seed);
    var link =
        SimNetwork.Link.varied(
            1 + random.nextInt(50_000),
            256 << random.nextInt(3),
            1 + random.nextInt(8),
            way.windows() ? WINDOW_BYTES : 0,
            Math.max(1, way.hosts()));
    CommConfig config = CommConfig.builder().reduction(way.reduction()).build();
    String[] lines =
        tuning.entrySet().stream()
            .filter(each -> !each.getValue().isEmpty())
            .map(each -> each.getKey().label() + " " + each.getValue())
            .toArray(String[]::new);
    return new SimGroup(way.size(), link, seed, config, new Selector(Tuning.of(lines)));
  }

  private static void check(SimGroup group, Way way, Combination combination) {
    List<CollectiveCase> cases = cases(way, combination);
    if (FULL && way.size() <= 9) {
      cases.forEach(one -> check(group, way, one));
    } else {
      int turn = TURN.getAndAdd(7919);
      check(group, way, cases.get(Math.floorMod(turn, cases.size())));
    }
  }

  private static List<Combination> combinations() {
    List<Combination> all = new ArrayList<>();
    for (CollectiveKind kind : CollectiveKind.values()) {
      if (kind == CollectiveKind.BARRIER) {
        all.add(new Combination(kind, DataType.UINT8, null));
        continue;
      }
      for (DataType type : DataType.values()) {
        if (!kind.isReducing()) {
          all.add(new Combination(kind, type, null));
          continue;
        }
        Arrays.stream(ReduceOp.Predefined.values())
            .filter(op -> op.supports(type))
            .forEach(op -> all.add(new Combination(kind, type, op)));
        if (type == DataType.INT64 || type == DataType.INT32_PAIR) {
          all.add(new Combination(kind, type, Operators.AFFINE));
        }
      }
    }
    return all;
  }

  private static List<CollectiveCase> cases(Way way, Combination of) {
    int size = way.size();
    List<CollectiveCase> all = new ArrayList<>();
    int[] counts = {0, 1, 7, Math.max(0, size - 1), size + 1, 33, 1027};
    int[] roots = of.kind().isRooted() ? roots(size) : new int[] {0};
    boolean[] places =
        CollectiveCase.hasInPlace(of.kind()) ? new boolean[] {false, true} : new boolean[] {false};
    List<Values> values =
        way.reduction() == Reduction.ORDERED
            ? List.of(Values.ANY, Values.ORDINARY)
            : List.of(Values.EXACT, Values.ORDINARY);
    for (int count : counts) {
      if (count == 1027 && !FULL && (size > 5 || of.type().bytes() > 8)) {
        continue;
      }
      for (int root : roots) {
        for (boolean inPlace : places) {
          for (Values kind : values) {
            long seed = SEED + 31L * all.size() + of.hashCode();
            all.add(
                new CollectiveCase(
                    of.kind(), of.type(), of.op(), count, root, inPlace, size, kind, seed));
          }
        }
      }
    }
    return all;
  }

  /// The real engine scales to thousands of ranks in one thread.
  @Test
  void allReduce_4096Ranks_isAsTheOracleSays() {
    Way way = new Way(4096, 0, Reduction.FAST);
    try (SimGroup group = group(way, Map.of(), SEED)) {
      check(
          group,
          way,
          new CollectiveCase(
              CollectiveKind.ALL_REDUCE,
              DataType.FLOAT32,
              ReduceOp.SUM,
              3,
              0,
              false,
              way.size(),
              Values.EXACT,
              SEED));
    }
  }

  private static int[] roots(int size) {
    return IntStream.of(0, size / 2, size - 1).distinct().toArray();
  }

  private static void check(SimGroup group, Way way, CollectiveCase each) {
    Expected expected = each.expected();
    Bits bits = each.bits(way.reduction());
    CaseMemory.Place[] places = CaseMemory.Place.values();
    List<CaseMemory> memories = new ArrayList<>();
    try {
      for (int rank = 0; rank < way.size(); rank++) {
        var place = places[Math.floorMod(each.seed() + rank, places.length)];
        memories.add(new CaseMemory(expected, rank, place, group.communicator(rank)::allocate));
      }
      run(group, each, memories, each.seed());
      memories.forEach(memory -> memory.check(bits));
      if (bits == Bits.NEAR) {
        checkRepeated(group, each, memories);
      }
    } finally {
      memories.forEach(CaseMemory::close);
    }
  }

  private static void checkRepeated(
      SimGroup group, CollectiveCase each, List<CaseMemory> memories) {
    List<Long> digests = memories.stream().map(CaseMemory::digest).toList();
    if (each.kind() == CollectiveKind.ALL_REDUCE) {
      assertThat(digests).as("B1: %s on all ranks", each).containsOnly(digests.getFirst());
    }
    memories.forEach(CaseMemory::fill);
    run(group, each, memories, ~each.seed());
    assertThat(memories.stream().map(CaseMemory::digest).toList())
        .as("B2: %s again", each)
        .isEqualTo(digests);
  }

  /// Starts the ranks in any order, with time between.
  private static void run(
      SimGroup group, CollectiveCase each, List<CaseMemory> memories, long seed) {
    var random = new Random(seed);
    List<Integer> order = new ArrayList<>(IntStream.range(0, memories.size()).boxed().toList());
    Collections.shuffle(order, random);
    Pending[] pending = new Pending[memories.size()];
    try {
      for (int rank : order) {
        pending[rank] = group.communicator(rank).submit(memories.get(rank).call());
        for (int steps = random.nextInt(4); steps > 0; steps--) {
          int moved = group.network().step();
          if (moved >= 0 && pending[moved] != null) {
            pending[moved].isDone();
          }
        }
      }
      group.await(Arrays.asList(pending));
      for (Pending one : pending) {
        one.await(0);
      }
    } catch (RuntimeException e) {
      throw new AssertionError(each + " failed: " + e.getMessage(), e);
    }
  }
}
