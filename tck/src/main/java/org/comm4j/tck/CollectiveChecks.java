package org.comm4j.tck;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.Partition;
import org.comm4j.api.PersistentRequest;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.core.schedule.CollectiveKind;

/// Collectives on live ranks: results, bits, ways to call.
final class CollectiveChecks {
  private CollectiveChecks() {}

  @Rule({
    "O1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "B1", "B2", "B4",
    "D4", "D5", "D6", "O17", "O18", "O22", "O23"
  })
  static void allReduce_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.ALL_REDUCE);
  }

  @Rule({"O2", "T3", "T6", "O18", "O20", "D5", "B2"})
  static void reduce_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.REDUCE);
  }

  @Rule({"O3", "O20", "D4"})
  static void broadcast_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.BROADCAST);
  }

  @Rule({"O4", "O18", "D4"})
  static void allGather_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.ALL_GATHER);
  }

  @Rule({"O5", "O21", "D5"})
  static void allGatherV_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.ALL_GATHER_V);
  }

  @Rule({"O6", "O20"})
  static void gather_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.GATHER);
  }

  @Rule({"O7", "O21", "D5"})
  static void gatherV_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.GATHER_V);
  }

  @Rule({"O8", "O20"})
  static void scatter_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.SCATTER);
  }

  @Rule({"O9", "O21"})
  static void scatterV_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.SCATTER_V);
  }

  @Rule({"O10", "T3", "D4"})
  static void reduceScatter_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.REDUCE_SCATTER);
  }

  @Rule({"O11", "O21", "D4"})
  static void reduceScatterV_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.REDUCE_SCATTER_V);
  }

  @Rule("O12")
  static void allToAll_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.ALL_TO_ALL);
  }

  @Rule({"O13", "O21"})
  static void allToAllV_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.ALL_TO_ALL_V);
  }

  @Rule({"O14", "T15"})
  static void scan_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.SCAN);
  }

  @Rule({"O15", "T15", "D5"})
  static void exclusiveScan_anyArguments_isAsTheOracleSays(LiveRank r) {
    PlannedCalls.run(r, CollectiveKind.EXCLUSIVE_SCAN);
  }

  /// Not only the fast order: the one that is the same everywhere.
  @Rule("B3")
  @Needs(setting = Needs.Setting.ORDERED, capabilities = Capability.ORDERED_REDUCTION)
  static void reductions_ordered_areLeftFolds(LiveRank r) {
    for (CollectiveKind kind : CollectiveKind.values()) {
      if (kind.isReducing()) {
        PlannedCalls.run(r, kind);
      }
    }
  }

  /// Sums whose bits tell the order in which they were made, small and large.
  @Rule("B3")
  @Needs(setting = Needs.Setting.ORDERED, capabilities = Capability.ORDERED_REDUCTION)
  static void allReduce_orderedManySizes_haveTheSameBits(LiveRank r) {
    for (DataType type :
        List.of(DataType.FLOAT64, DataType.FLOAT32, DataType.FLOAT16, DataType.COMPLEX64)) {
      for (int count : new int[] {1, 3, 64, 1000, 70_001}) {
        CollectiveCase of =
            new CollectiveCase(
                CollectiveKind.ALL_REDUCE,
                type,
                ReduceOp.SUM,
                count,
                0,
                count % 2 == 0,
                r.size(),
                Values.ORDINARY,
                r.seed() + count);
        try (CaseMemory memory =
            new CaseMemory(of.expected(), r.rank(), CaseMemory.Place.HEAP, null)) {
          r.comm().run(memory.call());
          memory.check(of.bits(r.reduction()));
        }
      }
    }
  }

  @Rule("T2")
  static void allReduce_integersTooLarge_wrapAround(LiveRank r) {
    for (DataType type : DataType.values()) {
      if (!type.isInteger()) {
        continue;
      }
      byte[] largest = new byte[type.bytes()];
      Arrays.fill(largest, (byte) -1);
      if (type.kind() == DataType.Kind.SIGNED) {
        largest[largest.length - 1] = Byte.MAX_VALUE;
      }
      for (ReduceOp op : List.of(ReduceOp.SUM, ReduceOp.PRODUCT)) {
        byte[] data = largest.clone();
        CommData view = CommData.of(type, MemorySegment.ofArray(data));
        r.comm().run(new Collective.AllReduce(view, view, op));
        byte[] expected = Oracle.fold(op, type, Collections.nCopies(r.size(), largest));
        Expect.that("T2", Arrays.equals(data, expected), "%s of the largest %s", op, type);
      }
    }
  }

  /// Sums beyond the largest number of a type, where types differ in what that gives.
  @Rule({"T11", "T3"})
  static void allReduce_sumsTooLarge_areInfiniteOrSaturate(LiveRank r) {
    for (DataType type : DataType.values()) {
      if (type.kind() != DataType.Kind.FLOAT) {
        continue;
      }
      for (int sign : new int[] {1, -1}) {
        byte[] data = repeated(type, sign * Oracle.largest(type));
        byte[] expected =
            r.size() == 1 ? data.clone() : repeated(type, sign * Double.POSITIVE_INFINITY);
        CommData view = CommData.of(type, MemorySegment.ofArray(data));
        r.comm().run(new Collective.AllReduce(view, view, ReduceOp.SUM));
        Expect.that(
            type.bytes() < 4 ? "T11" : "T3",
            Arrays.equals(data, expected),
            "%d times %s as %s gave %s (expected: %s)",
            r.size(),
            sign * Oracle.largest(type),
            type,
            Numbers.text(type, data, 0),
            Numbers.text(type, expected, 0));
      }
    }
  }

  private static byte[] repeated(DataType type, double value) {
    byte[] data = new byte[17 * type.bytes()];
    for (int at = 0; at < data.length; at += type.bytes()) {
      Oracle.write(Oracle.buffer(data), at, type.bytes(), Oracle.encode(type, value));
    }
    return data;
  }

  /// Each rank is late in turn; nobody may be out before it has come.
  @Rule({"O16", "O24"})
  static void barrier_lateRank_isWaitedFor(LiveRank r) {
    Communicator comm = r.comm();
    for (int late = 0; late < r.size(); late++) {
      byte[] sign = {0};
      if (r.rank() == late) {
        for (int peer = 0; peer < r.size(); peer++) {
          if (peer != late) {
            // whoever is out of the barrier before this rank is in has not answered this
            Request asked = comm.start(receive(new byte[1], peer, 7));
            sign[0] = 1;
            comm.send(CommData.of(sign), peer, 6);
            asked.await();
          }
        }
        comm.barrier();
        continue;
      }
      Request barrier = comm.start(new Collective.Barrier());
      comm.receive(CommData.of(sign), late, 6);
      Expect.that("O16", !barrier.isDone(), "barrier ended before rank %d had come", late);
      comm.send(CommData.of(sign), late, 7);
      barrier.await();
    }
  }

  private static org.comm4j.api.Operation receive(byte[] data, int source, int tag) {
    return new PointToPoint.Receive(CommData.of(data), source, tag);
  }

  @Rule({"O25", "O23"})
  static void sync_startedOperations_haveEnded(LiveRank r) {
    Communicator comm = r.comm();
    for (boolean byBarrier : new boolean[] {false, true}) {
      List<Request> requests = new ArrayList<>();
      List<long[]> data = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        long[] values = new long[1 + 500 * (i % 3)];
        Arrays.fill(values, i + r.rank());
        data.add(values);
        CommData view = CommData.of(values);
        requests.add(comm.start(new Collective.AllReduce(view, view, ReduceOp.SUM)));
      }
      if (byBarrier) {
        comm.barrier();
      } else {
        comm.sync();
      }
      for (int i = 0; i < requests.size(); i++) {
        Expect.that("O25", requests.get(i).isDone(), "operation %d has not ended", i);
        long expected = (long) i * r.size() + (long) r.size() * (r.size() - 1) / 2;
        Expect.that(
            "O25",
            Arrays.stream(data.get(i)).allMatch(value -> value == expected),
            "operation %d: wrong result",
            i);
      }
    }
  }

  @Rule({"O22", "O23"})
  static void start_recordAgain_worksEachTime(LiveRank r) {
    Communicator comm = r.comm();
    int[] data = new int[5];
    var operation = new Collective.AllReduce(CommData.of(data), CommData.of(data), ReduceOp.MAX);
    PersistentRequest prepared = comm.prepare(operation);
    Expect.that("O22", prepared.operation() == operation, "operation() is another one");
    for (int i = 0; i < 50; i++) {
      Arrays.fill(data, r.rank() + i);
      switch (i % 4) {
        case 0 -> comm.run(operation);
        case 1 -> comm.start(operation).await();
        case 2 -> prepared.run();
        default -> {
          Request request = prepared.start();
          request.await();
        }
      }
      int expected = r.size() - 1 + i;
      Expect.that(
          "O22",
          Arrays.stream(data).allMatch(value -> value == expected),
          "call %d gave %s (expected: %d)",
          i,
          Arrays.toString(data),
          expected);
    }
  }

  @Rule("O22")
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void prepared_inFlight_doesNotStartAgain(LiveRank r) {
    Communicator comm = r.comm();
    int[] got = new int[1];
    PersistentRequest prepared =
        comm.prepare(new PointToPoint.Receive(CommData.of(got), r.rank(), 3));
    for (int i = 1; i <= 2; i++) {
      Request first = prepared.start();
      IllegalStateException refused =
          Expect.thrown(
              "O22", IllegalStateException.class, "a start of what has not ended", prepared::start);
      Expect.says("O22", refused, "flight");
      comm.send(CommData.of(i), r.rank(), 3);
      first.await();
      Expect.equal("O22", "what came", got[0], i);
    }
  }

  @Rule("O26")
  static void convenienceMethods_doWhatTheirRecordsDo(LiveRank r) {
    Communicator comm = r.comm();
    int size = r.size();
    int rank = r.rank();
    int ranks = size * (size - 1) / 2;
    float[] floats = {rank, 1};
    comm.allReduce(floats, ReduceOp.SUM);
    same(new float[] {ranks, size}, floats);
    double[] doubles = {rank, -rank};
    comm.allReduce(doubles, ReduceOp.MAX);
    same(new double[] {size - 1, 0}, doubles);
    int[] ints = {rank};
    comm.allReduce(ints, ReduceOp.SUM);
    same(new int[] {ranks}, ints);
    long[] longs = {rank};
    comm.allReduce(longs, ReduceOp.MIN);
    same(new long[] {0}, longs);
    Expect.equal("O26", "a double", comm.allReduce(1.5, ReduceOp.SUM), 1.5 * size);
    Expect.equal("O26", "a long", comm.allReduce(2L, ReduceOp.SUM), 2L * size);
    int root = size - 1;
    float[] reduced = {rank};
    comm.reduce(reduced, ReduceOp.SUM, root);
    same(new float[] {rank == root ? ranks : rank}, reduced);
    double[] reducedDoubles = {1};
    comm.reduce(reducedDoubles, ReduceOp.SUM, root);
    same(new double[] {rank == root ? size : 1}, reducedDoubles);
    int[] reducedInts = {1};
    comm.reduce(reducedInts, ReduceOp.SUM, root);
    same(new int[] {rank == root ? size : 1}, reducedInts);
    long[] reducedLongs = {1};
    comm.reduce(reducedLongs, ReduceOp.SUM, root);
    same(new long[] {rank == root ? size : 1}, reducedLongs);
    float[] f = {rank};
    double[] d = {rank};
    int[] i = {rank};
    long[] l = {rank};
    byte[] b = {(byte) rank};
    comm.broadcast(f, root);
    comm.broadcast(d, root);
    comm.broadcast(i, root);
    comm.broadcast(l, root);
    comm.broadcast(b, root);
    same(new float[] {root}, f);
    same(new double[] {root}, d);
    same(new int[] {root}, i);
    same(new long[] {root}, l);
    same(new byte[] {(byte) root}, b);
    float[] allFloats = new float[size];
    double[] allDoubles = new double[size];
    int[] allInts = new int[size];
    long[] allLongs = new long[size];
    byte[] allBytes = new byte[size];
    comm.allGather(new float[] {rank}, allFloats);
    comm.allGather(new double[] {rank}, allDoubles);
    comm.allGather(new int[] {rank}, allInts);
    comm.allGather(new long[] {rank}, allLongs);
    comm.allGather(new byte[] {(byte) rank}, allBytes);
    for (int each = 0; each < size; each++) {
      Expect.that(
          "O26",
          allFloats[each] == each
              && allDoubles[each] == each
              && allInts[each] == each
              && allLongs[each] == each
              && allBytes[each] == each,
          "allGather gave something else for rank %d",
          each);
    }
    float[] scattered = new float[1];
    float[] spread = new float[size];
    Arrays.fill(spread, rank);
    comm.reduceScatter(spread, scattered, ReduceOp.SUM);
    same(new float[] {ranks}, scattered);
    double[] scatteredDouble = new double[1];
    comm.reduceScatter(
        IntStream.range(0, size).asDoubleStream().toArray(), scatteredDouble, ReduceOp.SUM);
    same(new double[] {rank * size}, scatteredDouble);
    int[] scatteredInt = {-1};
    comm.reduceScatter(IntStream.range(0, size).toArray(), scatteredInt, ReduceOp.MAX);
    same(new int[] {rank}, scatteredInt);
    long[] scatteredLong = {-1};
    comm.reduceScatter(LongStream.range(0, size).toArray(), scatteredLong, ReduceOp.MAX);
    same(new long[] {rank}, scatteredLong);
  }

  /// Rank r has r + 1 elements: one behind the other by their counts, and with a hole before each.
  @Rule("O26")
  static void vForms_countsOrPartition_doWhatTheirRecordsDo(LiveRank r) {
    Communicator comm = r.comm();
    long[] counts = LongStream.rangeClosed(1, r.size()).toArray();
    Partition dense = Partition.of(counts);
    Partition holed =
        Partition.of(
            counts,
            IntStream.range(0, r.size())
                .mapToLong(each -> dense.displacement(each) + each)
                .toArray());
    int[] mine = new int[r.rank() + 1];
    Arrays.fill(mine, r.rank());
    for (boolean isDense : new boolean[] {true, false}) {
      Partition parts = isDense ? dense : holed;
      int[] all = new int[(int) parts.extent()];
      int[] part = new int[r.rank() + 1];
      int[] exchanged = new int[(int) parts.extent()];
      int[] sent = new int[r.size() * mine.length];
      Arrays.fill(sent, r.rank());
      long[] sendCounts = new long[r.size()];
      Arrays.fill(sendCounts, mine.length);
      if (isDense) {
        comm.allGatherV(CommData.of(mine), CommData.of(all), counts);
        comm.reduceScatterV(CommData.of(all), counts, CommData.of(part), ReduceOp.MAX);
        comm.allToAllV(CommData.of(sent), sendCounts, CommData.of(exchanged), counts);
      } else {
        comm.allGatherV(CommData.of(mine), CommData.of(all), parts);
        comm.reduceScatterV(CommData.of(all), parts, CommData.of(part), ReduceOp.MAX);
        comm.allToAllV(CommData.of(sent), Partition.of(sendCounts), CommData.of(exchanged), parts);
      }
      int[] expected = new int[(int) parts.extent()];
      for (int each = 0; each < r.size(); each++) {
        int from = (int) parts.displacement(each);
        Arrays.fill(expected, from, from + each + 1, each);
      }
      same(expected, all);
      same(mine, part);
      same(expected, exchanged);
    }
  }

  private static void same(Object expected, Object actual) {
    if (!Arrays.deepEquals(new Object[] {expected}, new Object[] {actual})) {
      throw new RuleViolation(
          "O26",
          "%s (expected: %s)"
              .formatted(
                  Arrays.deepToString(new Object[] {actual}),
                  Arrays.deepToString(new Object[] {expected})));
    }
  }

  /// The same calls on a communicator of one.
  @Rule({"O19", "T15"})
  static void collectives_groupOfOne_areTheIdentity(LiveRank r) {
    try (Communicator alone =
        r.size() == 1 ? r.comm().duplicate() : r.comm().split(r.rank(), 0).orElseThrow()) {
      Expect.equal("O19", "its size", alone.size(), 1);
      for (CollectiveKind kind : CollectiveKind.values()) {
        for (boolean inPlace : new boolean[] {false, true}) {
          for (ReduceOp op : List.of(ReduceOp.SUM, ReduceOp.LOGICAL_AND, ReduceOp.AVERAGE)) {
            CollectiveCase of =
                new CollectiveCase(
                    kind,
                    op == ReduceOp.LOGICAL_AND ? DataType.INT32 : DataType.FLOAT16,
                    kind.isReducing() ? op : null,
                    9,
                    0,
                    inPlace,
                    1,
                    Values.ANY,
                    r.seed());
            try (CaseMemory memory =
                new CaseMemory(of.expected(), 0, CaseMemory.Place.HEAP, null)) {
              alone.run(memory.call());
              memory.check(CollectiveCase.Bits.SAME);
              memory.fill();
              alone.start(memory.call()).await();
              memory.check(CollectiveCase.Bits.SAME);
            }
          }
        }
      }
    }
  }

  @Rule({"O22", "T15"})
  static void reductions_groupOfOne_haveTheSameBitsBothWays(LiveRank r) {
    try (Communicator alone =
        r.size() == 1 ? r.comm().duplicate() : r.comm().split(r.rank(), 0).orElseThrow()) {
      byte[] input = {0x01, 0x7e, 0x00, (byte) 0xfe, 0x00, 0x3c}; // two odd NaNs and 1
      byte[] blocking = new byte[input.length];
      byte[] started = new byte[input.length];
      CommData from = CommData.of(DataType.FLOAT16, MemorySegment.ofArray(input));
      for (ReduceOp op : List.of(ReduceOp.SUM, ReduceOp.AVERAGE)) {
        alone.run(new Collective.AllReduce(from, float16(blocking), op));
        alone.start(new Collective.AllReduce(from, float16(started), op)).await();
        Expect.equal(
            "O22", op + " when started", Arrays.toString(started), Arrays.toString(blocking));
      }
    }
  }

  private static CommData float16(byte[] bytes) {
    return CommData.of(DataType.FLOAT16, MemorySegment.ofArray(bytes));
  }

  @Rule("O17")
  static void collectives_nothingAnywhere_areFine(LiveRank r) {
    for (CollectiveKind kind : CollectiveKind.values()) {
      CollectiveCase of =
          new CollectiveCase(
              kind,
              DataType.FLOAT32,
              kind.isReducing() ? ReduceOp.SUM : null,
              0,
              r.size() - 1,
              false,
              r.size(),
              Values.EXACT,
              r.seed());
      try (CaseMemory memory =
          new CaseMemory(of.expected(), r.rank(), CaseMemory.Place.HEAP, null)) {
        Expect.fine("O17", of.toString(), () -> r.comm().run(memory.call()));
        memory.check(CollectiveCase.Bits.SAME);
      }
    }
  }

  @Rule({"T13", "B3"})
  @Needs(capabilities = org.comm4j.api.Capability.USER_DEFINED_OPERATORS)
  static void userDefined_notCommutative_isAppliedInRankOrder(LiveRank r) {
    ReduceOp strict =
        ReduceOp.of(
            "strict affine",
            (source, accumulator, type, count) -> {
              Expect.that("T13", source.isReadOnly(), "the source can be written");
              Expect.that("T13", count >= 1, "called with %d elements", count);
              Expect.that(
                  "T13",
                  source.byteSize() == type.bytes(count)
                      && accumulator.byteSize() == type.bytes(count),
                  "called with %d and %d bytes for %d elements",
                  source.byteSize(),
                  accumulator.byteSize(),
                  count);
              Operators.combineAffine(source, accumulator, type, count);
            });
    for (CollectiveKind kind : CollectiveKind.values()) {
      if (!kind.isReducing()) {
        continue;
      }
      for (int count : new int[] {0, 1, 5, 3000}) {
        CollectiveCase of =
            new CollectiveCase(
                kind,
                DataType.UINT64,
                strict,
                count,
                r.size() / 2,
                count == 5,
                r.size(),
                Values.ANY,
                r.seed() + count);
        try (CaseMemory memory =
            new CaseMemory(of.expected(), r.rank(), CaseMemory.Place.HEAP, null)) {
          r.comm().run(memory.call());
          memory.check(CollectiveCase.Bits.SAME);
        }
      }
    }
  }
}
