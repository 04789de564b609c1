package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.Collective.AllReduce;
import org.comm4j.api.Collective.ReduceScatter;
import org.comm4j.api.Collective.ReduceScatterV;
import org.comm4j.api.DataType.Kind;
import org.junit.jupiter.api.Test;

class EpilogueTest {
  private static final Epilogue HALF = Epilogue.scale(0.5);

  private final HostData four = data(DataType.FLOAT32, 4);
  private final HostData eight = data(DataType.FLOAT32, 8);

  @Test
  void plus_keepsTheRest() {
    Epilogue all = HALF.plusBias(eight).plusResidual(four);

    assertThat(all).isEqualTo(new Epilogue(0.5, eight, four));
    assertThat(all).hasToString("× 0.5 + bias (FLOAT32 × 8) + residual (FLOAT32 × 4)");
    assertThat(Epilogue.cast()).isEqualTo(new Epilogue(1, null, null));
  }

  @Test
  void then_isTheEnd_whateverIsAddedAfterwards() {
    Epilogue all = HALF.then(" x > 0 ? x : 0 ").plusBias(eight).plusResidual(four);

    assertThat(all).isEqualTo(new Epilogue(0.5, eight, four, "x > 0 ? x : 0"));
    assertThat(all)
        .hasToString("× 0.5 + bias (FLOAT32 × 8) + residual (FLOAT32 × 4), then x > 0 ? x : 0");
    assertThat(HALF.expression()).isNull();
  }

  @Test
  void expression_empty_isRefused() {
    assertRefused(() -> HALF.then(" "), "expression: ''", "x > 0 ? x : 0");
  }

  @Test
  void bias_empty_isRefused() {
    assertRefused(() -> HALF.plusBias(data(DataType.FLOAT32, 0)), "FLOAT32 × 0", "at least 1");
  }

  @Test
  void call_withoutOne_hasNone() {
    assertThat(new AllReduce(four, four, ReduceOp.SUM).epilogue()).isNull();
    assertThat(new Collective.Reduce(four, four, ReduceOp.MAX, 0))
        .isNotInstanceOf(Collective.WithEpilogue.class);
    assertThat(new ReduceScatter(eight, four, ReduceOp.SUM, HALF).epilogue()).isSameAs(HALF);
  }

  @Test
  void operatorAndType_onlySumsAndAveragesOfFloats() {
    for (DataType type : DataType.values()) {
      HostData data = data(type, 4);
      for (ReduceOp.Predefined op : ReduceOp.Predefined.values()) {
        if (!op.supports(type)) {
          continue;
        }
        boolean isLegal =
            type.kind() == Kind.FLOAT && (op == ReduceOp.SUM || op == ReduceOp.AVERAGE);
        ThrowingCallable call = () -> new AllReduce(data, data, op, HALF);
        if (isLegal) {
          assertThatCode(call).doesNotThrowAnyException();
        } else {
          assertRefused(call, op.name(), type + " × 4", "SUM or AVERAGE");
        }
      }
    }
    ReduceOp own = ReduceOp.of("own", (_, _, _, _) -> {});
    assertRefused(() -> new AllReduce(four, four, own, HALF), "own", "SUM or AVERAGE");
  }

  @Test
  void output_ofAnotherType_isAFloat() {
    for (DataType type : DataType.values()) {
      HostData output = data(type, 4);
      ThrowingCallable call = () -> new AllReduce(four, output, ReduceOp.SUM, Epilogue.cast());
      if (type.kind() == Kind.FLOAT) {
        assertThatCode(call).doesNotThrowAnyException();
      } else {
        assertRefused(call, "output: " + type + " × 4", "FLOAT32");
      }
    }
    assertRefused(
        () -> new AllReduce(four, data(DataType.FLOAT64, 4), ReduceOp.SUM), "FLOAT64 × 4");
    assertRefused(
        () -> new AllReduce(four, data(DataType.FLOAT64, 3), ReduceOp.SUM, HALF), "4 elements");
  }

  @Test
  void biasAndResidual_areOfTheOutputsTypeAndCount() {
    HostData wide = data(DataType.FLOAT64, 4);

    assertThatCode(() ->
            new AllReduce(
                four, wide, ReduceOp.SUM, HALF.plusBias(wideOf(9)).plusResidual(wideOf(4))))
        .doesNotThrowAnyException();
    assertRefused(
        () -> new AllReduce(four, wide, ReduceOp.SUM, HALF.plusBias(eight)),
        "bias: FLOAT32 × 8",
        "FLOAT64");
    assertRefused(
        () -> new AllReduce(four, wide, ReduceOp.SUM, HALF.plusResidual(four)),
        "residual: FLOAT32 × 4",
        "FLOAT64");
    assertRefused(
        () -> new ReduceScatter(eight, four, ReduceOp.SUM, HALF.plusResidual(eight)),
        "residual: FLOAT32 × 8",
        "4 elements");
  }

