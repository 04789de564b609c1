package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.ReduceOp.Predefined;
import org.comm4j.core.kernel.EpilogueKernel;
import org.comm4j.core.kernel.Kernel;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The kernels against core's arithmetic: the left fold, bit for bit. They run on the host, which
/// shows nothing of a GPU's memory and scheduling, or on a GPU ([TestDevice]).
class CudaKernelTest {
  private static final long FOR_EVER_NS = TimeUnit.MINUTES.toNanos(5);
  private static final long LONG_FOR_A_LIVING_RANK_NS = TimeUnit.SECONDS.toNanos(1);
  private static final int SEED = 4711;

  /// What `gpu-check` runs under compute-sanitizer.
  private static final String SANITIZED = "sanitized";

  private static final List<Integer> SEVERAL_RANKS = List.of(2, 3, 4, 5, 6, 7, 8, 9, 16);

  // --- every size, alignment and number of ranks ---

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16})
  void allReduce_everyWayAndSize_isTheLeftFold(int ranks) {
    List<DataType> types =
        List.of(DataType.FLOAT64, DataType.FLOAT32, DataType.BFLOAT16, DataType.INT8);
    try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
      var random = new Random(SEED + ranks);
      int call = 0;
      for (DataType type : types) {
        for (int count : sizes(ranks)) {
          for (Way way : Way.values()) {
            var reduction = new Reduction(group, random, ReduceOp.SUM, type, count);
            reduction.allReduce(way, ++call, grid(random));
            reduction.assertResults();
          }
        }
      }
    }
  }

  /// Around units of 16 bytes, and parts that are empty, and some that are large.
  private static int[] sizes(int ranks) {
    return IntStream.concat(
            IntStream.of(0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 127),
            IntStream.of(4 * ranks - 1, 4 * ranks, 16 * ranks + 1, 509))
        .toArray();
  }

  /// Few threads, so that each has several units, and blocks that have none.
  private static int[] grid(Random random) {
    return new int[] {1 + random.nextInt(3), 1 + random.nextInt(3)};
  }

  @ParameterizedTest
  @EnumSource
  @Tag(SANITIZED)
  void allReduce_anyAlignment_isTheLeftFold(Way way) {
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      var random = new Random(SEED);
      int call = 0;
      for (int input = 0; input < 16; input += 2) {
        for (int output = 0; output < 16; output += 2) {
          var reduction = new Reduction(group, random, ReduceOp.SUM, DataType.FLOAT16, 45);
          reduction.shift(input, output);
          reduction.allReduce(way, ++call, grid(random));
          reduction.assertResults();
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TWO_STAGES", "LOW_LATENCY"})
  void allReduce_inPlace_isTheSum(Way way) {
    int ranks = 5;
    int count = 333;
    try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
      group.onRanks(
          ranks,
          rank -> {
            MemorySegment data = group.memory(4L * count, 0);
            group.data(rank, data, data, true);
            for (int call = 1; call <= 30; call++) {
              fill(data, call + rank);
              group.parameters(rank).call(call, 0);
              way.set(group.parameters(rank), count, ranks);
              group.launch(
                  rank, way.kernel(ReduceOp.SUM, DataType.INT32).orElseThrow(), 1 + call % 3, 2);
              assertThat(data.toArray(ValueLayout.JAVA_INT))
                  .containsOnly(ranks * call + ranks * (ranks - 1) / 2);
            }
          });
    }
  }

  // --- every operator and type ---

  static Stream<Arguments> reductions() {
    List<Arguments> all = new ArrayList<>();
    for (Predefined op : Predefined.values()) {
      for (DataType type : DataType.values()) {
        if (op.supports(type)) {
          int several = SEVERAL_RANKS.get(all.size() % SEVERAL_RANKS.size());
          all.add(Arguments.of(op, type, several));
        }
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("reductions")
  @Tag(SANITIZED)
  void allReduce_everyOperatorAndType_isTheLeftFold(Predefined op, DataType type, int several) {
    for (int ranks : List.of(1, several)) {
      try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
        var random = new Random(SEED);
        int call = 0;
        for (Way way : Way.values()) {
          assertThat(way.kernel(op, type).isPresent())
              .isEqualTo(way != Way.LOW_LATENCY || type.bytes() <= 8);
          if (way.kernel(op, type).isPresent()) {
            var reduction = new Reduction(group, random, op, type, 400);
            reduction.allReduce(way, ++call, new int[] {2, 2});
            reduction.assertResults();
          }
        }
      }
    }
  }

  // --- epilogues ---

  /// What the residual is.
  enum Residual {
    NONE,
    OTHER,
    OUTPUT
  }

  static Stream<Arguments> epilogues() {
    return Stream.of(Predefined.values())
        .flatMap(op ->
            Stream.of(DataType.values())
                .filter(type -> KernelName.hasEpilogue(op, type))
                .map(type -> Arguments.of(op, type)));
  }

  @ParameterizedTest
  @MethodSource("epilogues")
  @Tag(SANITIZED)
  void allReduce_withEpilogue_isTheFunctionOfTheResult(Predefined op, DataType type) {
    int count = 203;
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      var random = new Random(SEED);
      int call = 0;
      for (Way way : Way.values()) {
        for (int biasCount : new int[] {0, 1, 3, 100, count, 2 * count}) {
          for (Residual residual : Residual.values()) {
            var reduction = new Reduction(group, random, op, type, count);
            reduction.useNumbers(random);
            reduction.shift(0, (int) type.bytes(random.nextInt(2)));
            reduction.useEpilogue(random, biasCount, residual);
            reduction.allReduce(way, ++call, grid(random));
            reduction.assertResults();
          }
        }
      }
    }
  }

  static Stream<Arguments> casts() {
    return floats()
        .flatMap(from ->
            floats()
                .filter(to -> to != from)
                .map(to ->
                    Arguments.of(from.id() < to.id() ? ReduceOp.SUM : ReduceOp.AVERAGE, from, to)));
  }

  private static Stream<DataType> floats() {
    return Stream.of(DataType.values()).filter(type -> type.kind() == Kind.FLOAT);
  }

  /// Of numbers, and of any bits: infinities and NaNs among them, and what the other type has not.
  @ParameterizedTest
  @MethodSource("casts")
  @Tag(SANITIZED)
  void allReduce_withCast_isTheFunctionOfTheResult(Predefined op, DataType from, DataType to) {
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      var random = new Random(SEED);
      int call = 0;
      for (Way way : Way.values()) {
        for (int count : new int[] {1, 2, 15, 64, 203}) {
          for (Residual residual : Residual.values()) {
            var reduction = new Reduction(group, random, op, from, count);
            if (count == 203) {
              reduction.useNumbers(random);
            }
            reduction.castTo(to);
            reduction.shift((int) from.bytes(random.nextInt(2)), (int) to.bytes(random.nextInt(2)));
            reduction.useEpilogue(random, count % 2 == 0 ? 0 : 7, residual);
            reduction.allReduce(way, ++call, grid(random));
            reduction.assertResults();
          }
        }
      }
    }
  }

  /// A sum of doubles that is nearly a tie of the smaller type: rounded to the nearest float first,
  /// it would be one.
  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void allReduce_castOfADoubleNextToATie_roundsOnce(DataType to) {
    try (var group = new KernelGroup(2, FOR_EVER_NS)) {
      var random = new Random(SEED);
      var reduction = new Reduction(group, random, ReduceOp.SUM, DataType.FLOAT64, 4);
      double tie = 1 + Math.scalb(1.0, -1 - mantissaBits(to));
      reduction.use(0, tie, tie, -tie, -tie);
      reduction.use(1, Math.ulp(1.0), -Math.ulp(1.0), -Math.ulp(1.0), Math.ulp(1.0));
      reduction.castTo(to);
      reduction.useEpilogue(random, 0, Residual.NONE);
      reduction.allReduce(Way.ONE_STAGE, 1, new int[] {1, 1});
      reduction.assertResults();
    }
  }

  private static int mantissaBits(DataType type) {
    return switch (type) {
      case FLOAT16 -> 10;
      case BFLOAT16 -> 7;
      case FLOAT8_E4M3 -> 3;
      case FLOAT8_E5M2 -> 2;
      default -> throw new IllegalArgumentException(type.toString());
    };
  }

  /// Each rank gets another type, or none, in one call.
  @ParameterizedTest
  @EnumSource
  void allReduce_outputsOfDifferentTypes_meet(Way way) {
    int count = 203;
    List<DataType> types = List.of(DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64);
    try (var group = new KernelGroup(types.size(), FOR_EVER_NS)) {
      var random = new Random(SEED);
      var reduction = new Reduction(group, random, ReduceOp.SUM, DataType.FLOAT32, count);
      List<MemorySegment> outputs =
          types.stream().map(type -> group.memory(type.bytes(count), 0)).toList();
      group.onRanks(
          types.size(),
          rank -> {
            DataType type = types.get(rank);
            Parameters parameters = group.parameters(rank).call(1, 0);
            way.set(parameters, count, 1);
            group.data(rank, reduction.inputs.get(rank), outputs.get(rank), true);
            KernelName kernel = way.kernel(ReduceOp.SUM, DataType.FLOAT32).orElseThrow();
            if (type != DataType.FLOAT32) {
              parameters.epilogue(type, 1, 0, 0, 0, 0);
              kernel = way.castKernel(DataType.FLOAT32);
            }
            group.launch(rank, kernel, 2, 2);
          });
      byte[] sum = LeftFold.of(ReduceOp.SUM, DataType.FLOAT32, reduction.inputs, 0, count);
      for (int rank = 0; rank < types.size(); rank++) {
        HostData expected =
            CommData.of(types.get(rank), group.memory(outputs.get(rank).byteSize(), 0));
        EpilogueKernel.apply(
            Epilogue.cast(), DataType.FLOAT32, MemorySegment.ofArray(sum), 0, expected, 0);
        assertThat(outputs.get(rank).mismatch(expected.segment())).isEqualTo(-1);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"BFLOAT16", "FLOAT32", "FLOAT8_E5M2"})
  void reduceScatter_withEpilogue_isTheFunctionOfThePart(DataType to) {
    int ranks = 3;
    int count = 37;
    try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
      var random = new Random(SEED);
      var reduction = new Reduction(group, random, ReduceOp.SUM, DataType.BFLOAT16, ranks * count);
      reduction.useNumbers(random);
      reduction.castTo(to);
      reduction.useEpilogue(random, 5, Residual.OTHER);
      group.onRanks(
          ranks,
          rank -> {
            group.parameters(rank).call(1, 0).oneStage((long) rank * count, count, 1);
            reduction.launch(rank, reduction.name(), new int[] {2, 2});
          });
      for (int rank = 0; rank < ranks; rank++) {
        reduction.assertResult(rank, rank * count, count);
      }
    }
  }

  @Test
  void allReduce_afterOneWithEpilogue_hasNone() {
    try (var group = new KernelGroup(2, FOR_EVER_NS)) {
      var random = new Random(SEED);
      for (int rank = 0; rank < 2; rank++) {
        group.parameters(rank).twoStage(9, 2).epilogue(DataType.FLOAT32, 77, 0, 0, 0, 0);
      }
      var reduction = new Reduction(group, random, ReduceOp.SUM, DataType.FLOAT32, 100);
      reduction.allReduce(Way.TWO_STAGES, 1, new int[] {2, 2});
      reduction.assertResults();
    }
  }

  // --- what one stage does besides ---

  @Test
  void reduceScatter_everyRankReducesItsPart() {
    int ranks = 5;
    int count = 23;
    try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
      var reduction =
          new Reduction(group, new Random(SEED), ReduceOp.MAX, DataType.INT32, ranks * count);
      group.onRanks(
          ranks,
          rank -> {
            group.parameters(rank).call(1, 0).oneStage((long) rank * count, count, 1);
            reduction.launch(rank, reduction.name(), new int[] {2, 2});
          });
      for (int rank = 0; rank < ranks; rank++) {
        reduction.assertResult(rank, rank * count, count);
      }
    }
  }

  @Test
  void reduce_nothingWanted_writesNothing() {
    try (var group = new KernelGroup(4, FOR_EVER_NS)) {
      var reduction = new Reduction(group, new Random(SEED), ReduceOp.SUM, DataType.INT64, 50);
      group.onRanks(
          4,
          rank -> {
            group.parameters(rank).call(1, 0).oneStage(0, rank == 2 ? 50 : 0, 4);
            reduction.launch(rank, reduction.name(), new int[] {2, 2});
          });
      for (int rank = 0; rank < 4; rank++) {
        reduction.assertResult(rank, 0, rank == 2 ? 50 : 0);
      }
    }
  }

  // --- copies ---

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 7, 8, 16})
  @Tag(SANITIZED)
  void fetch_partsOfAnySizeAndPlace_areCopied(int ranks) {
    int most = 100;
    try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
      var random = new Random(SEED + ranks);
      for (int call = 1; call <= 10; call++) {
        var inputs = new ArrayList<MemorySegment>();
        var outputs = new ArrayList<MemorySegment>();
        var expected = new ArrayList<MemorySegment>();
        boolean aligned = random.nextBoolean();
        for (int rank = 0; rank < ranks; rank++) {
          MemorySegment input = group.memory(4L * most, aligned ? 0 : random.nextInt(16));
          fill(input, random, 256);
          inputs.add(input);
          outputs.add(group.memory((long) ranks * most, aligned ? 0 : random.nextInt(16)));
          expected.add(MemorySegment.ofArray(new byte[ranks * most]));
        }
        for (int rank = 0; rank < ranks; rank++) {
          group.parameters(rank).call(call, 1);
          group.data(rank, inputs.get(rank), outputs.get(rank), true);
          for (int peer = 0; peer < ranks; peer++) {
            int unit = aligned ? 16 : 1;
            long bytes = random.nextInt(most / unit) * (long) unit;
            long from = random.nextInt(most / unit) * (long) unit;
            long to = peer * (long) most / unit * unit;
            group.parameters(rank).fetch(peer, Math.min(bytes, most - unit), from, to);
            MemorySegment.copy(
                inputs.get(peer), from, expected.get(rank), to, Math.min(bytes, most - unit));
          }
        }
        int[] grid = grid(random);
        group.onRanks(ranks, rank -> group.launch(rank, KernelName.FETCH, grid[0], grid[1]));
        for (int rank = 0; rank < ranks; rank++) {
          assertThat(outputs.get(rank).mismatch(expected.get(rank))).isEqualTo(-1);
        }
      }
    }
  }

  // --- meeting ---

  @Test
  void meet_nobodyLeaves_beforeAllHaveCome() throws InterruptedException {
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      var left = new CountDownLatch(1);
      group.onRanks(
          3,
          rank -> {
            group.parameters(rank).call(1, 0);
            if (rank == 2) {
              assertThat(left.getCount()).isEqualTo(1);
            }
            group.launch(rank, KernelName.MEET, 2, 1);
            left.countDown();
          });
      assertThat(left.await(0, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void calls_ofAllKindsOneAfterTheOther_areNotMixed() {
    int ranks = 4;
    int calls = 120;
    int count = 37;
    try (var group = new KernelGroup(ranks, FOR_EVER_NS)) {
      group.onRanks(
          ranks,
          rank -> {
            MemorySegment input = group.memory(4L * count, 0);
            MemorySegment output = group.memory(4L * count, 0);
            group.data(rank, input, output, true);
            for (int call = 1; call <= calls; call++) {
              Way way = Way.values()[call * 7 % 3];
              // the same memory in every call: whoever is late would read the next call's
              fill(input, call + rank);
              fill(output, -1);
              group.parameters(rank).call(call, 0);
              way.set(group.parameters(rank), count, ranks);
              group.launch(
                  rank, way.kernel(ReduceOp.SUM, DataType.INT32).orElseThrow(), 1 + call % 3, 2);
              int sum = ranks * call + ranks * (ranks - 1) / 2;
              assertThat(output.toArray(ValueLayout.JAVA_INT)).containsOnly(sum);
            }
          });
    }
  }

  // --- failures ---

  /// All begin behind one event, as this process may pause between them: none is late.
  @ParameterizedTest
  @EnumSource
  void allReduce_ranksAreMissing_theOthersLeaveAndNameThem(Way way) {
    CudaDevice device = TestDevice.get().device();
    try (var group = new KernelGroup(5, LONG_FOR_A_LIVING_RANK_NS);
        var before = new KernelGroup(2, FOR_EVER_NS)) {
      var reduction = new Reduction(group, new Random(SEED), ReduceOp.SUM, DataType.FLOAT32, 20);
      KernelName kernel = way.kernel(ReduceOp.SUM, DataType.FLOAT32).orElseThrow();
      CudaDevice.Event over = device.createEvent();
      before.parameters(0).call(1, 0);
      try {
        before.start(0, KernelName.MEET, 1, 1);
        device.record(over, before.stream(0));
        for (int rank = 0; rank < 3; rank++) {
          group.parameters(rank).call(1, 0);
          way.set(group.parameters(rank), 20, 5);
          device.awaitIn(group.stream(rank), over);
          reduction.start(rank, kernel, new int[] {2, 2});
        }
      } finally {
        before.control(0).abort(); // else its stream does not end
        device.destroy(over); // who waits for it still does
      }
      for (int rank = 0; rank < 3; rank++) {
        group.await(rank);
      }
      var missing = new BitSet();
      missing.set(3, 5);
      for (int rank = 0; rank < 3; rank++) {
        assertThat(group.control(rank).outcome()).isEqualTo(Control.Outcome.LATE);
        assertThat(group.control(rank).concerns()).isEqualTo(missing);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void allReduce_hostSaysAbort_kernelsLeave(Way way) {
    try (var group = new KernelGroup(2, FOR_EVER_NS)) {
      var reduction = new Reduction(group, new Random(SEED), ReduceOp.SUM, DataType.FLOAT32, 20);
      group.parameters(0).call(1, 0);
      way.set(group.parameters(0), 20, 2);
      group.onRanks(
          2,
          thread -> {
            if (thread == 0) {
              reduction.launch(
                  0, way.kernel(ReduceOp.SUM, DataType.FLOAT32).orElseThrow(), new int[] {2, 2});
            } else {
              group.control(0).abort();
            }
          });
      assertThat(group.control(0).outcome()).isEqualTo(Control.Outcome.ABORTED);
    }
  }

  /// What a rank reads of one that has left may be anything.
  @ParameterizedTest
  @EnumSource(names = {"ONE_STAGE", "TWO_STAGES"})
  void allReduce_aRankHasLeft_theOthersDoToo(Way way) {
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      var reduction = new Reduction(group, new Random(SEED), ReduceOp.SUM, DataType.INT32, 20);
      leaveFirst(
          group,
          rank -> {
            group.parameters(rank).call(1, 0);
            way.set(group.parameters(rank), 20, 3);
            reduction.launch(
                rank, way.kernel(ReduceOp.SUM, DataType.INT32).orElseThrow(), new int[] {2, 2});
          });
    }
  }

  @Test
  void fetch_aRankHasLeft_theOthersDoToo() {
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      leaveFirst(
          group,
          rank -> {
            MemorySegment input = group.memory(64, 0);
            group.data(rank, input, group.memory(64, 0), false);
            group.parameters(rank).call(1, 0).fetch(0, 64, 0, 0);
            group.launch(rank, KernelName.FETCH, 1, 2);
          });
    }
  }

  /// Rank 0 comes and leaves, then rank 1 comes; rank 2 whenever it likes.
  private static void leaveFirst(KernelGroup group, IntConsumer launch) {
    var hasLeft = new CountDownLatch(1);
    group.control(0).abort();
    group.onRanks(
        3,
        rank -> {
          if (rank == 1) {
            await(hasLeft);
          }
          launch.accept(rank);
          if (rank == 0) {
            hasLeft.countDown();
          }
        });

    assertThat(group.control(0).outcome()).isEqualTo(Control.Outcome.ABORTED);
    for (int rank = 1; rank < 3; rank++) {
      assertThat(group.control(rank).outcome()).isEqualTo(Control.Outcome.LEFT);
      assertThat(group.control(rank).concerns().get(0)).isTrue();
      assertThat(group.control(rank).concerns().get(rank)).isFalse();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void reduce_ranksDisagree_isAMismatchOnAll() {
    try (var group = new KernelGroup(3, FOR_EVER_NS)) {
      var reduction = new Reduction(group, new Random(SEED), ReduceOp.SUM, DataType.FLOAT32, 20);
      group.onRanks(
          3,
          rank -> {
            group.parameters(rank).call(1, rank == 1 ? 77 : 55).oneStage(0, 20, 3);
            reduction.launch(rank, reduction.name(), new int[] {1, 3});
          });
      for (int rank = 0; rank < 3; rank++) {
        assertThat(group.control(rank).outcome()).isEqualTo(Control.Outcome.MISMATCH);
        assertThat(group.control(rank).concerns().get(1)).isEqualTo(rank != 1);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void allReduce_afterAFailure_leavesAtOnce(Way way) {
    try (var group = new KernelGroup(2, 1)) {
      group.parameters(0).call(1, 0);
      group.launch(0, KernelName.MEET, 1, 1);
      assertThat(group.control(0).outcome()).isEqualTo(Control.Outcome.LATE);
      group.control(0).segment().fill((byte) 0);

      var reduction = new Reduction(group, new Random(SEED), ReduceOp.SUM, DataType.FLOAT32, 20);
      group.parameters(0).call(2, 0);
      way.set(group.parameters(0), 20, 2);
      reduction.launch(
          0, way.kernel(ReduceOp.SUM, DataType.FLOAT32).orElseThrow(), new int[] {2, 1});

      // as the first failure has left it: a rank that waited would have said so
      assertThat(group.control(0).outcome()).isEqualTo(Control.Outcome.DONE);
      reduction.assertResult(0, 0, 0);
    }
  }

  // --- reductions and what they should give ---

  private static void fill(MemorySegment memory, Random random, int bound) {
    for (long i = 0; i < memory.byteSize(); i++) {
      memory.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt(bound));
    }
  }

  private static void fill(MemorySegment memory, int value) {
    for (long i = 0; i < memory.byteSize() / 4; i++) {
      memory.setAtIndex(ValueLayout.JAVA_INT, i, value);
    }
  }

  /// Data of all ranks, of random bits: every kind of number, NaN and infinity among them.
  private static final class Reduction {
    private static final byte UNTOUCHED = 0x5a;

    private final KernelGroup group;
    private final ReduceOp op;
    private final DataType type;
    private final int count;
    private final int ranks;
    private final List<MemorySegment> inputs = new ArrayList<>();
    private final List<MemorySegment> outputs = new ArrayList<>();
    private final List<Ending> endings = new ArrayList<>(); // of each rank, or none
    private DataType outputType;

    Reduction(KernelGroup group, Random random, ReduceOp op, DataType type, int count) {
      this.group = group;
      this.op = op;
      this.type = type;
      this.outputType = type;
      this.count = count;
      this.ranks = group.window().ranks();
      for (int rank = 0; rank < ranks; rank++) {
        MemorySegment input = group.memory(type.bytes(count), 0);
        // without NaNs in a single contribution, which stay as they are or not
        fill(input, random, ranks == 1 ? 64 : 256);
        addEdges(input, random);
        inputs.add(input);
      }
      shift(0, 0);
    }

    /// Makes some numbers 0, the smallest or −0, or −1 or NaN.
    private void addEdges(MemorySegment input, Random random) {
      int bytes = type.kind() == Kind.COMPLEX ? type.bytes() / 2 : type.valueType().bytes();
      for (long at = 0; at < input.byteSize(); at += bytes) {
        MemorySegment number = input.asSlice(at, bytes);
        int edge = random.nextInt(24);
        if (edge <= 2) {
          number.fill((byte) 0);
        } else if (edge == 3 && ranks > 1) {
          number.fill((byte) 0).set(ValueLayout.JAVA_BYTE, bytes - 1, Byte.MIN_VALUE);
        } else if (edge == 4 && ranks > 1) {
          number.fill((byte) -1);
        }
      }
    }

    /// A rank's doubles.
    void use(int rank, double... numbers) {
      inputs.get(rank).copyFrom(MemorySegment.ofArray(numbers));
    }

    /// Numbers of a size such that all bits of a sum count, instead of any bits.
    void useNumbers(Random random) {
      inputs.forEach(input -> fillNumbers(type, input, random));
    }

    private static void fillNumbers(DataType type, MemorySegment memory, Random random) {
      var numbers = new double[(int) type.countIn(memory.byteSize())];
      Arrays.setAll(numbers, _ -> random.nextGaussian());
      memory.copyFrom(MemorySegment.ofArray(narrow(type, numbers)));
    }

    /// Gives outputs another type, by an epilogue.
    void castTo(DataType other) {
      outputType = other;
      shift(0, 0);
    }

    /// Gives each rank an epilogue of its own.
    void useEpilogue(Random random, int biasCount, Residual kind) {
      for (int rank = 0; rank < ranks; rank++) {
        HostData bias = numbers(random, biasCount, 0);
        HostData residual = numbers(random, count, outputType.bytes(random.nextInt(2)));
        MemorySegment output = outputs.get(rank);
        if (kind == Residual.OUTPUT) {
          output.copyFrom(residual.segment());
        }
        var scaled = Epilogue.scale(biasCount % 2 == 0 ? 1 : random.nextGaussian());
        var biased = biasCount == 0 ? scaled : scaled.plusBias(bias);
        endings.add(
            new Ending(
                kind == Residual.NONE ? biased : biased.plusResidual(residual),
                random.nextInt(1000),
                switch (kind) {
                  case NONE -> 0;
                  case OTHER -> residual.segment().address();
                  case OUTPUT -> output.address();
                }));
      }
    }

    private HostData numbers(Random random, int size, long shift) {
      MemorySegment memory = group.memory(outputType.bytes(size), shift);
      fillNumbers(outputType, memory, random);
      return CommData.of(outputType, memory);
    }

    /// Moves the data to other alignments.
    void shift(int inputShift, int outputShift) {
      outputs.clear();
      for (int rank = 0; rank < ranks; rank++) {
        // one rank's input is enough for all to be misaligned
        int shift = rank == 1 ? inputShift : 0;
        MemorySegment moved = group.memory(type.bytes(count), shift).copyFrom(inputs.get(rank));
        inputs.set(rank, moved);
        outputs.add(group.memory(outputType.bytes(count) + 16, outputShift).fill(UNTOUCHED));
        group.data(rank, moved, outputs.get(rank), true);
      }
    }

    KernelName name() {
      return name(Way.ONE_STAGE);
    }

    private KernelName name(Way way) {
      return outputType == type ? way.kernel(op, type).orElseThrow() : way.castKernel(type);
    }

    private int divisor() {
      return op == ReduceOp.AVERAGE ? ranks : 1;
    }

    void allReduce(Way way, long call, int[] grid) {
      group.onRanks(
          ranks,
          rank -> {
            Parameters parameters = group.parameters(rank).call(call, count);
            way.set(parameters, count, divisor());
            launch(rank, name(way), grid);
          });
    }

    void launch(int rank, KernelName kernel, int[] grid) {
      start(rank, kernel, grid);
      group.await(rank);
    }

    void start(int rank, KernelName kernel, int[] grid) {
      if (!endings.isEmpty()) {
        endings.get(rank).give(group.parameters(rank), outputType);
      }
      group.start(rank, kernel, grid[0], grid[1]);
    }

    void assertResults() {
      for (int rank = 0; rank < ranks; rank++) {
        assertThat(group.control(rank).outcome()).isEqualTo(Control.Outcome.DONE);
        assertResult(rank, 0, count);
      }
    }

    /// A rank has so many elements of the result, from that one on, and nothing behind them.
    void assertResult(int rank, int from, int resultCount) {
      MemorySegment output = outputs.get(rank);
      long bytes = outputType.bytes(resultCount);
      assertThat(withoutPadding(output.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE)))
          .as("%s of %d %s to %s on rank %d", op.name(), count, type, outputType, rank)
          .isEqualTo(withoutPadding(expected(rank, from, resultCount)));
      assertThat(output.asSlice(bytes).toArray(ValueLayout.JAVA_BYTE)).containsOnly(UNTOUCHED);
    }

    private byte[] expected(int rank, int from, int resultCount) {
      byte[] result = LeftFold.of(op, type, inputs, from, resultCount);
      if (endings.isEmpty()) {
        return result;
      }
      HostData output =
          CommData.of(
              outputType, MemorySegment.ofArray(new byte[(int) outputType.bytes(resultCount)]));
      Ending ending = endings.get(rank);
      EpilogueKernel.apply(
          ending.it(), type, MemorySegment.ofArray(result), 0, output, ending.first());
      return output.segment().toArray(ValueLayout.JAVA_BYTE);
    }

    /// That of pairs, of which the contract says nothing.
    private byte[] withoutPadding(byte[] elements) {
      for (int pair = 0; pair < elements.length && type.kind() == Kind.PAIR; pair += 16) {
        Arrays.fill(elements, pair + type.valueType().bytes(), pair + 8, (byte) 0);
      }
      return elements;
    }

    private static byte[] narrow(DataType type, double[] numbers) {
      var wide = MemorySegment.ofArray(new double[numbers.length]);
      for (int i = 0; i < numbers.length; i++) {
        if (type == DataType.FLOAT64) {
          wide.setAtIndex(ValueLayout.JAVA_DOUBLE, i, numbers[i]);
        } else {
          wide.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) numbers[i]);
        }
      }
      var elements = MemorySegment.ofArray(new byte[numbers.length * type.bytes()]);
      Kernel.of(ReduceOp.SUM, type).finish(wide, 0, elements, 0, numbers.length, 1);
      return elements.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  /// What a rank does to its result.
  ///
  /// @param it as it should be, with a residual that stays
  /// @param first which element of the whole result is the output's first
  /// @param residual the address of what the kernel takes for it; 0 for none
  private record Ending(Epilogue it, long first, long residual) {
    void give(Parameters parameters, DataType type) {
      HostData bias = (HostData) it.bias();
      long address = bias == null ? 0 : bias.segment().address();
      long biasCount = bias == null ? 0 : bias.count();
      parameters.epilogue(type, it.scale(), address, biasCount, first, residual);
    }
  }
}
