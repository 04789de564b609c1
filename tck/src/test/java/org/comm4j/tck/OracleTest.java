package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// The oracle against numbers that were worked out by hand.
class OracleTest {
  @ParameterizedTest
  @CsvSource({
    "FLOAT16, 1.0, 3c00",
    "FLOAT16, 65504, 7bff",
    "FLOAT16, 65519, 7bff",
    "FLOAT16, 65520, 7c00",
    "FLOAT16, 5.9604644775390625e-8, 1",
    "FLOAT16, 2.98023223876953125e-8, 0",
    "FLOAT16, -0.0, 8000",
    "FLOAT16, NaN, 7e00",
    "BFLOAT16, 1.0, 3f80",
    "BFLOAT16, 1.00390625, 3f80",
    "BFLOAT16, 1.01171875, 3f82",
    "FLOAT8_E4M3, 448, 7e",
    "FLOAT8_E4M3, 1e9, 7e",
    "FLOAT8_E4M3, Infinity, 7e",
    "FLOAT8_E4M3, -Infinity, fe",
    "FLOAT8_E4M3, 0.001953125, 1",
    "FLOAT8_E4M3, NaN, 7f",
    "FLOAT8_E5M2, 57344, 7b",
    "FLOAT8_E5M2, 61439, 7b",
    "FLOAT8_E5M2, 61440, 7c",
    "FLOAT8_E5M2, NaN, 7e",
    "FLOAT32, NaN, 7fc00000",
  })
  void encode_value_isTheNearest(DataType type, double value, String bits) {
    assertThat(Oracle.encode(type, value)).isEqualTo(Long.parseLong(bits, 16));
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void encode_everyDecodedValue_isItself(DataType type) {
    for (long bits = 0; bits < 1L << (8 * type.bytes()); bits++) {
      double value = Oracle.decode(type, bits);
      if (!Double.isNaN(value)) {
        assertThat(Oracle.encode(type, value)).isEqualTo(bits);
      }
    }
  }

  private static List<byte[]> of(byte... values) {
    return java.util.stream.IntStream.range(0, values.length)
        .mapToObj(i -> new byte[] {values[i]})
        .toList();
  }

  @Test
  void fold_integers_areAsTheTableSays() {
    assertThat(Oracle.fold(ReduceOp.SUM, DataType.INT8, of((byte) 100, (byte) 100)))
        .containsExactly(-56);
    assertThat(Oracle.fold(ReduceOp.AVERAGE, DataType.INT8, of((byte) 127, (byte) 127, (byte) 127)))
        .containsExactly(127);
    assertThat(Oracle.fold(ReduceOp.AVERAGE, DataType.INT8, of((byte) -3, (byte) 0)))
        .containsExactly(-1);
    assertThat(Oracle.fold(ReduceOp.AVERAGE, DataType.UINT8, of((byte) 255, (byte) 253)))
        .containsExactly(254);
    assertThat(Oracle.fold(ReduceOp.MAX, DataType.UINT8, of((byte) -1, (byte) 1)))
        .containsExactly(-1);
    assertThat(Oracle.fold(ReduceOp.LOGICAL_AND, DataType.INT8, of((byte) 2, (byte) 4)))
        .containsExactly(1);
    assertThat(Oracle.fold(ReduceOp.LOGICAL_XOR, DataType.BOOL, of((byte) 2, (byte) 4)))
        .containsExactly(0);
  }

  private static float fold(ReduceOp op, float... values) {
    List<byte[]> inputs =
        java.util.stream.IntStream.range(0, values.length)
            .mapToObj(i ->
                CommData.of(values[i]).segment().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE))
            .toList();
    return Oracle.buffer(Oracle.fold(op, DataType.FLOAT32, inputs)).getFloat(0);
  }

  @Test
  void fold_floats_areLeftFolds() {
    assertThat(fold(ReduceOp.SUM, 1e8f, 1, -1e8f)).isEqualTo(0);
    assertThat(fold(ReduceOp.SUM, 1e8f, -1e8f, 1)).isEqualTo(1);
    assertThat(fold(ReduceOp.MAX, 1, Float.NaN, 3)).isNaN();
    assertThat(fold(ReduceOp.MIN, 0f, -0f)).isEqualTo(-0f);
    assertThat(fold(ReduceOp.AVERAGE, 1, 2, 4)).isEqualTo(7 / 3f);
  }
}
