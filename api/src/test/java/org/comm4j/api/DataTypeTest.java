package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class DataTypeTest {
  @Test
  void id_everyType_isTheOneInFilesAndOnTheWire() {
    String ids =
        Arrays.stream(DataType.values())
            .map(type -> type + "=" + type.id() + ":" + type.bytes())
            .collect(Collectors.joining(" "));

    assertThat(ids)
        .isEqualTo(
            "FLOAT64=0:8 FLOAT32=1:4 FLOAT16=2:2 BFLOAT16=3:2 FLOAT8_E4M3=4:1 FLOAT8_E5M2=5:1"
                + " INT64=10:8 INT32=11:4 INT16=12:2 INT8=13:1"
                + " UINT64=20:8 UINT32=21:4 UINT16=22:2 UINT8=23:1"
                + " BOOL=30:1 COMPLEX64=40:8 COMPLEX128=41:16"
                + " FLOAT64_PAIR=100:16 FLOAT32_PAIR=101:16 FLOAT16_PAIR=102:16"
                + " BFLOAT16_PAIR=103:16 FLOAT8_E4M3_PAIR=104:16 FLOAT8_E5M2_PAIR=105:16"
                + " INT64_PAIR=110:16 INT32_PAIR=111:16 INT16_PAIR=112:16 INT8_PAIR=113:16"
                + " UINT64_PAIR=120:16 UINT32_PAIR=121:16 UINT16_PAIR=122:16 UINT8_PAIR=123:16");
  }

  @ParameterizedTest
  @EnumSource
  void ofId_everyType_isFound(DataType type) {
    assertThat(DataType.ofId(type.id())).isSameAs(type);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 6, 9, 14, 24, 31, 42, 99, 106, 130, 124, Integer.MAX_VALUE})
  void ofId_unknown_isRefused(int id) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> DataType.ofId(id))
        .withMessageContaining("id: " + id)
        .withMessageContaining("expected: ")
        .withMessageContaining("same version");
  }

  @ParameterizedTest
  @EnumSource
  void bytes_count_isExactOrRefused(DataType type) {
    long most = Long.MAX_VALUE / type.bytes();

    assertThat(type.bytes(0)).isZero();
    assertThat(type.bytes(most)).isEqualTo(most * type.bytes());
    assertThat(type.countIn(type.bytes(most))).isEqualTo(most);
    for (long wrong : new long[] {-1, Long.MIN_VALUE, most == Long.MAX_VALUE ? -2 : most + 1}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> type.bytes(wrong))
          .withMessageContaining("count: " + wrong)
          .withMessageContaining("expected: 0.." + most);
    }
  }

  @ParameterizedTest
  @EnumSource
  void pairType_ofNumbers_hasThemAsValues(DataType type) {
    switch (type.kind()) {
      case FLOAT, SIGNED, UNSIGNED -> assertThat(type.pairType().valueType()).isSameAs(type);
      case BOOL, COMPLEX, PAIR ->
          assertThatIllegalArgumentException()
              .isThrownBy(type::pairType)
              .withMessageContaining(type.name())
              .withMessageContaining("expected: an integer or float type");
    }
  }
}
