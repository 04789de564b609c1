package org.comm4j.core.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.HostData;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Cost;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.sim.SimNetwork.Link;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class SimGroupTest {
  private static final long SEED = 7;
  private static final CommConfig CONFIG = CommConfig.builder().build();

  private static SimGroup group(int size) {
    return group(size, CONFIG);
  }

  private static SimGroup group(int size, CommConfig config) {
    return new SimGroup(size, Link.USUAL, SEED, config, new Selector(Tuning.none()));
  }

  @Test
  void allReduce_4096Ranks_takesAsManyTripsAsTheLogarithm() {
    int size = 4096;
    long[][] data = new long[size][3];
    for (int rank = 0; rank < size; rank++) {
      Arrays.fill(data[rank], rank);
    }
    Selector doubling = new Selector(Tuning.of("allReduce recursive-doubling"));
    try (var group = new SimGroup(size, Link.USUAL, SEED, CONFIG, doubling)) {
      List<Pending> ended =
          group.run(rank ->
              new Collective.AllReduce(
                  CommData.of(data[rank]), CommData.of(data[rank]), ReduceOp.SUM));

      ended.forEach(pending -> pending.await(0));
      long sum = size * (size - 1L) / 2;
      assertThat(List.of(data))
          .allMatch(result -> Arrays.equals(result, new long[] {sum, sum, sum}));
      assertThat(group.network().nowNs()).isLessThanOrEqualTo(12 * 50_000);
    }
  }

  /// A reason for others has room for so much.
  @Test
  void shrink_overAndOver_namesStayShort() {
    try (var group = group(1)) {
      BackendCommunicator last = group.communicator(0).shrink().communicator();
      for (int i = 0; i < 500; i++) {
        BackendCommunicator next = last.shrink().communicator();
        last.close();
        last = next;
      }
      assertThat(last.name()).startsWith("world/").contains("/shrunk-").hasSizeLessThan(200);
      last.close();
    }
  }

  /// The engine takes what the model says that plans take. No choice is made by the model as it
  /// runs: the limits in the built-in table were computed with it, and the table's comments say
  /// how.
  @ParameterizedTest
  @CsvSource({
    "ALL_REDUCE, gather-fold, 4",
    "ALL_REDUCE, recursive-doubling, 1000",
    "ALL_REDUCE, direct, 8192",
    "ALL_REDUCE, rabenseifner, 60000",
    "ALL_REDUCE, ring, 16384",
    "BROADCAST, binomial, 1000",
    "BROADCAST, binomial, 100000",
    "REDUCE, binomial, 1000",
    "BARRIER, dissemination, 0",
    "ALL_GATHER, bruck, 4",
    "REDUCE_SCATTER, recursive-halving, 100",
    "ALL_TO_ALL, bruck, 4",
  })
  void collective_512RanksOverUdp_takesWhatTheModelSays(
      CollectiveKind kind, String name, int count) {
    int size = 512;
    Algorithm algorithm = Algorithms.find(kind, name).orElseThrow();
    Selector selector = new Selector(Tuning.of(kind.label() + " " + name));
    Link link = Link.UDP;
    Shape shape = new Shape(kind, size, count, 0, null, null, 4, 4, false, false, 0, null);
    Cost cost = Cost.of(shape, rank -> algorithm.plan(shape, rank));
    try (var group = new SimGroup(size, link, SEED, CONFIG, selector)) {
      group.run(rank -> call(kind, rank, size, count));

      double model = Model.timeNs(cost, link);
      assertThat(group.network().nowNs() / model).as("%s", cost).isBetween(0.8, 1.2);
    }
  }

  private static Operation call(CollectiveKind kind, int rank, int size, int count) {
    HostData one = CommData.of(new float[count]);
    return switch (kind) {
      case ALL_REDUCE -> new Collective.AllReduce(one, one, ReduceOp.SUM);
      case BROADCAST -> new Collective.Broadcast(one, 0);
      case REDUCE -> new Collective.Reduce(one, one, ReduceOp.SUM, 0);
      case BARRIER -> new Collective.Barrier();
      case ALL_GATHER -> new Collective.AllGather(one, CommData.of(new float[count * size]));
      case REDUCE_SCATTER ->
          new Collective.ReduceScatter(CommData.of(new float[count * size]), one, ReduceOp.SUM);
      case ALL_TO_ALL ->
          new Collective.AllToAll(
              CommData.of(new float[count * size]), CommData.of(new float[count * size]));
      default -> throw new IllegalArgumentException("rank " + rank + " calls no " + kind);
    };
  }

  @Test
  void run_sameSeed_takesTheSameVirtualTime() {
    assertThat(virtualTime()).isEqualTo(virtualTime());
  }

  private static long virtualTime() {
    try (var group = group(5)) {
      float[][] data = new float[5][10_000];
      group.run(rank ->
          new Collective.AllReduce(CommData.of(data[rank]), CommData.of(data[rank]), ReduceOp.SUM));
      return group.network().nowNs();
    }
  }

  @Test
  void kill_rankInACollective_isNamedByAllOthers() {
    try (var group = group(4)) {
      int[] data = new int[1];
      List<Pending> pending = new ArrayList<>();
      for (int rank = 0; rank < 4; rank++) {
        if (rank != 2) {
          pending.add(
              group
                  .communicator(rank)
                  .submit(
                      new Collective.AllReduce(
                          CommData.of(data.clone()), CommData.of(data.clone()), ReduceOp.MAX)));
        }
      }
      group.kill(2);

      assertThat(pending)
          .allSatisfy(handle ->
              assertThatThrownBy(() -> handle.await(Long.MAX_VALUE))
                  .isInstanceOfSatisfying(
                      PeerFailedException.class,
                      failure -> assertThat(failure.ranks()).containsExactly(2)));
    }
  }

  @Test
  void deadline_rankThatNeverComes_isNamed() {
    var config = CommConfig.builder().timeout(Duration.ofSeconds(3)).build();
    try (var group = group(2, config)) {
      Pending waiting =
          group.communicator(0).submit(new PointToPoint.Receive(CommData.of(new int[1]), 1, 0));
      group.network().pass(2_900_000_000L);
      assertThat(waiting.isDone()).isFalse();
      group.network().pass(200_000_000L);

      assertThat(waiting.isDone()).isTrue();
      assertThatThrownBy(() -> waiting.await(0))
          .isInstanceOfSatisfying(
              CollectiveTimeoutException.class,
              failure -> assertThat(failure.missing()).containsExactly(1))
          .hasMessageContaining("receive(INT32 × 1 from rank 1, tag 0)");
    }
  }

  @Test
  void allReduce_oneRankWithAnotherOperator_failsOnAllRanksWithBothCalls() {
    try (var group = group(3)) {
      List<Pending> ended =
          group.run(rank ->
              new Collective.AllReduce(
                  CommData.of(new int[4]),
                  CommData.of(new int[4]),
                  rank == 1 ? ReduceOp.MAX : ReduceOp.SUM));

      assertThat(ended)
          .allSatisfy(handle ->
              assertThatThrownBy(() -> handle.await(0))
                  .isInstanceOf(MismatchedCallException.class)
                  .hasMessageContaining("allReduce(MAX, INT32 × 4)")
                  .hasMessageContaining("allReduce(SUM, INT32 × 4)"));
    }
  }

  /// Rank 0's message is there before rank 1 calls, which needs none.
  @Test
  void broadcast_oneRankWithAnotherRoot_messagesCameEarly_isFound() {
    try (var group = group(4)) {
      List<Pending> looks =
          IntStream.range(0, 4)
              .mapToObj(rank ->
                  group.communicator(rank).submit(new PointToPoint.Probe((rank + 1) % 4, 6)))
              .toList();
      for (int rank = 0; rank < 2; rank++) {
        group.communicator(rank).submit(new Collective.Broadcast(CommData.of(new int[1]), rank));
        for (int at = group.network().step(); at >= 0; at = group.network().step()) {
          looks.get(at).isDone();
        }
      }

      assertThat(looks)
          .allSatisfy(look ->
              assertThatThrownBy(() -> look.await(1))
                  .isInstanceOf(MismatchedCallException.class)
                  .hasMessageContaining("broadcast(INT32 × 1, root 0)")
                  .hasMessageContaining("broadcast(INT32 × 1, root 1)"));
    }
  }

  @Test
  void close_rankThatIsDoneFirst_letsTheOthersEnd() {
    var windows = Link.varied(50_000, 1024, 8, 4 << 20, 1);
    try (var group = new SimGroup(3, windows, SEED, CONFIG, new Selector(Tuning.none()))) {
      int[][] data = {{1}, {2}, {3}};
      List<Pending> pending = new ArrayList<>();
      for (int rank = 0; rank < 3; rank++) {
        pending.add(
            group
                .communicator(rank)
                .submit(
                    new Collective.AllReduce(
                        CommData.of(data[rank]), CommData.of(data[rank]), ReduceOp.SUM)));
      }
      while (pending.stream().noneMatch(Pending::isDone)) {
        group.network().step();
      }
      for (int rank = 0; rank < 3; rank++) {
        if (pending.get(rank).isDone()) {
          group.communicator(rank).close();
        }
      }
      group.await(pending);

      pending.forEach(handle -> handle.await(0));
      assertThat(data).isEqualTo(new int[][] {{6}, {6}, {6}});
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 100, 1024, 3000})
  void send_receiverThatDoesNotReceive_isHeldBackAndLosesNothing(int bytes) {
    int messages = 2000;
    try (var group = group(2)) {
      List<Pending> sends = new ArrayList<>();
      for (int i = 0; i < messages; i++) {
        byte[] data = new byte[bytes];
        Arrays.fill(data, (byte) i);
        sends.add(group.communicator(0).submit(new PointToPoint.Send(CommData.of(data), 1, 5)));
      }
      Pending probe = group.communicator(1).submit(new PointToPoint.Probe(0, 6));
      settle(group, sends, probe);
      long gone = sends.stream().filter(Pending::isDone).count();
      assertThat(gone * (bytes + 40L)).isLessThanOrEqualTo(1 << 20);
      assertThat(probe.isDone()).isFalse();

      for (int i = 0; i < messages; i++) {
        byte[] data = new byte[bytes];
        Pending receive =
            group.communicator(1).submit(new PointToPoint.Receive(CommData.of(data), 0, 5));
        group.await(List.of(sends.get(i), receive));
        receive.await(0);
        byte expected = (byte) i;
        for (byte element : data) {
          assertThat(element).isEqualTo(expected);
        }
      }
      assertThat(probe.cancel()).isTrue();
    }
  }

  /// Moves both ranks along until nothing is on its way.
  private static void settle(SimGroup group, List<Pending> sends, Pending probe) {
    do {
      group.network().step();
      sends.getLast().isDone();
      probe.isDone();
    } while (group.network().isBusy());
  }
}
