package org.comm4j.core.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import org.comm4j.api.DataType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ConversionsTest {
  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void widening_everyValue_isExact(DataType type) {
    SmallFloat format = SmallFloat.of(type);
    for (int bits = 0; bits < 2 * format.signBit(); bits++) {
      double expected = format.decode(bits);
      assertThat(Float.floatToRawIntBits(widen(type, bits)))
          .as("%s %04x", type, bits)
          .isEqualTo(Float.floatToIntBits((float) expected));
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void roundTrip_everyValue_isTheSameOrTheCanonicalNan(DataType type) {
    SmallFloat format = SmallFloat.of(type);
    for (int bits = 0; bits < 2 * format.signBit(); bits++) {
      int expected = Double.isNaN(format.decode(bits)) ? format.nan() : bits;
      assertThat(narrow(type, widen(type, bits))).as("%s %04x", type, bits).isEqualTo(expected);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void narrowing_tiesAndTheirNeighbours_roundToNearestEven(DataType type) {
    for (double tie : SmallFloat.of(type).ties()) {
      float value = (float) tie;
      narrowsAsTheReference(type, value);
      narrowsAsTheReference(type, -value);
      narrowsAsTheReference(type, Math.nextUp(value));
      narrowsAsTheReference(type, -Math.nextUp(value));
      narrowsAsTheReference(type, Math.nextDown(value));
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void narrowing_anyFloat_roundsToNearestEven(DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    for (int i = 0; i < 200_000; i++) {
      float any = Float.intBitsToFloat(random.nextInt());
      assertThat(narrow(type, any))
          .as("%s of %a, seed %d", type, any, seed)
          .isEqualTo(SmallFloat.of(type).encode(any));
    }
    for (float edge :
        new float[] {
          0f,
          -0f,
          Float.MIN_VALUE,
          Float.MIN_NORMAL,
          Float.MAX_VALUE,
          448,
          464,
          465,
          65504,
          65519,
          65520,
          57344,
          61439,
          61440,
          Float.POSITIVE_INFINITY,
          Float.NEGATIVE_INFINITY,
          Float.NaN
        }) {
      narrowsAsTheReference(type, edge);
    }
  }

  @Test
  void e4m3_tooLarge_saturates() {
    assertThat(Conversions.toE4m3(Float.POSITIVE_INFINITY)).isEqualTo((byte) 0x7e);
    assertThat(Conversions.toE4m3(-1e30f)).isEqualTo((byte) 0xfe);
    assertThat(Conversions.fromE4m3((byte) 0x7e)).isEqualTo(448f);
  }

  @Test
  void e5m2_tooLarge_isInfinite() {
    assertThat(Conversions.toE5m2(61440f)).isEqualTo((byte) 0x7c);
    assertThat(Conversions.toE5m2(-1e30f)).isEqualTo((byte) 0xfc);
    assertThat(Conversions.fromE5m2((byte) 0x7b)).isEqualTo(57344f);
  }

  private static void narrowsAsTheReference(DataType type, float value) {
    assertThat(narrow(type, value))
        .as("%s of %a", type, value)
        .isEqualTo(SmallFloat.of(type).encode(value));
  }

  private static float widen(DataType type, int bits) {
    return switch (type) {
      case FLOAT16 -> Conversions.fromFloat16((short) bits);
      case BFLOAT16 -> Conversions.fromBfloat16((short) bits);
      case FLOAT8_E4M3 -> Conversions.fromE4m3((byte) bits);
      case FLOAT8_E5M2 -> Conversions.fromE5m2((byte) bits);
      default -> throw new AssertionError(type);
    };
  }

  private static int narrow(DataType type, float value) {
    return switch (type) {
      case FLOAT16 -> Conversions.toFloat16(value) & 0xffff;
      case BFLOAT16 -> Conversions.toBfloat16(value) & 0xffff;
      case FLOAT8_E4M3 -> Conversions.toE4m3(value) & 0xff;
      case FLOAT8_E5M2 -> Conversions.toE5m2(value) & 0xff;
      default -> throw new AssertionError(type);
    };
  }
}
