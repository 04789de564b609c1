package org.comm4j.core.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.ValueLayout;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import org.comm4j.api.DataType;
import org.comm4j.core.kernel.Carrier.Tile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ConversionsTest {
  private static final int TILE_BYTES = 16; // of which one element is looked at

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void widening_everyValue_isExact(DataType type) {
    SmallFloat format = SmallFloat.of(type);
    for (int bits = 0; bits < 2 * format.signBit(); bits++) {
      double expected = format.decode(bits);
      assertThat(Float.floatToIntBits(widen(type, bits)))
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
    Tile raw = Carrier.of(type).tile(TILE_BYTES);
    Tile wide = Carrier.FLOAT.tile(TILE_BYTES);
    raw.segment().set(ValueLayout.JAVA_INT_UNALIGNED, 0, bits);
    Codec.widen(type, raw, wide, 1);
    return wide.segment().get(ValueLayout.JAVA_FLOAT, 0);
  }

  private static int narrow(DataType type, float value) {
    Tile wide = Carrier.FLOAT.tile(TILE_BYTES);
    Tile raw = Carrier.of(type).tile(TILE_BYTES);
    wide.segment().set(ValueLayout.JAVA_FLOAT, 0, value);
    Codec.narrow(type, wide, raw, 1);
    int bits = raw.segment().get(ValueLayout.JAVA_INT_UNALIGNED, 0);
    if (type == DataType.BFLOAT16) { // beside a NaN it takes another way
      assertThat(Conversions.toBfloat16(value) & 0xffff).isEqualTo(bits);
    }
    return bits;
  }
}
