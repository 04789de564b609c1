package org.comm4j.tck;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.HostData;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;

/// Ranks that disagree. All call one thing and rank 1 another; everybody must hear of it.
final class MismatchChecks {
  private MismatchChecks() {}

  /// Has rank 1 call something else, on a communicator of its own.
  private static void disagree(LiveRank r, String rule, Operation all, Operation one) {
    Operation mine = r.rank() == 1 ? one : all;
    MemorySegment input = input(mine);
    byte[] before = filled(input, r);
    try (Communicator comm = r.comm().duplicate()) {
      MismatchedCallException mismatch =
          Mismatches.untilBroken(rule + " M7 F1", comm, () -> comm.run(mine));
      Expect.that(
          "F2",
          input.mismatch(MemorySegment.ofArray(before)) == -1,
          "a failed %s changed its input",
          mine.label());
      Expect.says("M7", mismatch, "rank 1", all.label());
      Expect.says("M7", mismatch, one.label());
    }
    LiveRank.works("G9", r.comm());
  }

  /// What an operation only reads, if anything.
  private static MemorySegment input(Operation operation) {
    CommData input =
        switch (operation) {
          case Collective.AllReduce call -> call.input() == call.output() ? null : call.input();
          case Collective.Reducing call -> call.input();
          case Collective.AllGather call -> call.input();
          case Collective.AllGatherV call -> call.input();
          case Collective.Gather call -> call.input();
          case Collective.GatherV call -> call.input();
          case Collective.Scatter call -> call.input();
          case Collective.ScatterV call -> call.input();
          case Collective.AllToAll call -> call.input();
          case Collective.AllToAllV call -> call.input();
          case Collective.Broadcast _, Collective.Barrier _, PointToPoint _ -> null;
        };
    return input instanceof HostData host ? host.segment() : MemorySegment.NULL;
  }

  /// Gives it other content on each rank.
  private static byte[] filled(MemorySegment input, LiveRank r) {
    byte[] content = new byte[(int) input.byteSize()];
    new SplittableRandom(r.seed() * 31 + r.rank()).nextBytes(content);
    input.copyFrom(MemorySegment.ofArray(content));
    return content;
  }

  private static CommData floats(int count) {
    return CommData.of(new float[count]);
  }

  private static Operation allReduce(CommData data, ReduceOp op) {
    return new Collective.AllReduce(data, data, op);
  }