  @Test
  void memory_ofTheOutput_isTheResidualsOrNobodys() {
    HostData output = eight.slice(2, 4);

    assertThatCode(
            () -> new AllReduce(four, output, ReduceOp.SUM, HALF.plusResidual(eight.slice(2, 4))))
        .doesNotThrowAnyException();
    assertThatCode(() -> new AllReduce(four, output, ReduceOp.SUM, HALF.plusResidual(four)))
        .doesNotThrowAnyException();
    assertThatCode(
            () -> new AllReduce(output, output, ReduceOp.SUM, HALF.plusBias(eight.slice(6, 2))))
        .doesNotThrowAnyException();
    assertRefused(
        () -> new AllReduce(four, output, ReduceOp.SUM, HALF.plusResidual(eight.slice(1, 4))),
        "overlap",
        "exactly the output");
    assertRefused(
        () -> new AllReduce(four, output, ReduceOp.SUM, HALF.plusBias(output)), "overlap");
    assertRefused(
        () ->
            new ReduceScatterV(
                data(DataType.FLOAT32, 4),
                Partition.of(4),
                output,
                ReduceOp.SUM,
                HALF.plusBias(eight.slice(5, 2))),
        "overlap");
  }

  @Test
  void memory_ofADeviceInPlace_isOfATypeOfTheSameSize() {
    var halves = new DeviceData(DataType.FLOAT16, 0x1000, 8, 0);
    var brains = new DeviceData(DataType.BFLOAT16, 0x1000, 8, 0);
    var elsewhere = new DeviceData(DataType.BFLOAT16, 0x1000, 8, 1);
    var bytes = new DeviceData(DataType.FLOAT8_E5M2, 0x1000, 8, 0);

    for (DeviceData output : List.of(brains, elsewhere)) {
      assertThatCode(() -> new AllReduce(halves, output, ReduceOp.SUM, HALF))
          .doesNotThrowAnyException();
    }
    var shifted = new DeviceData(DataType.BFLOAT16, 0x1002, 8, 0);
    for (DeviceData output : List.of(bytes, shifted)) {
      assertRefused(() -> new AllReduce(halves, output, ReduceOp.SUM, HALF), "overlap", "exactly");
    }
  }

  @Test
  void backend_withoutThem_refuses() {
    OperationChecks none = checks(Capability.HOST_MEMORY);

    assertThatExceptionOfType(UnsupportedException.class)
        .isThrownBy(() -> none.blocking(new AllReduce(four, four, ReduceOp.SUM, HALF)))
        .withMessageContaining("allReduce with an epilogue (× 0.5)")
        .withMessageContaining("'stranger'");
    assertThatCode(() -> none.blocking(new AllReduce(four, four, ReduceOp.SUM)))
        .doesNotThrowAnyException();
  }

  @Test
  void backend_withoutExpressions_refusesThoseAlone() {
    OperationChecks none = checks(Capability.HOST_MEMORY, Capability.EPILOGUE);
    Operation call = new AllReduce(four, four, ReduceOp.SUM, HALF.then("x * x"));

    assertThatExceptionOfType(UnsupportedException.class)
        .isThrownBy(() -> none.blocking(call))
        .withMessageContaining("allReduce with the expression 'x * x'")
        .withMessageContaining("'stranger'")
        .withMessageContaining("do that to the output");
    none.blocking(new AllReduce(four, four, ReduceOp.SUM, HALF));
    checks(Capability.HOST_MEMORY, Capability.EPILOGUE, Capability.EXPRESSIONS).blocking(call);
  }

  @Test
  void memory_thatTheThreadCannotUse_isRefused() {
    OperationChecks checks = checks(Capability.HOST_MEMORY, Capability.EPILOGUE);
    Arena closed = Arena.ofShared();
    HostData gone = CommData.of(DataType.FLOAT32, closed.allocate(16, 4));
    closed.close();
    try (Arena arena = Arena.ofConfined()) {
      HostData confined = CommData.of(DataType.FLOAT32, arena.allocate(16, 4));
      for (Operation call : calls(HALF.plusBias(confined))) {
        checks.blocking(call);
        assertRefused(() -> checks.asynchronous(call), "bias: FLOAT32 × 4", "confined");
      }
      for (Operation call : calls(HALF.plusResidual(confined))) {
        checks.blocking(call);
        assertRefused(() -> checks.asynchronous(call), "residual: FLOAT32 × 4", "confined");
      }
    }
    for (Operation call : calls(HALF.plusBias(gone))) {
      assertRefused(() -> checks.blocking(call), "bias: FLOAT32 × 4", "closed");
    }
    DeviceData device = new DeviceData(DataType.FLOAT32, 4096, 4, 0);
    for (Operation call : calls(HALF.plusResidual(device))) {
      assertThatExceptionOfType(UnsupportedException.class)
          .isThrownBy(() -> checks.blocking(call))
          .withMessageContaining("residual: FLOAT32 × 4 on device 0");
    }
  }

  private List<Operation> calls(Epilogue epilogue) {
    return List.of(
        new AllReduce(four, four, ReduceOp.SUM, epilogue),
        new ReduceScatter(four, four, ReduceOp.AVERAGE, epilogue),
        new ReduceScatterV(four, Partition.of(4), four, ReduceOp.SUM, epilogue));
  }

  private static OperationChecks checks(Capability... capabilities) {
    return new OperationChecks(
        0, 1, "stranger", new Capabilities(EnumSet.copyOf(List.of(capabilities)), Map.of()));
  }

  private static HostData wideOf(int count) {
    return data(DataType.FLOAT64, count);
  }

  private static HostData data(DataType type, int count) {
    return CommData.of(type, MemorySegment.ofArray(new byte[count * type.bytes()]));
  }

  private static void assertRefused(ThrowingCallable call, String... parts) {
    assertThatIllegalArgumentException()
        .isThrownBy(call)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts).contains("expected: "));
  }
}
