package org.comm4j.core.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.comm4j.api.DataType.BFLOAT16;
import static org.comm4j.api.DataType.FLOAT16;
import static org.comm4j.api.DataType.FLOAT32;
import static org.comm4j.api.DataType.FLOAT64;
import static org.comm4j.api.DataType.FLOAT8_E4M3;
import static org.comm4j.api.DataType.FLOAT8_E5M2;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.comm4j.api.Collective.AllReduce;
import org.comm4j.api.Collective.ReduceScatter;
import org.comm4j.api.Collective.ReduceScatterV;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class EpilogueKernelTest {
  private static final long SEED = Long.getLong("comm4j.seed", 4242);
  private static final List<DataType> FLOATS =
      List.of(FLOAT64, FLOAT32, FLOAT16, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2);
  private static final int COUNT = 2500; // some tiles and a part of one

  private final SplittableRandom random = new SplittableRandom(SEED);

  static List<List<DataType>> types() {
    List<List<DataType>> all = new ArrayList<>();
    for (DataType from : FLOATS) {
      for (DataType to : FLOATS) {
        all.add(List.of(from, to));
      }
    }
    return all;
  }

  @ParameterizedTest
  @MethodSource("types")
  void apply_anyBits_roundsEachStepAndOnceAtTheEnd(List<DataType> types) {
    HostData result = any(types.get(0), COUNT);
    for (int biasCount : new int[] {0, 1, 3, 700, COUNT, 6000}) {
      HostData bias = any(types.get(1), biasCount);
      HostData residual = any(types.get(1), COUNT);
      Epilogue scaled = Epilogue.scale(random.nextDouble(-2, 2));
      Epilogue biased = biasCount == 0 ? scaled : scaled.plusBias(bias);
      for (Epilogue epilogue : List.of(biased, biased.plusResidual(residual), Epilogue.cast())) {
        assertApplied(epilogue, result, types.get(1), random.nextLong(100_000));
      }
    }
  }

  @Test
  void apply_memoryOfTheResultAndTheResidual_readsBeforeItWrites() {
    HostData data = any(FLOAT32, COUNT);
    HostData residual = any(BFLOAT16, COUNT);
    HostData twice = any(FLOAT16, COUNT);
    double[] doubled = numbers(twice);
    double[] added = numbers(residual);

    EpilogueKernel.apply(
        Epilogue.cast().plusResidual(twice), FLOAT16, twice.segment(), 0, twice, 0);
    EpilogueKernel.apply(
        Epilogue.scale(0).plusResidual(residual), FLOAT32, data.segment(), 0, residual, 0);

    for (int i = 0; i < COUNT; i++) {
      assertThat(bits(twice, i)).isEqualTo(SmallFloat.of(FLOAT16).encode(2 * doubled[i]));
      double from = number(FLOAT32, data.segment(), i);
      float sum = (float) from * 0f + (float) added[i];
      assertThat(bits(residual, i)).isEqualTo(SmallFloat.of(BFLOAT16).encode(sum));
    }
  }

  /// Of a double that is nearly a tie, the nearest float is one.
  @Test
  void apply_doubleNextToATie_roundsOnce() {
    for (DataType type : List.of(FLOAT16, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2)) {
      double[] ties = SmallFloat.of(type).ties();
      double[] values = new double[6 * ties.length];
      for (int i = 0; i < ties.length; i++) {
        values[6 * i] = ties[i];
        values[6 * i + 1] = Math.nextUp(ties[i]);
        values[6 * i + 2] = Math.nextDown(ties[i]);
        values[6 * i + 3] = -ties[i];
        values[6 * i + 4] = -Math.nextUp(ties[i]);
        values[6 * i + 5] = -Math.nextDown(ties[i]);
      }
      HostData output = data(type, values.length);

      EpilogueKernel.apply(Epilogue.cast(), FLOAT64, CommData.of(values).segment(), 0, output, 0);

      for (int i = 0; i < values.length; i++) {
        assertThat(bits(output, i))
            .as("%s of %a", type, values[i])
            .isEqualTo(SmallFloat.of(type).encode(values[i]));
      }
    }
  }

  @Test
  void first_partOfAReduceScatter_isItsPlaceInTheWhole() {
    HostData whole = data(FLOAT32, 9);
    HostData part = data(FLOAT32, 3);
    var parts = Partition.of(new long[] {1, 3, 2}, new long[] {8, 0, 4});

    assertThat(EpilogueKernel.first(new AllReduce(part, part, ReduceOp.SUM), 2)).isZero();
    assertThat(EpilogueKernel.first(new ReduceScatter(whole, part, ReduceOp.SUM), 2)).isEqualTo(6);
    assertThat(EpilogueKernel.first(new ReduceScatterV(whole, parts, part, ReduceOp.SUM), 0))
        .isEqualTo(8);
  }

  @Test
  void needsMemory_otherTypeOrResidualInTheOutput() {
    HostData output = data(FLOAT32, 3);
    Epilogue plain = Epilogue.cast();

    assertThat(EpilogueKernel.needsMemory(plain, FLOAT32, output)).isFalse();
    assertThat(EpilogueKernel.needsMemory(plain.plusResidual(data(FLOAT32, 3)), FLOAT32, output))
        .isFalse();
    assertThat(EpilogueKernel.needsMemory(plain.plusResidual(output), FLOAT32, output)).isTrue();
    assertThat(EpilogueKernel.needsMemory(plain, FLOAT64, output)).isTrue();
  }

  private void assertApplied(Epilogue epilogue, HostData result, DataType to, long first) {
    MemorySegment shifted = MemorySegment.ofArray(new byte[(int) result.bytes() + 5]);
    MemorySegment.copy(result.segment(), 0, shifted, 5, result.bytes());
    HostData output = data(to, COUNT);

    EpilogueKernel.apply(epilogue, result.type(), shifted, 5, output, first);

    boolean isDouble = result.type() == FLOAT64 || to == FLOAT64;
    for (int i = 0; i < COUNT; i++) {
      double value =
          round(
              number(result.type(), result.segment(), i) * round(epilogue.scale(), isDouble),
              isDouble);
      if (epilogue.bias() instanceof HostData bias) {
        value = round(value + number(to, bias.segment(), (first + i) % bias.count()), isDouble);
      }
      if (epilogue.residual() instanceof HostData residual) {
        value = round(value + number(to, residual.segment(), i), isDouble);
      }
      assertThat(bits(output, i))
          .as("%s to %s, %s, element %d, seed %d", result.type(), to, epilogue, i, SEED)
          .isEqualTo(encode(to, value));
    }
  }

  /// In a double, products and sums of two floats are exact enough to be rounded once more.
  private static double round(double value, boolean isDouble) {
    return isDouble ? value : (float) value;
  }

  /// Half of them ordinary, else there would be few numbers that can be added.
  private HostData any(DataType type, int count) {
    HostData data = data(type, count);
    byte[] bytes = new byte[(int) data.bytes()];
    random.nextBytes(bytes);
    MemorySegment.copy(bytes, 0, data.segment(), ValueLayout.JAVA_BYTE, 0, bytes.length);
    for (int i = 0; i < count; i += 2) {
      write(data, i, encode(type, random.nextInt(-40, 41) / 8.0));
    }
    return data;
  }

  private static HostData data(DataType type, int count) {
    return CommData.of(type, MemorySegment.ofArray(new byte[count * type.bytes()]));
  }

  private static double[] numbers(HostData data) {
    double[] numbers = new double[(int) data.count()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = number(data.type(), data.segment(), i);
    }
    return numbers;
  }

  private static double number(DataType type, MemorySegment from, long i) {
    return switch (type) {
      case FLOAT64 -> from.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8 * i);
      case FLOAT32 -> from.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4 * i);
      default -> SmallFloat.of(type).decode((int) bits(CommData.of(type, from), i));
    };
  }

  private static long encode(DataType type, double value) {
    return switch (type) {
      case FLOAT64 -> Double.doubleToLongBits(value);
      case FLOAT32 -> Integer.toUnsignedLong(Float.floatToIntBits((float) value));
      default -> SmallFloat.of(type).encode(value);
    };
  }

  private static long bits(HostData data, long i) {
    MemorySegment from = data.segment();
    return switch (data.type().bytes()) {
      case 1 -> from.get(ValueLayout.JAVA_BYTE, i) & 0xffL;
      case 2 -> from.get(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * i) & 0xffffL;
      case 4 -> Integer.toUnsignedLong(from.get(ValueLayout.JAVA_INT_UNALIGNED, 4 * i));
      default -> from.get(ValueLayout.JAVA_LONG_UNALIGNED, 8 * i);
    };
  }

  private static void write(HostData data, long i, long bits) {
    MemorySegment to = data.segment();
    switch (data.type().bytes()) {
      case 1 -> to.set(ValueLayout.JAVA_BYTE, i, (byte) bits);
      case 2 -> to.set(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * i, (short) bits);
      case 4 -> to.set(ValueLayout.JAVA_INT_UNALIGNED, 4 * i, (int) bits);
      default -> to.set(ValueLayout.JAVA_LONG_UNALIGNED, 8 * i, bits);
    }
  }
}
