package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.comm4j.api.ReduceOp.Predefined;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class ReduceOpTest {
  @ParameterizedTest
  @CsvSource({
    "SUM, FLOAT SIGNED UNSIGNED COMPLEX",
    "PRODUCT, FLOAT SIGNED UNSIGNED COMPLEX",
    "AVERAGE, FLOAT SIGNED UNSIGNED COMPLEX",
    "MIN, FLOAT SIGNED UNSIGNED",
    "MAX, FLOAT SIGNED UNSIGNED",
    "BIT_AND, SIGNED UNSIGNED BOOL",
    "BIT_OR, SIGNED UNSIGNED BOOL",
    "BIT_XOR, SIGNED UNSIGNED BOOL",
    "LOGICAL_AND, SIGNED UNSIGNED BOOL",
    "LOGICAL_OR, SIGNED UNSIGNED BOOL",
    "LOGICAL_XOR, SIGNED UNSIGNED BOOL",
    "MIN_LOC, PAIR",
    "MAX_LOC, PAIR"
  })
  void supports_everyType_asTheTableSays(Predefined op, String kinds) {
    for (DataType type : DataType.values()) {
      boolean legal = (" " + kinds + " ").contains(" " + type.kind() + " ");
      assertThat(op.supports(type)).as(op + " of " + type).isEqualTo(legal);
    }
  }

  @ParameterizedTest
  @EnumSource
  void operation_illegalForTheType_isRefusedNamingLegalOnes(Predefined op) {
    for (DataType type : DataType.values()) {
      CommData data = CommData.of(type, MemorySegment.ofArray(new byte[type.bytes()]));
      if (op.supports(type)) {
        assertThat(new Collective.AllReduce(data, data, op).op()).isSameAs(op);
        continue;
      }
      String legal =
          Arrays.stream(Predefined.values())
              .filter(other -> other.supports(type))
              .map(Predefined::name)
              .collect(Collectors.joining(", "));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new Collective.AllReduce(data, data, op))
          .withMessageContaining("op: " + op + " is not defined for " + type)
          .withMessageContaining("expected: " + legal);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "SUM, FLOAT16, FLOAT32",
    "SUM, BFLOAT16, FLOAT32",
    "PRODUCT, FLOAT8_E4M3, FLOAT32",
    "AVERAGE, FLOAT8_E5M2, FLOAT32",
    "AVERAGE, INT8, INT64",
    "AVERAGE, INT32, INT64",
    "AVERAGE, INT64, INT64",
    "AVERAGE, UINT16, UINT64",
    "SUM, INT8, INT8",
    "SUM, FLOAT32, FLOAT32",
    "SUM, COMPLEX64, COMPLEX64",
    "MIN, FLOAT16, FLOAT16",
    "BIT_OR, BOOL, BOOL",
    "MAX_LOC, FLOAT16_PAIR, FLOAT16_PAIR"
  })
  void accumulationType_isWideWhereRoundingWouldHurt(
      Predefined op, DataType type, DataType expected) {
    assertThat(op.accumulationType(type)).isSameAs(expected);
  }

  @Test
  void userDefined_onDeviceData_isRefused() {
    ReduceOp mine = ReduceOp.of("mine", (source, accumulator, type, count) -> {});
    CommData device = CommData.ofUnsafeDeviceAddress(DataType.INT32, 4096, 8, 1);

    assertThat(new Collective.AllReduce(CommData.of(1), CommData.of(1), mine).op()).isEqualTo(mine);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Collective.AllReduce(device, device, mine))
        .withMessageContaining("'mine'")
        .withMessageContaining("INT32 × 8 on device 1")
        .withMessageContaining("expected: data in host memory");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "\t"})
  void userDefined_withoutName_isRefused(String name) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> ReduceOp.of(name, (source, accumulator, type, count) -> {}))
        .withMessageContaining("'" + name + "'")
        .withMessageContaining("expected: a name");
  }

  @Test
  @SuppressWarnings("NullAway")
  void userDefined_withoutNameOrFunction_isRefused() {
    assertThatNullPointerException()
        .isThrownBy(() -> ReduceOp.of("mine", null))
        .withMessage("function");
    assertThatNullPointerException()
        .isThrownBy(() -> ReduceOp.of(null, (source, accumulator, type, count) -> {}))
        .withMessage("name");
  }
}
