package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.backend.cuda.CudaTable.Call;
import org.comm4j.backend.cuda.CudaTable.Form;
import org.comm4j.core.select.Tuning;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CudaTableTest {
  private static final long CHUNK = 16 << 20;
  private static final CommConfig CONFIG = CommConfig.builder().backend("cuda").build();

  /// Mojo's limits, and TVM's for two ranks, of whom more than a chunk is refused by Mojo's too.
  @ParameterizedTest
  @CsvSource({
    "75, 3, 0, ONE_STAGE, 108",
    "75, 3, 8192, LOW_LATENCY, 512",
    "75, 2, 8193, ONE_STAGE, 256",
    "90, 2, 16777216, ONE_STAGE, 256",
    "75, 2, 16777217, TWO_STAGE, 108",
    "80, 4, 524288, ONE_STAGE, 108",
    "80, 4, 524289, TWO_STAGE, 108",
    "80, 5, 262144, ONE_STAGE, 108",
    "80, 8, 262145, TWO_STAGE, 108",
    "90, 8, 524288, ONE_STAGE, 108",
    "90, 8, 524289, TWO_STAGE, 108",
    "90, 9, 262145, TWO_STAGE, 108",
    "100, 4, 4194304, ONE_STAGE, 256",
    "103, 8, 2097152, ONE_STAGE, 256",
    "100, 8, 2097153, TWO_STAGE, 256",
  })
  void choose_ours_isByArchitectureRanksAndBytes(
      int arch, int ranks, long bytes, Form form, int blocks) {
    CudaTable.Rule rule =
        CudaTable.of(Tuning.none()).choose(new Call(arch, ranks, bytes, true, CHUNK));
    assertThat(rule.form()).isEqualTo(form);
    assertThat(rule.maxBlocks()).isEqualTo(blocks);
  }

  @Test
  void choose_noLines_isAnother() {
    assertThat(CudaTable.of(Tuning.none()).choose(new Call(80, 4, 8, false, CHUNK)).form())
        .isEqualTo(Form.ONE_STAGE);
  }

  @Test
  void choose_linesOfTheUser_comeFirstIfTheyCan() {
    CudaTable table =
        CudaTable.of(
            Tuning.of(
                "allReduce ring",
                "cuda: allReduce arch>=90 size=4 bytes<=64KiB two-stage blocks=7",
                "cuda: allReduce low-latency"));
    assertThat(table.choose(new Call(90, 4, 65_536, true, CHUNK)))
        .satisfies(rule -> {
          assertThat(rule.form()).isEqualTo(Form.TWO_STAGE);
          assertThat(rule.maxBlocks()).isEqualTo(7);
        });
    assertThat(table.choose(new Call(89, 4, 16_384, true, CHUNK)).form())
        .isEqualTo(Form.LOW_LATENCY);
    assertThat(table.explain(new Call(0, 4, 65_536, true, CHUNK)))
        .isEqualTo(
            "from sm_75 on one-stage on at most 108 blocks (reading all is no slower);"
                + " not low-latency, which can't do it (tuning, line 3: allReduce low-latency);"
                + " from sm_90 on two-stage on at most 7 blocks"
                + " (tuning, line 2: allReduce arch>=90 size=4 bytes<=64KiB two-stage blocks=7)");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "broadcast one-stage -> broadcast has no choice on cuda (expected: allReduce)",
        "allReduce ring -> 'ring' is no algorithm of allReduce on cuda (expected: one of low-",
        "allReduce one-stage blocks=0 -> 'blocks=0' (expected: blocks=1 to blocks=512",
        "allReduce one-stage blocks=513 -> 'blocks=513' (expected: blocks=1 to",
        "allReduce one-stage 7 -> '7' (expected: blocks=1",
        "allReduce size<=3 -> allReduce size<=3 (expected: allReduce, conditions, algorithm",
        "allReduce arc>=90 one-stage -> 'arc>=90' is no condition (expected: size or bytes or arch",
      })
  void of_wrongLine_saysWhereAndWhat(String lineAndMessage) {
    String[] parts = lineAndMessage.split(" -> ", -1);
    assertThatThrownBy(() -> CudaTable.of(Tuning.of("# first", "cuda: " + parts[0])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("tuning, line 2: ")
        .hasMessageContaining(parts[1]);
  }

  // --- explain ---

  /// There need be no device.
  @Test
  void explain_allReduce_saysWhatIsChosenOnWhichDevices(@TempDir Path folder) throws Exception {
    assertThat(explain("allReduce", ReduceOp.SUM, 1 << 20, 4, CONFIG))
        .contains(
            "reach each other's memory by a kernel, from sm_75 on two-stage on at most 108 blocks",
            "; from sm_100 on one-stage on at most 256 blocks",
            "; elsewhere through the host's memory, in chunks of 16777216 bytes");
    Path file = Files.writeString(folder.resolve("tuning"), "cuda: allReduce two-stage blocks=3\n");
    CommConfig config = CONFIG.toBuilder().tuning(file).option("COMM_CUDA_PATH", "p2p").build();
    assertThat(explain("allReduce", ReduceOp.SUM, 64, 4, config))
        .contains(
            "by a kernel, two-stage on at most 3 blocks (" + file + ", line 1: allReduce two-stage",
            "elsewhere not at all (COMM_CUDA_PATH=p2p)");
  }

  /// It reaches its own memory.
  @Test
  void explain_groupOfOne_isByKernels() {
    assertThat(explain("allReduce", ReduceOp.SUM, 64, 1, CONFIG))
        .startsWith("by a kernel, ")
        .doesNotContain("elsewhere");
    assertThat(explain("broadcast", null, 64, 1, CONFIG)).startsWith("by a kernel in which");
    assertThat(explain("scan", ReduceOp.SUM, 64, 1, CONFIG)).startsWith("through the host's");
  }

  @Test
  void explain_throughTheHost_saysWhy() {
    assertThat(explain("scan", ReduceOp.SUM, 64, 4, CONFIG))
        .endsWith(": there are no kernels for scan");
    assertThat(explain("broadcast", null, 64, 17, CONFIG))
        .endsWith(": kernels are for at most 16 ranks");
    assertThat(
            explain(
                "reduce",
                ReduceOp.SUM,
                64,
                4,
                CONFIG.toBuilder().option("COMM_CUDA_PATH", "naive").build()))
        .endsWith(": COMM_CUDA_PATH=naive");
    assertThat(explain("allGather", null, 64, 4, CONFIG))
        .contains("by a kernel in which each rank reads");
  }

  @Test
  void explain_expressions_areThoseOfTheType() {
    CommConfig config =
        CONFIG.toBuilder()
            .option("COMM_CUDA_EXPRESSIONS", "float32: x + 1; float64: x + 2")
            .build();

    assertThat(explain("reduceScatter", ReduceOp.SUM, 64, 4, config))
        .endsWith(
            "; an epilogue may end in [float32: x + 1], by kernels that are compiled when a rank opens");
    assertThat(explain("allReduce", ReduceOp.MAX, 64, 4, config)).doesNotContain("epilogue");
    assertThat(explain("reduce", ReduceOp.SUM, 64, 4, config)).doesNotContain("epilogue");
  }

  private static String explain(
      String operation, @Nullable ReduceOp op, long bytes, int ranks, CommConfig config) {
    return Backends.explain(operation, DataType.FLOAT32, op, bytes, ranks, config).orElseThrow();
  }
}
