package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.Availability;
import org.comm4j.tck.ThreadGroups;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Expressions that are declared are at the end of epilogues, whichever way a call goes, and others
/// are refused. On the model of the driver, whose kernels the host's compiler makes, or on a GPU
/// and with NVRTC (`gpu-check`).
class CudaExpressionTest extends ModelGroups {
  private static final DataType F32 = DataType.FLOAT32;
  private static final DataType F64 = DataType.FLOAT64;

  /// The same in CUDA's C++ and in Java.
  private static final String TEXT = "x > 0 ? x * 0.75f : i % 5 - x";

  private static final String DECLARED =
      "float32: %1$s; float64: %1$s; float32 -> float64: %1$s; float64 -> float32: %1$s"
          .formatted(TEXT);
  private static final int COUNT = 613;

  private static double function(double x, long i) {
    return x > 0 ? x * 0.75f : i % 5 - x;
  }

  private static float function(float x, long i) {
    return x > 0 ? x * 0.75f : i % 5 - x;
  }

  @Override
  @BeforeEach
  void reset() {
    if (!TestDevice.isReal()) {
      super.reset();
    }
  }

  @Override
  LocalGroup open(int size, CommConfig config, boolean isOneProcess) {
    if (!TestDevice.isReal()) {
      return super.open(size, config, isOneProcess);
    }
    assumeTrue(isOneProcess, "ranks of one process can't be several to a GPU's driver");
    CommConfig.Builder real = config.toBuilder();
    real.option("COMM_CUDA_NVRTC", RealNvrtc.need().toString());
    return ThreadGroups.open(new CudaProvider(), size, real.build());
  }

  private static CommConfig declared(String expressions) {
    return options(Map.of(Expression.VARIABLE, expressions));
  }

  /// All-reduces as `algorithm` says, and a reduce-scatter, with everything that an epilogue has.
  @ParameterizedTest
  @CsvSource({
    "low-latency, 2, true",
    "one-stage, 3, true",
    "two-stage, 3, true",
    "two-stage, 2, false",
    "naive, 2, true",
    "naive, 1, true",
  })
  void result_everyWay_isTheReductionAndThenTheFunction(
      String algorithm, int size, boolean isOneProcess) {
    onRanks(
        size,
        going(algorithm),
        isOneProcess,
        comm -> {
          assertThat(comm.capabilities().supports(Capability.EXPRESSIONS)).isTrue();
          for (int turn = 0;
              turn < 2;
              turn++) { // low latency begins with the group's fourth kernel
            for (DataType from : List.of(F32, F64)) {
              for (DataType to : List.of(F32, F64)) {
                check(comm, from, to, false);
                check(comm, from, to, true);
              }
            }
          }
        });
  }

