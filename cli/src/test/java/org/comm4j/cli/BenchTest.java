package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

@Timeout(120)
class BenchTest {
  private static final CommConfig LOCAL = CommConfig.builder().backend("local").build();
  private static final ReduceOp.Predefined SUM = ReduceOp.Predefined.SUM;

  @ParameterizedTest
  @EnumSource(BenchOperation.class)
  void case_ofEveryOperation_isRight(BenchOperation operation) {
    for (BenchMemory memory : BenchMemory.values()) {
      LocalGroup.run(
          3,
          LOCAL,
          communicator -> {
            for (long count : new long[] {1, 2, 3000}) {
              try (var made =
                  new BenchCase(communicator, operation, memory, DataType.INT32, SUM, count)) {
                assertThat(made.check()).isZero();
                communicator.barrier();
              }
            }
          });
    }
  }

  static Stream<Arguments> reductions() {
    return Stream.of(DataType.values())
        .flatMap(type ->
            Stream.of(ReduceOp.Predefined.values())
                .filter(op -> op.supports(type))
                .map(op -> Arguments.of(type, op)));
  }

  @ParameterizedTest
  @MethodSource("reductions")
  void case_ofEveryTypeAndOperator_isRight(DataType type, ReduceOp.Predefined op) {
    LocalGroup.run(
        2,
        LOCAL,
        communicator -> {
          try (var made =
              new BenchCase(
                  communicator, BenchOperation.ALL_REDUCE, BenchMemory.HEAP, type, op, 1100)) {
            assertThat(made.check()).isZero();
            communicator.barrier();
          }
        });
  }

