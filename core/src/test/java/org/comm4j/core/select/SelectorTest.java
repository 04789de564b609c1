package org.comm4j.core.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.comm4j.api.Partition;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.algorithm.Choice;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Cost;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.sim.Model;
import org.comm4j.core.sim.SimNetwork;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class SelectorTest {
  private static final Selector STANDARD = new Selector(Tuning.none());

  /// In place of a window: ranks take turns on three hosts.
  private static final long IN_HOSTS = -1;

  /// Than the best by the model, which leaves out what combining and copying cost.
  private static final double MUCH_WORSE = 2;

  private static final long[] COUNTS = {0, 1, 100, 5_000, 20_000, 100_000, 1_000_000, 100_000_000};

  @ParameterizedTest
  @EnumSource
  void choose_anyShape_supportsIt(CollectiveKind kind) {
    Set<String> chosen = new TreeSet<>();
    for (int size : new int[] {1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 64, 65, 100, 4096}) {
      for (long count : COUNTS) {
        for (boolean ordered : new boolean[] {false, true}) {
          for (long window : new long[] {0, 1, 4, 1 << 20, IN_HOSTS}) {
            Shape shape = shape(kind, size, count, ordered, window);
            Choice choice = STANDARD.choose(shape);
            assertThat(choice.algorithm().supports(shape)).as("%s", shape).isTrue();
            assertThat(choice.reason()).isNotBlank();
            if (ordered) {
              assertThat(choice.algorithm().order()).isNotEqualTo(Algorithm.Order.FIXED);
            }
            chosen.add(choice.algorithm().name());
          }
        }
      }
    }
    assertThat(chosen)
        .as("every algorithm is of use somewhere")
        .containsExactlyInAnyOrderElementsOf(
            Algorithms.of(kind).stream().map(Algorithm::name).toList());
  }

  /// What the comments of the table say that its limits come from. Not of gathers, whose root is
  /// busy with what it receives, and not of all-to-all, which is cut short by what buffers hold:
  /// the model knows neither.
  @ParameterizedTest
  @EnumSource(
      names = {
        "BARRIER",
        "BROADCAST",
        "REDUCE",
        "ALL_REDUCE",
        "ALL_GATHER",
        "SCATTER",
        "REDUCE_SCATTER",
        "SCAN",
        "EXCLUSIVE_SCAN"
      })
  void choose_overMessages_isNearTheBestByTheModel(CollectiveKind kind) {
    for (int size : new int[] {2, 3, 4, 8, 9, 16, 32}) {
      for (long count = 1; count <= 1 << 18; count *= 8) {
        Shape shape = shape(kind, size, count, false, 0);
        Algorithm chosen = STANDARD.choose(shape).algorithm();
        assertThat(modelNs(chosen, shape) / bestNs(shape))
            .as("%s by %s of %d elements on %d ranks", kind, chosen.name(), count, size)
            .isLessThanOrEqualTo(MUCH_WORSE);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"BARRIER", "BROADCAST", "REDUCE", "ALL_REDUCE"})
  void plan_amongHosts_isNearTheBestByTheModel(CollectiveKind kind) {
    Algorithm hierarchical = Algorithms.find(kind, "hierarchical").orElseThrow();
    for (int hosts : new int[] {2, 3, 4, 8, 9, 16, 20, 32}) {
      for (long count = 1; count <= 1 << 18; count *= 2) {
        Shape leaders = shape(kind, hosts, count, false, 0);
        Shape all = withOneMoreOnTheLastHost(leaders);
        Cost cost = Cost.of(leaders, rank -> messagesOf(hierarchical.plan(all, rank)));
        assertThat(Model.timeNs(cost, SimNetwork.Link.UDP) / bestNs(leaders))
            .as("%s of %d elements among %d hosts", kind, count, hosts)
            .isLessThanOrEqualTo(MUCH_WORSE);
      }
    }
  }

  @Test
  void plan_largeAmongManyHosts_takesScratchOfTwoParts() {
    Algorithm hierarchical =
        Algorithms.find(CollectiveKind.ALL_REDUCE, "hierarchical").orElseThrow();
    for (int hosts : new int[] {5, 8, 16, 32, 64}) {
      int count = 1 << 22;
      Shape all =
          withOneMoreOnTheLastHost(shape(CollectiveKind.ALL_REDUCE, hosts, count, false, 0));
      for (int leader = 0; leader < hosts; leader++) {
        assertThat(hierarchical.plan(all, leader).scratchCount())
            .as("leader %d of %d", leader, hosts)
            .isLessThanOrEqualTo(2L * Math.ceilDiv(count, hosts));
      }
    }
  }

  /// Each host's leader keeps its number.
  private static Shape withOneMoreOnTheLastHost(Shape leaders) {
    int hosts = leaders.size();
    int[] labels = IntStream.rangeClosed(0, hosts).map(rank -> Math.min(rank, hosts - 1)).toArray();
    return new Shape(
        leaders.kind(),
        hosts + 1,
        leaders.count(),
        leaders.root(),
        null,
        null,
        leaders.valueBytes(),
        leaders.accumulatorBytes(),
        leaders.widened(),
        leaders.ordered(),
        0,
        Hosts.of(labels, 1 << 20));
  }

  private static Schedule messagesOf(Schedule plan) {
    List<Round> rounds =
        IntStream.range(0, plan.rounds())
            .mapToObj(index ->
                new Round(
                    plan.round(index).steps().stream()
                        .filter(Step.Message.class::isInstance)
                        .toList()))
            .toList();
    return Schedule.of(plan.workCount(), plan.scratchCount(), rounds);
  }

  private static double bestNs(Shape shape) {
    return Algorithms.of(shape.kind()).stream()
        .filter(each -> each.supports(shape))
        .mapToDouble(each -> modelNs(each, shape))
        .min()
        .orElseThrow();
  }

  private static double modelNs(Algorithm algorithm, Shape shape) {
    Cost cost = Cost.of(shape, rank -> algorithm.plan(shape, rank));
    return Model.timeNs(cost, SimNetwork.Link.UDP);
  }

  @ParameterizedTest
  @EnumSource
  void choose_windows_readsPeersMemory(CollectiveKind kind) {
    boolean possible = Algorithms.of(kind).stream().anyMatch(Algorithm::usesPeerMemory);
    Choice choice = STANDARD.choose(shape(kind, 4, 100, true, 1 << 20));
    assertThat(choice.algorithm().usesPeerMemory()).isEqualTo(possible);
  }

  @ParameterizedTest
  @EnumSource(names = {"GATHER_V", "SCATTER_V", "ALL_TO_ALL_V"})
  void choose_ranksKnowDifferentParts_isTheSame(CollectiveKind kind) {
    for (int size : new int[] {2, 5, 40}) {
      Set<Algorithm> choices =
          IntStream.range(0, 20)
              .mapToObj(rank -> {
                Partition own = rank == 0 ? null : Partition.even(size, 1L << rank);
                Shape shape =
                    new Shape(
                        kind, size, 7L << rank, 0, own, own, 4, 4, false, false, 1 << 20, null);
                return STANDARD.choose(shape).algorithm();
              })
              .collect(java.util.stream.Collectors.toSet());
      assertThat(choices).hasSize(1);
    }
  }

  @Test
  void choose_tuned_takesTheFirstLineThatFits() {
    Selector selector =
        new Selector(
            Tuning.of(
                "# comments and empty lines",
                "",
                "allReduce size<=8 bytes<=64KiB ring # why not",
                "allReduce size=8 rabenseifner",
                "broadcast bytes>=1mib binomial",
                "allGather bytes<=1GiB ring",
                "allGather bytes<=999999999999GiB bruck",
                "allGather bytes>=999999999999999999 ring"));
    assertThat(selector.choose(shape(CollectiveKind.ALL_REDUCE, 4, 16 << 10, false, 0)))
        .extracting(choice -> choice.algorithm().name(), Choice::reason)
        .containsExactly("ring", "tuning, line 3: allReduce size<=8 bytes<=64KiB ring");
    assertThat(name(selector, shape(CollectiveKind.ALL_REDUCE, 8, 1 << 20, false, 0)))
        .isEqualTo("rabenseifner");
    assertThat(name(selector, shape(CollectiveKind.ALL_REDUCE, 4, 1 << 20, false, 0)))
        .isEqualTo("pairwise");
    assertThat(name(selector, shape(CollectiveKind.BROADCAST, 9, 1 << 18, false, 0)))
        .isEqualTo("binomial");
    assertThat(name(selector, shape(CollectiveKind.ALL_GATHER, 4, 1 << 28, false, 0)))
        .isEqualTo("ring");
    assertThat(name(selector, shape(CollectiveKind.ALL_GATHER, 4, (1 << 28) + 1, false, 0)))
        .isEqualTo("bruck");
  }

  @Test
  void choose_tunedToWhatCannotDoIt_takesTheNextAndSaysSo() {
    Selector selector = new Selector(Tuning.of("allReduce ring", "allReduce two-stage"));
    Choice choice = selector.choose(shape(CollectiveKind.ALL_REDUCE, 4, 1 << 20, true, 0));
    assertThat(choice.algorithm().name()).isEqualTo("pairwise");
    assertThat(choice.reason())
        .endsWith(
            "(tuning, line 1 wants ring, which can't do this call;"
                + " tuning, line 2 wants two-stage, which can't do this call)");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "allreduce ring -> 'allreduce' is no collective (expected: one of barrier, broadcast,",
        "allReduce rings -> 'rings' is no algorithm of allReduce (expected: one of one-stage,",
        "allReduce alone -> 'alone' is no algorithm of allReduce",
        "broadcast: binomial -> 'broadcast:' (expected: a backend's name before a colon)",
        "allReduce -> 'allReduce' (expected: collective, conditions, algorithm)",
        "allReduce bytes<64 ring -> 'bytes<64' is no condition (expected: size or bytes",
        "allReduce bytes<=64KB ring -> 'bytes<=64KB' is no condition",
        "allReduce bytes<=-64 ring -> 'bytes<=-64' is no condition",
        "allReduce bytes<= ring -> 'bytes<=' is no condition",
        "allReduce count<=64 ring -> 'count<=64' is no condition",
        "gatherV bytes<=64 linear -> 'bytes<=64': ranks know the bytes of gatherV differently",
      })
  void parse_wrongLine_saysWhereAndWhat(String lineAndMessage) {
    String[] parts = lineAndMessage.split(" -> ", -1);
    assertThatThrownBy(() -> Tuning.of("# first", parts[0]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("tuning, line 2: ")
        .hasMessageContaining(parts[1]);
  }

  @Test
  void linesOf_backend_areItsAloneAndNothingToOthers() {
    Tuning tuning =
        Tuning.of(
            "cuda: allReduce arch>=90 size<=4 fast blocks=7",
            "allReduce ring",
            "other: whatever it likes");

    assertThat(name(new Selector(tuning), shape(CollectiveKind.ALL_REDUCE, 4, 64, false, 0)))
        .isEqualTo("ring");
    assertThat(tuning.linesOf("cuda", EnumSet.allOf(Tuning.Fact.class)))
        .singleElement()
        .satisfies(line -> {
          assertThat(line).hasToString("tuning, line 1: allReduce arch>=90 size<=4 fast blocks=7");
          assertThat(line.kind()).isEqualTo(CollectiveKind.ALL_REDUCE);
          assertThat(line.choice()).containsExactly("fast", "blocks=7");
          assertThat(line.changes(Tuning.Fact.ARCH)).containsExactly(90L);
          assertThat(line.changes(Tuning.Fact.SIZE)).containsExactly(5L);
          assertThat(line.holds(fact -> fact == Tuning.Fact.ARCH ? 90 : 4)).isTrue();
          assertThat(line.holds(fact -> fact == Tuning.Fact.ARCH ? 89 : 4)).isFalse();
        });
    assertThatThrownBy(() -> tuning.linesOf("other", EnumSet.allOf(Tuning.Fact.class)))
        .hasMessageStartingWith("tuning, line 3: 'whatever' is no collective");
    assertThatThrownBy(() -> tuning.linesOf("cuda", EnumSet.of(Tuning.Fact.SIZE)))
        .hasMessageStartingWith("tuning, line 1: 'arch>=90' is no condition (expected: size, then");
  }

  @Test
  void read_file_namesIt(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("tuning.txt");
    assertThatThrownBy(() -> Tuning.read(file)).hasMessageContaining(file + "' can't be read");
    Files.writeString(file, "scan chain\nscan ring\n");
    assertThatThrownBy(() -> Tuning.read(file))
        .hasMessage(
            file
                + ", line 2: 'ring' is no algorithm of scan"
                + " (expected: one of pull, recursive-doubling, chain)");
    Files.writeString(file, "\uFEFFscan chain\n");
    Selector selector = new Selector(Tuning.read(file));
    assertThat(name(selector, shape(CollectiveKind.SCAN, 4, 1, false, 0))).isEqualTo("chain");
  }

  private static String name(Selector selector, Shape shape) {
    return selector.choose(shape).algorithm().name();
  }

  private static Shape shape(
      CollectiveKind kind, int size, long count, boolean ordered, long window) {
    Partition parts =
        switch (kind) {
          case ALL_GATHER_V, REDUCE_SCATTER_V -> Partition.even(size, count);
          default -> null;
        };
    int[] labels = IntStream.range(0, size).map(rank -> rank % 3).toArray();
    boolean inHosts = window == IN_HOSTS && size > 1;
    return new Shape(
        kind,
        size,
        parts == null ? count : 0,
        0,
        parts,
        null,
        4,
        4,
        false,
        ordered,
        Math.max(0, window),
        inHosts ? Hosts.of(labels, 1 << 20) : null);
  }
}
