package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.Collective.AllGather;
import org.comm4j.api.Collective.AllGatherV;
import org.comm4j.api.Collective.AllReduce;
import org.comm4j.api.Collective.AllToAll;
import org.comm4j.api.Collective.AllToAllV;
import org.comm4j.api.Collective.Barrier;
import org.comm4j.api.Collective.Broadcast;
import org.comm4j.api.Collective.ExclusiveScan;
import org.comm4j.api.Collective.Gather;
import org.comm4j.api.Collective.GatherV;
import org.comm4j.api.Collective.Reduce;
import org.comm4j.api.Collective.ReduceScatter;
import org.comm4j.api.Collective.ReduceScatterV;
import org.comm4j.api.Collective.Scan;
import org.comm4j.api.Collective.Scatter;
import org.comm4j.api.Collective.ScatterV;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.PointToPoint.SendReceive;
import org.junit.jupiter.api.Test;

class ChecksTest {
  private static final int SIZE = 4;
  private static final long HUGE = Long.MAX_VALUE / 8;

  private final HostData three = ints(3);
  private final HostData twelve = ints(12);
  private final HostData readOnly = CommData.of(DataType.INT32, twelve.segment().asReadOnly());

  @Test
  void operation_correct_isAcceptedOnEveryRank() {
    Partition parts = Partition.of(1, 2, 0, 3);
    for (int rank = 0; rank < SIZE; rank++) {
      HostData own = ints((int) parts.count(rank));
      for (Operation operation :
          List.of(
              new AllReduce(ints(3), ints(3), ReduceOp.SUM),
              new Reduce(ints(3), null, ReduceOp.SUM, (rank + 1) % SIZE),
              new Broadcast(three, 3),
              new AllGather(ints(3), ints(12)),
              new AllGatherV(own, ints(6), parts),
              new Gather(ints(3), rank == 2 ? ints(12) : null, 2),
              new GatherV(own, rank == 2 ? ints(6) : null, rank == 2 ? parts : null, 2),
              new Scatter(rank == 2 ? ints(12) : null, ints(3), 2),
              new ScatterV(rank == 2 ? ints(6) : null, rank == 2 ? parts : null, own, 2),
              new ReduceScatter(ints(12), ints(3), ReduceOp.MAX),
              new ReduceScatterV(ints(9), parts, own, ReduceOp.MAX),
              new AllToAll(ints(12), ints(12)),
              new AllToAllV(
                  ints(6),
                  parts,
                  ints(8),
                  Partition.of(new long[] {1, 2, 0, 3}, new long[] {0, 1, 3, 5})),
              new Scan(ints(3), ints(3), ReduceOp.MIN),
              new ExclusiveScan(ints(3), ints(3), ReduceOp.MIN),
              new Barrier(),
              new Send(three, rank, 0),
              new Receive(three, Communicator.ANY_SOURCE, Communicator.ANY_TAG),
              new SendReceive(three, 3, 0, twelve, 0, Communicator.MAX_TAG),
              new Probe(Communicator.ANY_SOURCE, 5))) {
        assertAccepted(operation, rank);
      }
    }
  }

  @Test
  void inPlace_exactlyTheOwnPart_isAccepted() {
    Partition parts = Partition.of(1, 2, 0, 3);
    for (int rank = 0; rank < SIZE; rank++) {
      HostData own = twelve.slice(rank * 3L, 3);
      HostData ownV = twelve.slice(parts.displacement(rank), parts.count(rank));
      assertAccepted(new AllReduce(three, three, ReduceOp.SUM), rank);
      assertAccepted(new Reduce(three, three, ReduceOp.SUM, rank), rank);
      assertAccepted(new AllGather(own, twelve), rank);
      assertAccepted(new AllGatherV(ownV, twelve, parts), rank);
      assertAccepted(new Gather(own, twelve, rank), rank);
      assertAccepted(new GatherV(ownV, twelve, parts, rank), rank);
      assertAccepted(new Scatter(twelve, own, rank), rank);
      assertAccepted(new ScatterV(twelve, parts, ownV, rank), rank);
      assertAccepted(new ReduceScatter(twelve, own, ReduceOp.SUM), rank);
      assertAccepted(new ReduceScatterV(twelve, parts, ownV, ReduceOp.SUM), rank);
      assertAccepted(new Scan(three, three, ReduceOp.SUM), rank);
    }
  }