  private CommConfig going(String algorithm) {
    CommConfig.Builder config = declared(DECLARED).toBuilder().option("COMM_CUDA_CHUNK", "65536");
    if (algorithm.equals("naive")) {
      return config.option("COMM_CUDA_PATH", "naive").build();
    }
    try {
      Path file = root.resolve("tuning");
      return config.tuning(Files.writeString(file, "cuda: allReduce " + algorithm + "\n")).build();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// The driver would load its kernels when the other one's have ended, and launch none before.
  @Test
  void open_whileAnotherGroupsKernelWaits_waitsForItsEndAndDoesNotHoldItUp() {
    CommConfig config = CONFIG.toBuilder().timeout(Duration.ofSeconds(5)).build();
    CommConfig hasty =
        declared("float32: x + 1").toBuilder().joinTimeout(Duration.ofMillis(100)).build();
    var tried = new CountDownLatch(1);
    onRanks(
        2,
        config,
        comm -> {
          try (CommBuffer data = comm.allocate(F32, 4)) {
            assertSum(comm, data);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              Request waiting = comm.start(call);
              assertThatThrownBy(() -> open(1, hasty, true).close())
                  .hasStackTraceContaining("BackendUnavailableException")
                  .hasStackTraceContaining("calls in flight keep");
              var opening = new FutureTask<>(() -> open(1, declared("float32: x + 1"), true));
              Thread.ofPlatform().daemon().start(opening);
              tried.countDown();
              waiting.await();
              opening.get(1, TimeUnit.MINUTES).close();
            } else {
              assertThat(tried.await(1, TimeUnit.MINUTES)).isTrue();
              comm.run(call);
            }
          } finally {
            tried.countDown();
          }
        });
  }

  private static void check(Communicator comm, DataType from, DataType to, boolean isScatter) {
    int inputs = isScatter ? COUNT * comm.size() : COUNT;
    try (CommBuffer input = comm.allocate(from, inputs);
        CommBuffer plain = comm.allocate(from, COUNT);
        CommBuffer bias = comm.allocate(to, 5);
        CommBuffer output = comm.allocate(to, COUNT)) {
      long seed = 31L * comm.rank() + 1;
      fill(input, seed);
      fill(bias, 7);
      fill(output, seed + 3);
      double[] biases = values(bias);
      double[] residuals = values(output);
      Epilogue epilogue = new Epilogue(0.3, bias.data(), output.data()).then(TEXT);

      comm.run(call(input.data(), plain.data(), null, isScatter));
      comm.run(call(input.data(), output.data(), epilogue, isScatter));

      double[] results = values(plain);
      double[] actual = values(output);
      long first = isScatter ? (long) comm.rank() * COUNT : 0;
      for (int i = 0; i < COUNT; i++) {
        double expected =
            from == F64 || to == F64
                ? function(
                    results[i] * 0.3 + biases[(int) ((first + i) % 5)] + residuals[i], first + i)
                : function(
                    (float) results[i] * 0.3f
                        + (float) biases[(int) ((first + i) % 5)]
                        + (float) residuals[i],
                    first + i);
        assertThat(actual[i])
            .as("%s to %s, scattered: %s, element %d", from, to, isScatter, i)
            .isEqualTo(to == F32 ? (float) expected : expected);
      }
    }
  }

  private static Collective call(
      CommData input, CommData output, @Nullable Epilogue epilogue, boolean isScatter) {
    return isScatter
        ? new Collective.ReduceScatter(input, output, ReduceOp.SUM, epilogue)
        : new Collective.AllReduce(input, output, ReduceOp.AVERAGE, epilogue);
  }

  private static void fill(CommBuffer buffer, long seed) {
    var random = new SplittableRandom(seed);
    var data = MemorySegment.ofArray(new byte[(int) buffer.data().bytes()]);
    for (int i = 0; i < buffer.data().count(); i++) {
      double value = random.nextDouble(-40, 40);
      if (buffer.data().type() == F32) {
        data.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, (float) value);
      } else {
        data.setAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, i, value);
      }
    }
    buffer.write(0, CommData.of(buffer.data().type(), data));
  }

  private static double[] values(CommBuffer buffer) {
    var data = MemorySegment.ofArray(new byte[(int) buffer.data().bytes()]);
    buffer.read(0, CommData.of(buffer.data().type(), data));
    double[] values = new double[(int) buffer.data().count()];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          buffer.data().type() == F32
              ? data.getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i)
              : data.getAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, i);
    }
    return values;
  }

  /// Rounded as if it had none, a BFLOAT16 would be a NaN with a sign, or zero.
  @Test
  void result_expressionGivesANanWithASign_isCanonical() {
    onRanks(
        2,
        declared("bfloat16: -x"),
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.BFLOAT16, 2)) {
            var values = new short[] {0x7fc0, 0x3f80}; // NaN and 1
            HostData host = CommData.of(DataType.BFLOAT16, MemorySegment.ofArray(values));
            data.write(0, host);
            comm.allReduce(data.data(), data.data(), ReduceOp.SUM, Epilogue.cast().then("-x"));
            data.read(0, host);
            assertThat(values).containsExactly((short) 0x7fc0, (short) 0xc000); // and −2
          }
        });
  }

  // --- what is refused ---

  @Test
  void expression_notDeclared_isRefusedAndChangesNothing() {
    onRanks(
        2,
        declared("float32: x + 1"),
        comm -> {
          try (CommBuffer data = comm.allocate(F32, 8);
              CommBuffer wide = comm.allocate(F64, 8)) {
            assertRefused(comm, data.data(), data.data(), "x + 2", "not declared");
            assertRefused(comm, data.data(), wide.data(), "x + 1", "FLOAT32 × 8 on device");
            assertSum(comm, data);
          }
        });
  }

  private static void assertRefused(
      Communicator comm, CommData input, CommData output, String text, String says) {
    var call = new Collective.AllReduce(input, output, ReduceOp.SUM, Epilogue.cast().then(text));
    assertThatThrownBy(() -> comm.run(call))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContainingAll(
            says, "'" + text + "'", "[float32: x + 1]", "add it to COMM_CUDA_EXPRESSIONS");
    assertThatThrownBy(() -> comm.start(call)).isInstanceOf(UnsupportedException.class);
  }

  @Test
  void expression_ofTheHostsMemory_isRefused() {
    onRanks(
        2,
        declared("float32: x + 1"),
        comm -> {
          CommData data = CommData.of(new float[8]);
          assertThatThrownBy(
                  () -> comm.allReduce(data, data, ReduceOp.SUM, Epilogue.cast().then("x + 1")))
              .isInstanceOf(UnsupportedException.class)
              .hasMessageContainingAll("'x + 1'", "host's memory", "apply that to the output");
          comm.allReduce(data, ReduceOp.SUM);
        });
  }

  @Test
  void expression_noneDeclared_isNoCapability() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          assertThat(comm.capabilities().supports(Capability.EXPRESSIONS)).isFalse();
          try (CommBuffer data = comm.allocate(F32, 8)) {
            assertThatThrownBy(() ->
                    comm.allReduce(
                        data.data(), data.data(), ReduceOp.SUM, Epilogue.cast().then("x")))
                .isInstanceOf(UnsupportedException.class)
                .hasMessageContainingAll("'x'", "COMM_CUDA_EXPRESSIONS");
            assertSum(comm, data);
          }
        });
  }

  // --- opening ---

  /// The first group's kernels are there, and nothing of it runs.
  @Test
  void open_secondGroupWithMore_loadsThem() {
    onRanks(
        1,
        declared("float32: x + 1"),
        _ ->
            onRanks(
                1,
                declared("float32: x + 1; float32: x + 2"),
                comm -> {
                  try (CommBuffer data = comm.allocate(F32, 1)) {
                    data.write(0, CommData.of(40f));
                    comm.allReduce(
                        data.data(), data.data(), ReduceOp.SUM, Epilogue.cast().then("x + 2"));
                    assertThat(values(data)).containsExactly(42);
                  }
                }));
  }

  @Test
  void open_compilerRefuses_saysSoAndLeavesNothing() throws IOException {
    assumeTrue(!TestDevice.isReal(), "the model of the compiler is not for a GPU");
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
    var provider = new CudaProvider(host.files(), () -> CudaRank.PROCESS, 16, new Refusing());

    assertThatThrownBy(() -> ThreadGroups.open(provider, 2, declared("float32: y")).close())
        .hasStackTraceContaining("COMM_CUDA_EXPRESSIONS: 'float32: y' says the compiler");
  }

  private static final class Refusing implements ExpressionCompiler {
    @Override
    public Optional<Availability> missing(CudaOptions options) {
      return Optional.empty();
    }

    @Override
    public Optional<Path> file(CudaOptions options) {
      return Optional.empty();
    }

    @Override
    public byte[] compile(Expression expression, CudaOptions options) {
      throw new IllegalArgumentException(
          "%s: '%s' says the compiler".formatted(Expression.VARIABLE, expression));
    }
  }
}
