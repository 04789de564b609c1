package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import java.util.stream.Collectors;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ExpressionTest {
  private static final Expression CLIPPED =
      new Expression(DataType.FLOAT32, DataType.FLOAT32, "x > 0 ? x : 0");

  @Test
  void all_listed_inOrderAndOnce() {
    assertThat(
            Expression.all(
                "float32: x > 0 ? x : 0;bfloat16->float8_e4m3 : x * (i & 1) ; float32 :x > 0 ? x : 0"))
        .containsExactly(
            CLIPPED, new Expression(DataType.BFLOAT16, DataType.FLOAT8_E4M3, "x * (i & 1)"));
    assertThat(Expression.all(" ")).isEmpty();
  }

  @Test
  void toString_isAsDeclared() {
    String list = "float32: x > 0 ? x : 0; bfloat16 -> float8_e4m3: x * (i & 1)";

    assertThat(
            Expression.all(list).stream()
                .map(Expression::toString)
                .collect(Collectors.joining("; ")))
        .isEqualTo(list);
  }

  /// What would end the function, the line or the file, or hide what comes behind.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "float32",
        "x > 0",
        "float32: ",
        "float32: x; float32",
        "float32: x;",
        "float33: x",
        "FLOAT32: x",
        "int32: x",
        "float32 -> int64: x",
        "float32 -> float32 -> float32: x",
        "float32: (x",
        "float32: x)",
        "float32: x) + (x",
        "float32: x); } int f() { return (0",
        "float32: [] { return x; }()",
        "float32: x }",
        "float32: x // 1",
        "float32: x /* 1",
        "float32: x \\",
        "float32: x\n#include <x>",
        "float32: #x",
        "float32: \"x\"",
        "float32: x × 2",
      })
  void all_wrong_namesItAndWhatIsExpected(String list) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Expression.all(list))
        .withMessageStartingWith("COMM_CUDA_EXPRESSIONS: '")
        .withMessageContaining("expected: ");
  }

  @Test
  void of_call_isTheOneOfItsTypesAndText() {
    List<Expression> declared =
        List.of(new Expression(DataType.FLOAT64, DataType.FLOAT32, CLIPPED.text()), CLIPPED);

    assertThat(Expression.of(call(Epilogue.scale(2).then(" x > 0 ? x : 0 ")), declared))
        .hasValue(CLIPPED);
    assertThat(Expression.of(call(Epilogue.cast().then("x")), declared)).isEmpty();
    assertThat(Expression.of(call(Epilogue.scale(2)), declared)).isEmpty();
    assertThat(Expression.of(new Collective.Barrier(), declared)).isEmpty();
  }

  private static Collective call(Epilogue epilogue) {
    CommData data = CommData.of(new float[4]);
    return new Collective.AllReduce(data, data, ReduceOp.SUM, epilogue);
  }

  @Test
  void source_calculatesInTheWideType() {
    assertThat(CLIPPED.source())
        .contains("using To = Float32;", "static DEVICE float of(", "return (x > 0 ? x : 0);")
        .endsWith("EXPRESSION(Output, Float32, Function)\n");
    assertThat(new Expression(DataType.FLOAT8_E5M2, DataType.FLOAT64, "x").source())
        .contains("using To = Float64;", "static DEVICE double of([[maybe_unused]] double x, ")
        .endsWith("EXPRESSION(CastOutput, Float8E5M2, Function)\n");
  }
}