  @Test
  void inPlace_anotherRanksPart_isRefused() {
    HostData other = twelve.slice(4, 3);
    Partition parts = Partition.even(SIZE, 3);
    for (Operation operation :
        List.of(
            new AllGather(other, twelve),
            new AllGatherV(other, twelve, parts),
            new Gather(other, twelve, 1),
            new GatherV(other, twelve, parts, 1),
            new Scatter(twelve, other, 1),
            new ScatterV(twelve, parts, other, 1),
            new ReduceScatter(twelve, other, ReduceOp.SUM),
            new ReduceScatterV(twelve, parts, other, ReduceOp.SUM))) {
      assertRefused(
          operation, 1, "INT32 × 3 and INT32 × 12 overlap", "own part", "separate memory");
    }
  }

  @Test
  void overlap_notExactlyTheSame_isRefusedWithoutAGroup() {
    HostData left = twelve.slice(0, 4);
    HostData right = twelve.slice(3, 4);

    assertRefused(() -> new AllReduce(left, right, ReduceOp.SUM), "overlap", "exactly the same");
    assertRefused(() -> new Scan(left, right, ReduceOp.SUM), "overlap", "exactly the same");
    assertRefused(() -> new ExclusiveScan(left, right, ReduceOp.SUM), "overlap", "exactly");
    assertRefused(() -> new AllToAll(left, left), "overlap", "no in-place form");
    assertRefused(
        () -> new AllToAllV(left, Partition.of(1), right, Partition.of(1)), "no in-place form");
    assertRefused(() -> new SendReceive(left, 0, 0, right, 0, 0), "overlap", "no in-place form");
  }

  /// Such as `new float[rank == root ? n : 0]`.
  @Test
  void rootsArguments_wrongInEveryWay_areRefusedOnTheRootAlone() {
    HostData three = ints(3);
    HostData none = ints(0);
    HostData floats = CommData.of(new float[12]);
    HostData left = twelve.slice(0, 4);
    Partition parts = Partition.even(SIZE, 3);
    for (Operation operation :
        List.of(
            new Reduce(three, none, ReduceOp.SUM, 1),
            new Reduce(three, CommData.of(new float[3]), ReduceOp.SUM, 1),
            new Reduce(left, twelve.slice(3, 4), ReduceOp.SUM, 1),
            new Gather(three, none, 1),
            new Gather(three, floats, 1),
            new GatherV(three, none, parts, 1),
            new GatherV(three, floats, parts, 1),
            new Scatter(none, three, 1),
            new Scatter(floats, three, 1),
            new ScatterV(none, parts, three, 1),
            new ScatterV(floats, parts, three, 1))) {
      assertAccepted(operation, 0);
      assertRefused(operation, 1, "INT32");
    }
  }

  @Test
  void overlap_throughAReadOnlyView_isRefused() {
    assertRefused(() -> new AllToAll(readOnly, twelve), "overlap", "separate memory");
    assertRefused(
        () -> new AllReduce(readOnly.slice(1, 3), twelve.slice(0, 3), ReduceOp.SUM), "overlap");
    assertAccepted(new AllReduce(readOnly, twelve, ReduceOp.SUM), 0);
  }

  @Test
  void overlap_onOneDevice_isRefused() {
    DeviceData here = new DeviceData(DataType.INT32, 1000, 4, 0);
    DeviceData shifted = new DeviceData(DataType.INT32, 1012, 4, 0);

    assertRefused(() -> new AllReduce(here, shifted, ReduceOp.SUM), "on device 0", "overlap");
    assertAccepted(new AllReduce(here, here, ReduceOp.SUM), 0);
    assertAccepted(
        new AllReduce(here, new DeviceData(DataType.INT32, 1016, 4, 0), ReduceOp.SUM), 0);
    assertAccepted(
        new AllReduce(here, new DeviceData(DataType.INT32, 1012, 4, 1), ReduceOp.SUM), 0);
    assertAccepted(new AllToAll(here.slice(2, 0), here.slice(1, 0)), 0);
    assertAccepted(new AllReduce(here, ints(4), ReduceOp.SUM), 0);
  }