  @Rule({"M1", "M7", "F1", "F2", "G9"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnTheOperation_areTold(LiveRank r) {
    int n = r.size();
    disagree(
        r,
        "M1",
        allReduce(floats(4), ReduceOp.SUM),
        new Collective.Reduce(floats(4), floats(4), ReduceOp.SUM, 1));
    disagree(r, "M1", new Collective.Broadcast(floats(4), 0), allReduce(floats(4), ReduceOp.SUM));
    disagree(
        r,
        "M1",
        new Collective.AllGather(floats(2), floats(2 * n)),
        new Collective.AllToAll(floats(2 * n), floats(2 * n)));
    disagree(
        r,
        "M1",
        new Collective.Scan(floats(2), floats(2), ReduceOp.SUM),
        new Collective.ExclusiveScan(floats(2), floats(2), ReduceOp.SUM));
    disagree(r, "M1", new Collective.Barrier(), allReduce(floats(1), ReduceOp.SUM));
    disagree(
        r,
        "M1",
        allReduce(floats(300_000), ReduceOp.SUM),
        new Collective.ReduceScatter(floats(1000 * n), floats(1000), ReduceOp.SUM));
  }

  @Rule({"M2", "M7", "F1", "F2"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnTheOperator_areTold(LiveRank r) {
    disagree(r, "M2", allReduce(floats(4), ReduceOp.SUM), allReduce(floats(4), ReduceOp.MAX));
    disagree(
        r,
        "M2",
        new Collective.Reduce(floats(1000), floats(1000), ReduceOp.MIN, 0),
        new Collective.Reduce(floats(1000), floats(1000), ReduceOp.MAX, 0));
    if (r.can(Capability.USER_DEFINED_OPERATORS)) {
      ReduceOp.Function nothing = (source, accumulator, type, count) -> {};
      disagree(
          r,
          "M2",
          allReduce(floats(4), ReduceOp.of("merge-v1", nothing)),
          allReduce(floats(4), ReduceOp.of("merge-v2", nothing)));
      disagree(
          r,
          "M2",
          allReduce(floats(4), ReduceOp.of("merge-v1", nothing)),
          allReduce(floats(4), ReduceOp.SUM));
    }
  }

  @Rule({"M3", "M7", "F1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnTheType_areTold(LiveRank r) {
    disagree(
        r,
        "M3",
        allReduce(floats(4), ReduceOp.SUM),
        allReduce(CommData.of(new int[4]), ReduceOp.SUM));
    disagree(
        r,
        "M3",
        new Collective.Broadcast(floats(4), 0),
        new Collective.Broadcast(CommData.of(new double[2]), 0));
  }

  @Rule({"M4", "M7", "F1", "F2"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnTheCount_areTold(LiveRank r) {
    int n = r.size();
    disagree(r, "M4", allReduce(floats(4), ReduceOp.SUM), allReduce(floats(5), ReduceOp.SUM));
    disagree(r, "M4", allReduce(floats(0), ReduceOp.SUM), allReduce(floats(1), ReduceOp.SUM));
    disagree(r, "M4", allReduce(floats(200_000), ReduceOp.SUM), allReduce(floats(3), ReduceOp.SUM));
    disagree(
        r, "M4", new Collective.Broadcast(floats(8), 0), new Collective.Broadcast(floats(4), 0));
    disagree(
        r,
        "M4",
        new Collective.AllToAll(floats(n), floats(n)),
        new Collective.AllToAll(floats(2 * n), floats(2 * n)));
    long[] counts = new long[n];
    Arrays.fill(counts, 3);
    counts[0] = 4;
    CommData own = floats(r.rank() == 0 ? 4 : 3);
    long[] others = counts.clone();
    others[n - 1] += n == 2 ? 0 : 1;
    others[0] -= 1;
    CommData otherOwn = floats((int) others[r.rank()]);
    disagree(
        r,
        "M4",
        new Collective.AllGatherV(own, floats(3 * n + 2), Partition.of(counts)),
        new Collective.AllGatherV(otherOwn, floats(3 * n + 2), Partition.of(others)));
    Partition parts = Partition.even(n, 3);
    Arrays.fill(counts, 4);
    counts[r.rank()] = 3; // a rank knows by itself what it sends itself
    disagree(
        r,
        "M4",
        new Collective.ScatterV(floats(3 * n), parts, floats(3), 0),
        new Collective.ScatterV(null, null, floats(2), 0));
    disagree(
        r,
        "M4",
        new Collective.GatherV(floats(3), floats(3 * n), parts, 0),
        new Collective.GatherV(floats(4), null, null, 0));
    disagree(
        r,
        "M4",
        new Collective.AllToAllV(floats(3 * n), parts, floats(3 * n), parts),
        new Collective.AllToAllV(floats(3 * n), parts, floats(4 * n), Partition.of(counts)));
  }

  @Rule({"M5", "M7", "F1", "F2"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnTheRoot_areTold(LiveRank r) {
    int n = r.size();
    for (int count : new int[] {3, 50_000}) {
      disagree(
          r,
          "M5",
          new Collective.Broadcast(floats(count), 0),
          new Collective.Broadcast(floats(count), 1));
      disagree(
          r,
          "M5",
          new Collective.Reduce(floats(count), floats(count), ReduceOp.SUM, 0),
          new Collective.Reduce(floats(count), floats(count), ReduceOp.SUM, 1));
      disagree(
          r,
          "M5",
          new Collective.Gather(floats(count), floats(count * n), 1),
          new Collective.Gather(floats(count), floats(count * n), 0));
      disagree(
          r,
          "M5",
          new Collective.Scatter(floats(count * n), floats(count), 0),
          new Collective.Scatter(floats(count * n), floats(count), 1));
    }
  }

  @Rule({"M6", "M7", "F1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnTheOrder_areTold(LiveRank r) {
    Operation sum = allReduce(floats(4), ReduceOp.SUM);
    Operation broadcast = new Collective.Broadcast(floats(4), 0);
    List<Operation> order = List.of(sum, broadcast, sum, sum, broadcast, broadcast, sum);
    try (Communicator comm = r.comm().duplicate()) {
      Mismatches.untilBroken(
          "M6 M7 F1",
          comm,
          () -> {
            for (int i = 0; i < order.size(); i++) {
              comm.run(order.get(r.rank() == 1 ? order.size() - 1 - i : i));
              comm.run(order.get(r.rank() == 1 ? Math.min(i + 1, order.size() - 1) : i));
            }
          });
    }
    // one leaves a call out
    try (Communicator comm = r.comm().duplicate()) {
      Mismatches.untilBroken(
          "M6 M7 F1",
          comm,
          () -> {
            if (r.rank() != 1) {
              comm.run(sum);
            }
            comm.run(broadcast);
            comm.run(sum);
            comm.run(broadcast);
          });
    }
    LiveRank.works("G9", r.comm());
  }

  /// Nobody waits for a peer in such a call, so the next one finds out.
  @Rule("M6")
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_leaveOutWhatMovesNothing_areToldLater(LiveRank r) {
    Operation sum = allReduce(floats(4), ReduceOp.SUM);
    Partition none = Partition.even(r.size(), 0);
    Operation reduction = allReduce(floats(0), ReduceOp.SUM);
    Operation scatter = new Collective.ScatterV(floats(0), none, floats(0), 0);
    for (Operation nothing : List.of(reduction, scatter)) {
      try (Communicator comm = r.comm().duplicate()) {
        Mismatches.untilBroken(
            "M6",
            comm,
            () -> {
              if (r.rank() != 1) {
                comm.run(nothing);
              }
              comm.run(sum);
              comm.run(sum);
            });
      }
    }
    LiveRank.works("G9", r.comm());
  }

  @Rule({"M1", "M6"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void ranks_disagreeOnSplit_areTold(LiveRank r) {
    try (Communicator comm = r.comm().duplicate()) {
      Mismatches.untilBroken(
          "M1 M6",
          comm,
          () -> {
            if (r.rank() == 1) {
              comm.duplicate().close();
            } else {
              comm.split(0, 0).orElseThrow().close();
            }
          });
    }
  }
}
