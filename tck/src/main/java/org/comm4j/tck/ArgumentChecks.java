package org.comm4j.tck;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.Operation;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;

/// Wrong arguments: refused on the rank that gives them, with the value and what was expected,
/// before any other rank can see anything of it.
final class ArgumentChecks {
  private ArgumentChecks() {}

  /// Something wrong.
  ///
  /// @param rules beside A1 to A3
  /// @param what for messages
  /// @param value must be in the message
  /// @param call makes the operation; that may already be refused
  private record Wrong(String rules, String what, String value, Making call) {}

  private interface Making {
    Operation make();
  }

  private static CommData floats(int count) {
    return CommData.of(new float[count]);
  }

  @Rule({"A1", "A2", "A3", "A4", "A5", "T1", "F1"})
  static void collective_wrongArgument_isRefusedHereAlone(LiveRank r) {
    List<Wrong> all = new ArrayList<>();
    collectives(r.size(), r.rank(), all);
    refuse(r, all);
  }

  @Rule({"A1", "A2", "A3", "A4", "A5", "P3"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void message_wrongArgument_isRefusedHereAlone(LiveRank r) {
    List<Wrong> all = new ArrayList<>();
    messages(r.size(), all);
    refuse(r, all);
  }

  /// Each rank in turn makes all mistakes, in each way to call.
  private static void refuse(LiveRank r, List<Wrong> all) {
    Communicator comm = r.comm();
    for (int turn = 0; turn < r.size(); turn++) {
      if (turn == r.rank()) {
        for (Wrong wrong : all) {
          refused(comm, wrong, operation -> comm.run(operation));
          refused(comm, wrong, operation -> comm.start(operation));
          refused(comm, wrong, operation -> comm.prepare(operation));
        }
        Expect.that("A3", comm.failure().isEmpty(), "a wrong argument broke the communicator");
      }
      LiveRank.works("A3", comm);
    }
  }

  private interface Way {
    void call(Operation operation);
  }

  private static void refused(Communicator comm, Wrong wrong, Way way) {
    String rules = wrong.rules().isEmpty() ? "A1" : "A1 " + wrong.rules();
    var thrown =
        Expect.thrown(
            rules,
            IllegalArgumentException.class,
            wrong.what() + " on rank " + comm.rank(),
            () -> way.call(wrong.call().make()));
    Expect.says("A2", thrown, wrong.value(), "expected");
  }

  private static void collectives(int n, int rank, List<Wrong> all) {
    ReduceOp sum = ReduceOp.SUM;
    CommData data = floats(6 * n);
    CommData out = floats(6 * n);
    for (int root : new int[] {-1, n, Integer.MAX_VALUE}) {
      String value = Integer.toString(root);
      all.add(new Wrong("", "broadcast", value, () -> new Collective.Broadcast(data, root)));
      all.add(new Wrong("", "reduce", value, () -> new Collective.Reduce(data, out, sum, root)));
      all.add(new Wrong("", "gather", value, () -> new Collective.Gather(floats(6), out, root)));
      all.add(new Wrong("", "scatter", value, () -> new Collective.Scatter(data, floats(6), root)));
    }
    // operators that are not defined for the type, and the other way round
    for (DataType type : DataType.values()) {
      CommData one = CommData.of(type, MemorySegment.ofArray(new byte[type.bytes()]));
      for (ReduceOp.Predefined op : ReduceOp.Predefined.values()) {
        if (!op.supports(type)) {
          all.add(
              new Wrong(
                  "T1", "allReduce", op.name(), () -> new Collective.AllReduce(one, one, op)));
        }
      }
    }
    all.add(
        new Wrong(
            "",
            "allReduce with another count",
            "FLOAT32 × 3",
            () -> new Collective.AllReduce(floats(4), floats(3), sum)));
    all.add(
        new Wrong(
            "",
            "allReduce with another type",
            "INT32 × 4",
            () -> new Collective.AllReduce(floats(4), CommData.of(new int[4]), sum)));
    all.add(
        new Wrong(
            "",
            "scan with another count",
            "FLOAT32 × 3",
            () -> new Collective.Scan(floats(4), floats(3), sum)));
    all.add(
        new Wrong(
            "",
            "reduce without an output on the root",
            "null",
            () -> new Collective.Reduce(floats(4), null, sum, rank)));
    all.add(
        new Wrong(
            "",
            "gather without an output on the root",
            "null",
            () -> new Collective.Gather(floats(4), null, rank)));
    all.add(
        new Wrong(
            "",
            "gatherV without parts on the root",
            "null",
            () -> new Collective.GatherV(floats(4), out, null, rank)));
    all.add(
        new Wrong(
            "",
            "scatter without an input on the root",
            "null",
            () -> new Collective.Scatter(null, floats(4), rank)));
    all.add(
        new Wrong(
            "",
            "allGather of a wrong count",
            "FLOAT32 × " + (4 * n + 1),
            () -> new Collective.AllGather(floats(4), floats(4 * n + 1))));
    all.add(
        new Wrong(
            "",
            "reduceScatter of a wrong count",
            "FLOAT32 × " + (4 * n + 1),
            () -> new Collective.ReduceScatter(floats(4 * n + 1), floats(4), sum)));
    if (n > 1) {
      all.add(
          new Wrong(
              "",
              "allToAll of a wrong count",
              "FLOAT32 × " + (n + 1),
              () -> new Collective.AllToAll(floats(n + 1), floats(n + 1))));
    }
    all.add(
        new Wrong(
            "",
            "allGatherV with parts of a wrong number",
            Integer.toString(n + 1),
            () ->
                new Collective.AllGatherV(floats(2), floats(2 * n + 2), Partition.even(n + 1, 2))));
    all.add(
        new Wrong(
            "",
            "allGatherV with another count than its part",
            "FLOAT32 × 3",
            () -> new Collective.AllGatherV(floats(3), floats(2 * n), Partition.even(n, 2))));
    all.add(
        new Wrong(
            "",
            "allToAllV with another part to itself than from itself",
            "rank %d".formatted(rank),
            () ->
                new Collective.AllToAllV(
                    floats(2 * n), own(n, rank, 0), floats(2 * n), Partition.even(n, 2))));
    all.add(
        new Wrong(
            "",
            "allToAllV with another part from itself than to itself",
            "rank %d".formatted(rank),
            () ->
                new Collective.AllToAllV(
                    floats(2 * n), Partition.even(n, 2), floats(2 * n), own(n, rank, 0))));
    all.add(
        new Wrong(
            "",
            "allGatherV with a short output",
            "FLOAT32 × " + (2 * n - 1),
            () -> new Collective.AllGatherV(floats(2), floats(2 * n - 1), Partition.even(n, 2))));
    all.add(
        new Wrong(
            "",
            "a partition with a negative count",
            "-1",
            () -> new Collective.AllGatherV(floats(0), out, Partition.of(0, -1))));
    all.add(
        new Wrong(
            "",
            "a partition with a negative displacement",
            "-3",
            () ->
                new Collective.AllGatherV(
                    floats(0), out, Partition.of(new long[] {1}, new long[] {-3}))));
    all.add(
        new Wrong(
            "",
            "a partition without all displacements",
            "1",
            () ->
                new Collective.AllGatherV(
                    floats(0), out, Partition.of(new long[] {1, 2}, new long[] {0}))));
    overlaps(n, rank, all);
    readOnly(n, rank, all);
  }

  private static void overlaps(int n, int rank, List<Wrong> all) {
    CommData memory = floats(8 * n + 8);
    CommData a = memory.slice(0, 4);
    CommData b = memory.slice(3, 4);
    all.add(
        new Wrong(
            "A4",
            "allReduce of overlapping buffers",
            "FLOAT32 × 4",
            () -> new Collective.AllReduce(a, b, ReduceOp.SUM)));
    all.add(
        new Wrong(
            "A4",
            "exclusiveScan of overlapping buffers",
            "FLOAT32 × 4",
            () -> new Collective.ExclusiveScan(b, a, ReduceOp.SUM)));
    all.add(
        new Wrong(
            "A4",
            "reduce of overlapping buffers",
            "FLOAT32 × 4",
            () -> new Collective.Reduce(a, b, ReduceOp.SUM, rank)));
    all.add(
        new Wrong(
            "A4",
            "allToAll in place",
            "overlap",
            () -> new Collective.AllToAll(memory.slice(0, 2L * n), memory.slice(0, 2L * n))));
    CommData whole = memory.slice(1, 4L * n);
    all.add(
        new Wrong(
            "A4",
            "allGather beside its own part",
            "overlap",
            () -> new Collective.AllGather(memory.slice(2 + 4L * rank, 4), whole)));
    all.add(
        new Wrong(
            "A4",
            "reduceScatter beside its own part",
            "overlap",
            () -> new Collective.ReduceScatter(whole, memory.slice(4L * rank, 4), ReduceOp.SUM)));
    all.add(
        new Wrong(
            "A4",
            "scatter beside its own part",
            "overlap",
            () -> new Collective.Scatter(whole, memory.slice(4L * rank, 4), rank)));
    all.add(
        new Wrong(
            "A4",
            "a partition whose parts overlap",
            "overlaps",
            () ->
                new Collective.AllGatherV(
                    floats(2), floats(9), Partition.of(new long[] {2, 2}, new long[] {0, 1}))));
  }

  /// Parts of 2 elements, but for one.
  private static Partition own(int n, int rank, long count) {
    long[] counts = new long[n];
    Arrays.fill(counts, 2);
    counts[rank] = count;
    return Partition.of(counts);
  }

  private static void readOnly(int n, int rank, List<Wrong> all) {
    CommData fixed =
        CommData.of(DataType.FLOAT32, MemorySegment.ofArray(new float[2 * n]).asReadOnly());
    String says = "read-only";
    all.add(
        new Wrong(
            "A5",
            "allReduce",
            says,
            () -> new Collective.AllReduce(floats(2 * n), fixed, ReduceOp.SUM)));
    all.add(new Wrong("A5", "allGather", says, () -> new Collective.AllGather(floats(2), fixed)));
    all.add(new Wrong("A5", "gather", says, () -> new Collective.Gather(floats(2), fixed, rank)));
    all.add(
        new Wrong(
            "A5", "scan", says, () -> new Collective.Scan(floats(2 * n), fixed, ReduceOp.SUM)));
    if (n > 1) {
      int other = (rank + 1) % n;
      all.add(new Wrong("A5", "broadcast", says, () -> new Collective.Broadcast(fixed, other)));
    }
  }

  private static void messages(int n, List<Wrong> all) {
    CommData data = floats(4);
    for (int peer : new int[] {-1, n, Integer.MIN_VALUE}) {
      String value = Integer.toString(peer);
      all.add(new Wrong("", "send", value, () -> new PointToPoint.Send(data, peer, 0)));
      if (peer != Communicator.ANY_SOURCE) {
        all.add(new Wrong("", "receive", value, () -> new PointToPoint.Receive(data, peer, 0)));
        all.add(new Wrong("", "probe", value, () -> new PointToPoint.Probe(peer, 0)));
      }
    }
    for (int tag : new int[] {-1, Communicator.MAX_TAG + 1, -2}) {
      String value = Integer.toString(tag);
      all.add(new Wrong("P3", "send", value, () -> new PointToPoint.Send(data, 0, tag)));
      all.add(
          new Wrong(
              "P3",
              "sendReceive",
              value,
              () -> new PointToPoint.SendReceive(data, 0, tag, floats(4), 0, 0)));
      if (tag != Communicator.ANY_TAG) {
        all.add(new Wrong("P3", "receive", value, () -> new PointToPoint.Receive(data, 0, tag)));
        all.add(new Wrong("P3", "probe", value, () -> new PointToPoint.Probe(0, tag)));
      }
    }
    CommData memory = floats(8);
    all.add(
        new Wrong(
            "A4",
            "sendReceive of overlapping buffers",
            "overlap",
            () ->
                new PointToPoint.SendReceive(memory.slice(0, 4), 0, 0, memory.slice(3, 4), 0, 0)));
    all.add(
        new Wrong(
            "A5",
            "receive",
            "read-only",
            () ->
                new PointToPoint.Receive(
                    CommData.of(DataType.FLOAT32, MemorySegment.ofArray(new float[4]).asReadOnly()),
                    0,
                    0)));
  }

  @Rule({"A1", "A2", "A3"})
  static void otherMethods_wrongArgument_isRefused(LiveRank r) {
    Communicator comm = r.comm();
    for (int code : new int[] {0, -1, 256}) {
      var refused =
          Expect.thrown(
              "A1", IllegalArgumentException.class, "abortProcess", () -> comm.abortProcess(code));
      Expect.says("A2", refused, Integer.toString(code), "expected");
    }
    var negative =
        Expect.thrown(
            "A1",
            IllegalArgumentException.class,
            "allocate",
            () -> comm.allocate(DataType.FLOAT32, -5));
    Expect.says("A2", negative, "-5", "expected");
    var request = comm.start(new Collective.Barrier());
    var early =
        Expect.thrown(
            "A1",
            IllegalArgumentException.class,
            "await",
            () -> request.await(java.time.Duration.ofSeconds(-1)));
    Expect.says("A2", early, "expected");
    request.await();
    Expect.thrown(
        "A1",
        IllegalArgumentException.class,
        "waitAny of nothing",
        () -> org.comm4j.api.Request.waitAny(List.of()));
    LiveRank.works("A3", comm);
  }

  @Rule("T1")
  static void supports_everyOperatorAndType_isTheTable(LiveRank r) {
    for (DataType type : DataType.values()) {
      boolean pair = type.name().endsWith("_PAIR");
      boolean floating = !pair && type.name().contains("FLOAT");
      boolean complex = type.name().startsWith("COMPLEX");
      boolean bool = type == DataType.BOOL;
      boolean integer = !pair && !floating && !complex && !bool;
      for (ReduceOp.Predefined op : ReduceOp.Predefined.values()) {
        boolean expected =
            switch (op) {
              case SUM, PRODUCT, AVERAGE -> integer || floating || complex;
              case MIN, MAX -> integer || floating;
              case BIT_AND, BIT_OR, BIT_XOR, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR ->
                  integer || bool;
              case MIN_LOC, MAX_LOC -> pair;
            };
        Expect.equal("T1", op + " of " + type, op.supports(type), expected);
      }
    }
    LiveRank.works("T1", r.comm());
  }
}