  @Test
  void overlap_deviceMemoryAtTheEndOfTheAddressSpace_isSeen() {
    DeviceData last = new DeviceData(DataType.INT8, Long.MAX_VALUE - 7, 16, 0);

    assertRefused(
        () ->
            new AllReduce(last, new DeviceData(DataType.INT8, Long.MAX_VALUE, 16, 0), ReduceOp.SUM),
        "overlap");
    assertRefused(() -> new AllToAll(last, last), "overlap");
  }

  @Test
  void zeroLength_everywhere_isAccepted() {
    HostData none = twelve.slice(5, 0);
    Partition parts = Partition.even(SIZE, 0);
    for (int rank = 0; rank < SIZE; rank++) {
      for (Operation operation :
          List.of(
              new AllReduce(none, none, ReduceOp.SUM),
              new AllReduce(none, twelve.slice(7, 0), ReduceOp.SUM),
              new Broadcast(none, 0),
              new AllGather(none, none),
              new AllGatherV(none, twelve, parts),
              new Gather(none, none, rank),
              new GatherV(none, twelve, parts, rank),
              new Scatter(none, none, rank),
              new ScatterV(twelve, parts, none, rank),
              new ReduceScatter(none, none, ReduceOp.SUM),
              new ReduceScatterV(twelve, parts, none, ReduceOp.SUM),
              new AllToAll(none, none),
              new AllToAllV(none, parts, twelve, parts),
              new SendReceive(none, 0, 0, twelve, 0, 0))) {
        assertAccepted(operation, rank);
      }
    }
  }

  @Test
  void shape_wrong_isRefusedWithBothCounts() {
    assertRefused(
        () -> new AllReduce(three, twelve, ReduceOp.SUM), "output: INT32 × 12", "3 elements");
    assertRefused(
        () -> new AllReduce(three, CommData.of(1f, 2f, 3f), ReduceOp.SUM), "FLOAT32 × 3", "INT32");
    assertRefused(() -> new AllToAll(twelve, three), "output: INT32 × 3", "12 elements");
    assertRefused(
        () -> new AllGatherV(three, ints(5), Partition.of(3, 3)), "INT32 × 5", "at least 6");
    assertRefused(
        () -> new AllToAllV(three, Partition.of(4), twelve, Partition.of(1)), "input: INT32 × 3");
    assertRefused(new AllGather(three, ints(11)), 0, "output: INT32 × 11", "4 × 3 elements");
    assertRefused(new Gather(three, ints(16), 0), 0, "output: INT32 × 16", "4 × 3 elements");
    assertRefused(new Scatter(ints(9), three, 0), 0, "input: INT32 × 9", "4 × 3 elements");
    assertRefused(
        new ReduceScatter(ints(13), three, ReduceOp.SUM), 0, "input: INT32 × 13", "4 × 3");
    assertRefused(new AllToAll(ints(6), ints(6)), 0, "input: INT32 × 6", "multiple of 4");
    Partition parts = Partition.of(1, 2, 0, 3);
    assertRefused(
        new AllGatherV(three, twelve.slice(0, 6), parts), 1, "input: INT32 × 3", "2 elements");
    assertRefused(
        new ReduceScatterV(twelve, parts, ints(1), ReduceOp.SUM), 3, "INT32 × 1", "3 elements");
  }

  @Test
  void partition_ofAnotherSize_isRefusedByItsName() {
    Partition five = Partition.even(5, 1);
    Partition four = Partition.even(4, 1);

    assertRefused(new AllGatherV(ints(1), twelve, five), 0, "parts: for 5 ranks", "expected: 4");
    assertRefused(new GatherV(ints(1), twelve, five, 0), 0, "parts: for 5 ranks");
    assertRefused(new AllToAllV(twelve, five, ints(12), four), 0, "sendParts: for 5 ranks");
    assertRefused(new AllToAllV(twelve, four, ints(12), five), 0, "receiveParts: for 5 ranks");
  }