  @Test
  void data_oneElementOrPlaceWrong_isCounted() {
    var data = new BenchData(DataType.FLOAT32, SUM);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment buffer = arena.allocate(4L * 5000);
      data.fill(buffer, data.contribution(1));
      assertThat(data.wrong(buffer, data.contribution(1), 0)).isZero();
      assertThat(data.wrong(buffer.asSlice(4L * 1500), data.contribution(1), 1500)).isZero();
      assertThat(data.wrong(buffer, data.contribution(1), 17)).isGreaterThan(4000);
      assertThat(data.wrong(buffer, data.contribution(2), 0)).isGreaterThan(4000);
      buffer.set(ValueLayout.JAVA_BYTE, 4L * 4321 + 3, (byte) 0x7f);
      assertThat(data.wrong(buffer, data.contribution(1), 0)).isOne();
      BenchData.clear(buffer);
      assertThat(data.wrong(buffer, data.contribution(1), 0)).isEqualTo(5000);
    }
  }

  @Test
  void memory_allocatedOnADevice_isRefusedAndGivenBack() {
    var isOpen = new AtomicBoolean();
    var buffer =
        new CommBuffer() {
          @Override
          public CommData data() {
            return CommData.ofUnsafeDeviceAddress(DataType.FLOAT32, 4096, 1, 0);
          }

          @Override
          public void close() {
            isOpen.set(false);
          }
        };
    var communicator =
        (Communicator)
            Proxy.newProxyInstance(
                Communicator.class.getClassLoader(),
                new Class<?>[] {Communicator.class},
                (_, method, _) -> {
                  if (method.getName().equals("allocate")) {
                    isOpen.set(true);
                    return buffer;
                  }
                  return "cuda"; // the backend's name
                });
    assertThatThrownBy(() -> BenchMemory.ALLOCATED.make(communicator, DataType.FLOAT32, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("--memory: allocated", "cuda", "native or heap", "gpu-check");
    assertThat(isOpen).isFalse();
  }

  @Test
  void harness_sameOnAllRanks_withAndWithoutSharedLines() {
    var plan = plan(List.of(BenchOperation.BARRIER));
    List<BenchHarness.Time> times =
        LocalGroup.call(
            3,
            LOCAL,
            communicator -> {
              Optional<SharedLines> lines = SharedLines.of(communicator);
              assertThat(lines.isPresent())
                  .isEqualTo(Files.isWritable(LaunchFolder.sharedMemory()));
              var time =
                  new BenchHarness(communicator, lines, plan).measure(communicator::barrier, false);
              var rooted =
                  new BenchHarness(communicator, Optional.empty(), plan)
                      .measure(communicator::barrier, true);
              assertThat(rooted.crossNs()).isZero();
              communicator.barrier();
              lines.ifPresent(SharedLines::close);
              return time;
            });
    assertThat(times).doesNotContainNull();
    assertThat(times.stream().distinct()).hasSize(1);
    assertThat(times.getFirst().medianUs()).isPositive();
    assertThat(times.getFirst().minUs()).isLessThanOrEqualTo(times.getFirst().medianUs());
  }

  /// Rank 1 has nothing to do, and waits for rank 0, which takes 100 s.
  @ParameterizedTest
  @CsvSource({"0, false", "19, false", "40, true"})
  void lines_rankTakesLonger_isWaitedForAsExpected(long expectedSeconds, boolean isWaitedFor) {
    var seconds = new AtomicLong();
    var hasBegun = new CountDownLatch(1);
    var isLate = new CountDownLatch(1);
    LocalGroup.run(
        2,
        LOCAL,
        communicator -> {
          LongSupplier clock =
              () -> {
                long now = seconds.get();
                (now == 0 ? hasBegun : isLate).countDown();
                return TimeUnit.SECONDS.toNanos(now);
              };
          Optional<SharedLines> shared = SharedLines.of(communicator, clock);
          assumeTrue(shared.isPresent(), "no memory that processes share");
          SharedLines lines = shared.get();
          if (communicator.rank() == 0) {
            await(hasBegun);
            seconds.set(100);
            await(isLate);
            lines.barrier();
          } else if (isWaitedFor) {
            lines.barrier(TimeUnit.SECONDS.toNanos(expectedSeconds));
          } else {
            assertThatThrownBy(() -> lines.barrier(TimeUnit.SECONDS.toNanos(expectedSeconds)))
                .hasMessageStartingWith("rank 1 waited 60 s for its peers");
          }
          communicator.barrier();
          lines.close();
        });
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void report_csv_hasTheColumnsOfOtherBenchmarks() {
    var text = new StringWriter();
    var report =
        new BenchReport(Listing.Format.CSV, new PrintWriter(text), "shm+heap", 4, new BenchTimes());
    report.begin();
    report.add(
        new BenchReport.Point(
            BenchOperation.ALL_REDUCE,
            "f32",
            "sum",
            4096,
            1024,
            new BenchHarness.Time(2, 1.5, 49.6),
            0));
    report.end();
    assertThat(text.toString())
        .isEqualToNormalizingNewlines(
            """
            system,transport,np,op,dtype,bytes,usec_median,usec_min,busbw_GBps,xcore_ns
            comm4j,shm+heap,4,allreduce,f32,4096,2.000,1.500,3.0720,50
            """);
  }

  @Test
  void bench_besideASetting_showsHowManyTimesAsLong() throws IOException, InterruptedException {
    var done =
        Launches.run(
            ("bench barrier -n 2 --backend shm --warm-up 1 --repetitions 1 --time 1"
                    + " --beside COMM_BACKEND=local")
                .split(" ", -1));
    assertThat(done.code()).isEqualTo(ExitCode.FINE);
    assertThat(done.out())
        .containsSubsequence(
            "# 2 ranks, shm", "barrier", "COMM_BACKEND=local", "# 2 ranks, local", "barrier")
        .containsOnlyOnce("as long");
  }

  @Test
  void times_kept_areComparedInTheSameState(@TempDir Path folder) throws IOException {
    var times = new BenchTimes();
    times.add(BenchOperation.BARRIER, 0, new BenchHarness.Time(2, 1.5, 60));
    times.add(BenchOperation.GATHER, 8, new BenchHarness.Time(0.25, 0.2, 0));
    Path file = folder.resolve("times");
    times.write(file);
    BenchTimes read = BenchTimes.read(file);
    assertThat(read.ratio(BenchOperation.BARRIER, 0, new BenchHarness.Time(3, 3, 65)))
        .contains(1.5);
    assertThat(read.ratio(BenchOperation.BARRIER, 0, new BenchHarness.Time(3, 3, 230))).isEmpty();
    assertThat(read.ratio(BenchOperation.GATHER, 8, new BenchHarness.Time(0.5, 0.4, 0)))
        .contains(2.0);
    assertThat(read.ratio(BenchOperation.GATHER, 16, new BenchHarness.Time(1, 1, 0))).isEmpty();
    assertThat(BenchTimes.read(Files.createFile(folder.resolve("nothing"))).isEmpty()).isTrue();
  }

  @Test
  void plan_asArguments_isTheSame() {
    var plan = plan(List.of(BenchOperation.values()));
    assertThat(BenchPlan.of(plan.arguments().toArray(String[]::new))).isEqualTo(plan);
  }

  @ParameterizedTest
  @CsvSource({
    "allreduces -n 2, OPERATION, reduce_scatter",
    "all, -n, not given",
    "all -n 2 --sizes 8Q, '8Q', 8B..64MiB",
    "all -n 2 --sizes 64MiB..8B, '64MiB..8B', 8B..64MiB*4",
    "all -n 2 --memory device, device, native",
    "all -n two, two, is not an int",
    "all -n 2 --beside COMM_CHECK=full --format csv, --format csv, a table",
    "all -n 2 --beside COMM_RANK=1, --beside: COMM_RANK, a setting of the ranks",
    "all -n 2 --beside COMM_CHECK=all, --beside: COMM_CHECK, full"
  })
  void bench_wrongUse_namesValueAndExpectation(String line, String value, String expected) {
    var done = Commands.run(new Bench(), line.split(" ", -1));
    assertThat(done.code()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains(value.replace("'", "")).contains(expected);
  }

  @ParameterizedTest
  @CsvSource({
    "all -n 2 --backend local --sizes 6, --sizes: 6, multiples of 4",
    "allreduce -n 2 --backend local --dtype bool, --op: sum, not defined for bool",
    "all -n 2 --backend local --repetitions 0, --repetitions: 0, 1..1000",
    "all -n 0 --backend local, -n: 0, 1 or more"
  })
  void plan_wrong_namesValueAndExpectation(String line, String value, String expected) {
    var thrown = new ArrayList<Throwable>();
    new CommandLine(new Bench())
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setExecutionExceptionHandler((e, _, _) -> {
          thrown.add(e);
          return ExitCode.USAGE;
        })
        .execute(line.split(" ", -1));
    assertThat(thrown)
        .singleElement()
        .satisfies(e ->
            assertThat(e)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(value)
                .hasMessageContaining(expected));
  }

  @Test
  void plan_typeIsLargerThanTheLeastSize_beginsWithWhatFits() {
    var bench = new Bench();
    var line = new CommandLine(bench).setCaseInsensitiveEnumValuesAllowed(true);
    line.parseArgs("allreduce", "-n", "2", "--dtype", "c128");
    assertThat(bench.plan(Path.of("r"), Path.of("t")).sizes()).startsWith(32L, 128L);
  }

  @Test
  void help_namesTheOperations() {
    String help = Commands.run(new Bench(), "--help").out().replaceAll("\\s+", " ");
    assertThat(help).contains("or all of: allreduce, reduce, broadcast,", "pingpong, stream.");
  }

  @Test
  void bench_arrayTooLong_isLeftOut() throws Exception {
    Commands.Done done =
        Launches.run(
            ("bench allreduce -n 1 --memory heap --sizes 8B,8GiB --warm-up 1 --repetitions 1"
                    + " --time 1")
                .split(" ", -1));
    assertThat(done.code()).as(done.out() + done.err()).isZero();
    assertThat(done.out() + done.err())
        .contains(
            "is left out from 8589934592 bytes on: not enough memory, --memory heap: 8589934592 bytes (expected: an array of less than 2^31 elements); use native");
  }

  @Test
  void bench_nothingCanBeMeasured_fails() throws Exception {
    Commands.Done done = Launches.run("bench", "pingpong", "-n", "1", "--format", "csv");
    assertThat(done.code()).as(done.out() + done.err()).isEqualTo(ExitCode.CHECK_FAILED);
    assertThat(done.err())
        .contains("pingpong is left out: it needs 2 ranks", "comm-cli: nothing was measured");
  }

  @Test
  void bench_severalSizes_areAllMeasuredInTheirOrder() {
    var bench = new Bench();
    new CommandLine(bench)
        .setCaseInsensitiveEnumValuesAllowed(true)
        .parseArgs("all -n 2 --sizes 1KiB --sizes 8B,16B --sizes 4B..16B".split(" ", -1));
    assertThat(bench.plan(Path.of("result"), Path.of("times")).sizes())
        .containsExactly(1024L, 8L, 16L, 4L, 16L);
  }

  private static BenchPlan plan(List<BenchOperation> operations) {
    long ms = TimeUnit.MILLISECONDS.toNanos(1);
    return new BenchPlan(
        operations,
        List.of(8L, 1024L),
        DataType.FLOAT32,
        SUM,
        BenchMemory.NATIVE,
        Listing.Format.CSV,
        3,
        ms,
        0,
        ms,
        Path.of("result"),
        Path.of("times"));
  }
}