  @Test
  void count_nearTheEndOf64Bits_doesNotWrapAround() {
    CommData huge = new DeviceData(DataType.INT8, 0, HUGE, 0);
    CommData most = new DeviceData(DataType.INT8, 0, Long.MAX_VALUE, 1);

    assertRefused(new AllGather(most, huge), 0, "" + Long.MAX_VALUE);
    assertRefused(new ReduceScatter(huge, most, ReduceOp.SUM), 3, "" + HUGE);
    // 4 × 2^62 wraps to 0
    CommData wraps = new DeviceData(DataType.INT8, 0, 1L << 62, 0);
    assertRefused(new AllGather(wraps, new DeviceData(DataType.INT8, 0, 0, 0)), 3, "4 × ");
  }

  @Test
  void root_outside_isRefused() {
    for (int root : new int[] {-1, SIZE, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
      for (Operation operation :
          List.of(
              new Broadcast(three, root),
              new Reduce(three, null, ReduceOp.SUM, root),
              new Gather(three, null, root),
              new Scatter(null, three, root))) {
        assertRefused(operation, 0, "root: " + root, "0..3", "4 ranks");
      }
    }
  }

  @Test
  void root_withoutItsBuffer_isRefused() {
    assertRefused(new Reduce(three, null, ReduceOp.SUM, 1), 1, "output: null", "rank 1");
    assertRefused(new Gather(three, null, 1), 1, "output: null", "rank 1");
    assertRefused(new Scatter(null, three, 1), 1, "input: null", "rank 1");
    assertRefused(new GatherV(three, twelve, null, 1), 1, "parts: null", "rank 1");
    assertRefused(new ScatterV(twelve, null, three, 1), 1, "parts: null", "rank 1");
  }

  @Test
  void peerOrTag_outside_isRefused() {
    int max = Communicator.MAX_TAG;
    assertRefused(new Send(three, 4, 0), 0, "destination: 4", "0..3");
    assertRefused(new Send(three, -1, 0), 0, "destination: -1", "0..3");
    assertRefused(new Send(three, 0, max + 1), 0, "tag: 32768", "0..32767");
    assertRefused(new Send(three, 0, Communicator.ANY_TAG), 0, "tag: -1", "0..32767");
    assertRefused(new Receive(three, 4, 0), 0, "source: 4", "0..3", "ANY_SOURCE");
    assertRefused(new Receive(three, -2, 0), 0, "source: -2", "0..3");
    assertRefused(new Receive(three, 0, -2), 0, "tag: -2", "0..32767", "ANY_TAG");
    assertRefused(new Probe(0, max + 1), 0, "tag: 32768");
    assertRefused(new SendReceive(three, 0, 0, twelve, 0, -5), 0, "receiveTag: -5");
    assertRefused(new SendReceive(three, 0, -1, twelve, 0, 0), 0, "sendTag: -1");
    assertRefused(new SendReceive(three, 9, 0, twelve, 0, 0), 0, "destination: 9");
  }

  @Test
  void output_readOnly_isRefusedWhereItIsWritten() {
    HostData fixed = readOnly.slice(0, 3);
    for (Operation operation :
        List.of(
            new AllReduce(three, fixed, ReduceOp.SUM),
            new Reduce(three, fixed, ReduceOp.SUM, 1),
            new Broadcast(fixed, 0),
            new AllGather(three, readOnly),
            new Gather(three, readOnly, 1),
            new Scatter(ints(12), fixed, 1),
            new ReduceScatter(ints(12), fixed, ReduceOp.SUM),
            new AllToAll(ints(12), readOnly),
            new Scan(three, fixed, ReduceOp.SUM),
            new Receive(fixed, 0, 0),
            new SendReceive(three, 0, 0, fixed, 0, 0))) {
      assertRefused(operation, 1, "read-only", "can be written");
    }
    assertAccepted(new Broadcast(fixed, 1), 1);
    assertAccepted(new Reduce(three, fixed, ReduceOp.SUM, 0), 1);
    assertAccepted(new AllReduce(fixed, three, ReduceOp.SUM), 1);
    assertAccepted(new Send(fixed, 0, 0), 1);
  }

  @Test
  @SuppressWarnings("NullAway")
  void argument_null_isRefusedByTheRecordByItsName() {
    Partition parts = Partition.of(3);
    assertNull("data", () -> new Broadcast(null, 0), () -> new Send(null, 0, 0));
    assertNull("data", () -> new Receive(null, 0, 0));
    assertNull("op", () -> new AllReduce(three, three, null));
    assertNull("op", () -> new ExclusiveScan(three, three, null));
    assertNull(
        "input",
        () -> new AllReduce(null, three, ReduceOp.SUM),
        () -> new Reduce(null, null, ReduceOp.SUM, 0),
        () -> new AllGather(null, three),
        () -> new AllGatherV(null, three, parts),
        () -> new Gather(null, null, 0),
        () -> new GatherV(null, null, null, 0),
        () -> new ReduceScatter(null, three, ReduceOp.SUM),
        () -> new ReduceScatterV(null, parts, three, ReduceOp.SUM),
        () -> new AllToAll(null, three),
        () -> new AllToAllV(null, parts, three, parts),
        () -> new Scan(null, three, ReduceOp.SUM),
        () -> new ExclusiveScan(null, three, ReduceOp.SUM),
        () -> new SendReceive(three, 0, 0, null, 0, 0));
    assertNull(
        "output",
        () -> new AllReduce(three, null, ReduceOp.SUM),
        () -> new AllReduce(three, null, ReduceOp.SUM, Epilogue.scale(2)),
        () -> new AllGather(three, null),
        () -> new AllGatherV(three, null, parts),
        () -> new Scatter(null, null, 0),
        () -> new ScatterV(null, null, null, 0),
        () -> new ReduceScatter(three, null, ReduceOp.SUM),
        () -> new ReduceScatterV(three, parts, null, ReduceOp.SUM),
        () -> new AllToAll(three, null),
        () -> new AllToAllV(three, parts, null, parts),
        () -> new Scan(three, null, ReduceOp.SUM),
        () -> new ExclusiveScan(three, null, ReduceOp.SUM),
        () -> new SendReceive(null, 0, 0, three, 0, 0));
    assertNull(
        "parts",
        () -> new AllGatherV(three, ints(3), null),
        () -> new ReduceScatterV(three, null, ints(3), ReduceOp.SUM));
    assertNull("sendParts", () -> new AllToAllV(three, null, ints(3), parts));
    assertNull("receiveParts", () -> new AllToAllV(three, parts, ints(3), null));
  }

  private static void assertNull(String name, ThrowingCallable... calls) {
    for (ThrowingCallable call : calls) {
      assertThatNullPointerException().isThrownBy(call).withMessage(name);
    }
  }

  @Test
  void groupOfOne_isTheIdentity() {
    assertThatCode(() -> Checks.group(new AllGather(three, three), 0, 1))
        .doesNotThrowAnyException();
    assertThatCode(() -> Checks.group(new ReduceScatter(three, three, ReduceOp.SUM), 0, 1))
        .doesNotThrowAnyException();
  }

  private static HostData ints(int count) {
    return CommData.of(DataType.INT32, MemorySegment.ofArray(new int[count]));
  }

  private static void assertAccepted(Operation operation, int rank) {
    assertThatCode(() -> Checks.group(operation, rank, SIZE))
        .as(operation + " on rank " + rank)
        .doesNotThrowAnyException();
  }

  private static void assertRefused(Operation operation, int rank, String... parts) {
    assertRefused(() -> Checks.group(operation, rank, SIZE), parts);
  }

  private static void assertRefused(ThrowingCallable call, String... parts) {
    assertThatIllegalArgumentException()
        .isThrownBy(call)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts).contains("expected: "));
  }
}
