package org.comm4j.core.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.comm4j.api.DataType.FLOAT16;
import static org.comm4j.api.DataType.FLOAT32;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import java.util.stream.Stream;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.ReduceOp.Predefined;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class KernelTest {
  private static final int MANY = 100;
  private static final int[] COUNTS = {0, 1, 2, 7, 31, 33, 1027, 2051};

  /// Where elements are: a kind of memory and a distance from its start.
  private record Place(MemorySegment segment, long offset) {
    byte[] element(long index, int bytes) {
      return Reference.element(segment, offset, index, bytes);
    }
  }

  static Stream<Arguments> legal() {
    List<Arguments> all = new ArrayList<>();
    for (Predefined op : Predefined.values()) {
      for (DataType type : DataType.values()) {
        if (op.supports(type)) {
          all.add(Arguments.of(op, type));
        }
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("legal")
  void everyMethod_anyMemory_givesWhatTheReferenceGives(Predefined op, DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    try (Arena arena = Arena.ofConfined()) {
      for (Kernel kernel : Kernels.variants(op, type)) {
        for (int count : COUNTS) {
          String description = "seed " + seed + ", count " + count;
          for (int round = 0; round < (count < MANY ? 6 : 1); round++) {
            new Trial(op, kernel, count, false, random, arena, description).all();
          }
          new Trial(op, kernel, count, true, random, arena, description + ", alike").all();
        }
      }
    }
  }

  /// One kernel on one set of random elements in random places.
  ///
  /// @param alike whether all are in arrays of the primitive, from the same index on
  private record Trial(
      Predefined op,
      Kernel kernel,
      int count,
      boolean alike,
      RandomGenerator random,
      Arena arena,
      String description) {
    void all() {
      DataType raw = kernel.type();
      DataType wide = kernel.accumulator();
      assertThat(wide).isEqualTo(op.accumulationType(raw));

      Place a = filled(raw);
      Place b = filled(raw);
      Place wideA = place(wide);
      kernel.widen(a.segment, a.offset, wideA.segment, wideA.offset, count);
      for (int i = 0; i < count; i++) {
        byte[] expected = Reference.widen(raw, wide, a.element(i, raw.bytes()));
        byte[] actual = wideA.element(i, wide.bytes());
        if (raw == wide || !Reference.isNan(wide, expected)) {
          check("widen", i, actual, expected);
        } else {
          assertThat(Reference.isNan(wide, actual)).as("widen of a NaN, %s", description).isTrue();
        }
      }
      Place wideB = filled(wide);

      Place out = place(wide);
      kernel.combineInto(
          wideA.segment, wideA.offset, wideB.segment, wideB.offset, out.segment, out.offset, count);
      combined("combineInto", out, wideA, wideB);

      Place same = copy(wideA, wide);
      kernel.combineInto(
          same.segment, same.offset, wideB.segment, wideB.offset, same.segment, same.offset, count);
      combined("combineInto a", same, wideA, wideB);

      same = copy(wideB, wide);
      kernel.combineInto(
          wideA.segment, wideA.offset, same.segment, same.offset, same.segment, same.offset, count);
      combined("combineInto b", same, wideA, wideB);

      same = copy(wideA, wide);
      kernel.combine(wideB.segment, wideB.offset, same.segment, same.offset, count);
      combined("combine", same, wideA, wideB);

      same = copy(wideA, wide);
      kernel.combineRaw(b.segment, b.offset, same.segment, same.offset, count);
      for (int i = 0; i < count; i++) {
        byte[] widened = Reference.widen(raw, wide, b.element(i, raw.bytes()));
        byte[] expected = Reference.combine(op, wide, wideA.element(i, wide.bytes()), widened);
        check("combineRaw", i, same.element(i, wide.bytes()), expected);
      }

      out = place(wide);
      kernel.combineRawInto(
          a.segment, a.offset, b.segment, b.offset, out.segment, out.offset, count);
      for (int i = 0; i < count; i++) {
        byte[] expected =
            Reference.combine(
                op,
                wide,
                Reference.widen(raw, wide, a.element(i, raw.bytes())),
                Reference.widen(raw, wide, b.element(i, raw.bytes())));
        check("combineRawInto", i, out.element(i, wide.bytes()), expected);
      }

      same = copy(wideB, wide);
      Kernel.makeNansCanonical(wide, same.segment, same.offset, count);
      for (int i = 0; i < count; i++) {
        byte[] expected = canonical(wide, wideB.element(i, wide.bytes()));
        check("makeNansCanonical", i, same.element(i, wide.bytes()), expected);
      }
      untouched(same, wide.bytes());

      int[] divisors = count < MANY ? new int[] {1, 2, 3, 7, 4096} : new int[] {1, 3};
      for (int divisor : divisors) {
        Place done = place(raw);
        kernel.finish(wideB.segment, wideB.offset, done.segment, done.offset, count, divisor);
        finished(done, wideB, divisor);
        if (raw == wide) {
          same = copy(wideB, wide);
          kernel.finish(same.segment, same.offset, same.segment, same.offset, count, divisor);
          finished(same, wideB, divisor);
        }
      }
    }

    private void combined(String what, Place result, Place a, Place b) {
      int bytes = kernel.accumulator().bytes();
      for (int i = 0; i < count; i++) {
        byte[] expected =
            Reference.combine(op, kernel.accumulator(), a.element(i, bytes), b.element(i, bytes));
        check(what, i, result.element(i, bytes), expected);
      }
      untouched(result, bytes);
    }

    private void finished(Place result, Place source, int divisor) {
      DataType raw = kernel.type();
      DataType wide = kernel.accumulator();
      for (int i = 0; i < count; i++) {
        byte[] expected = Reference.finish(op, raw, wide, source.element(i, wide.bytes()), divisor);
        check("finish " + divisor, i, result.element(i, raw.bytes()), expected);
      }
      untouched(result, raw.bytes());
    }

    private void check(String what, int index, byte[] actual, byte[] expected) {
      if (!Arrays.equals(actual, expected)) {
        assertThat(actual)
            .as("%s %s, element %d, %s, %s", what, kernel.type(), index, description, kernel)
            .inHexadecimal()
            .isEqualTo(expected);
      }
    }

    /// What is around the elements is 0x55 in every place.
    private void untouched(Place place, int bytes) {
      long end = place.offset + (long) count * bytes;
      for (long at = 0; at < place.segment.byteSize(); at++) {
        boolean outside = at < place.offset || at >= end;
        if (outside && place.segment.get(ValueLayout.JAVA_BYTE, at) != 0x55) {
          fail("byte %d outside %d..%d was written, %s", at, place.offset, end, description);
        }
      }
    }

    private Place filled(DataType type) {
      Place place = place(type);
      byte[] elements = Reference.random(type, count, random);
      MemorySegment.copy(
          MemorySegment.ofArray(elements), 0, place.segment, place.offset, elements.length);
      return place;
    }

    private Place copy(Place from, DataType type) {
      Place place = place(type);
      MemorySegment.copy(from.segment, from.offset, place.segment, place.offset, type.bytes(count));
      return place;
    }

    private Place place(DataType type) {
      return alike ? arrayPlace(type) : anyPlace(type);
    }

    private Place arrayPlace(DataType type) {
      int start = 16;
      int sliced = 8 * random.nextInt(3);
      int bytes = start + count * type.bytes() + 16;
      MemorySegment segment = Carrier.of(type).tile(bytes).segment().asSlice(sliced);
      segment.fill((byte) 0x55);
      return new Place(segment, start - sliced);
    }

    private Place anyPlace(DataType type) {
      int offset = random.nextInt(20);
      int bytes = count * type.bytes() + offset + random.nextInt(20);
      int slack = (bytes + 15) & -16;
      MemorySegment segment =
          switch (random.nextInt(8)) {
            case 0 -> MemorySegment.ofArray(new short[slack / 2]);
            case 1 -> MemorySegment.ofArray(new int[slack / 4]);
            case 2 -> MemorySegment.ofArray(new long[slack / 8]);
            case 3 -> MemorySegment.ofArray(new float[slack / 4]);
            case 4 -> MemorySegment.ofArray(new double[slack / 8]);
            case 5 -> MemorySegment.ofArray(new byte[bytes]);
            default -> arena.allocate(slack).asSlice(random.nextInt(0, slack - bytes + 1), bytes);
          };
      segment.fill((byte) 0x55);
      return new Place(segment, offset);
    }
  }

  private static byte[] canonical(DataType type, byte[] element) {
    return switch (type) {
      case FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 ->
          Reference.finish(Predefined.AVERAGE, type, type, element, 1);
      default -> element;
    };
  }

  /// On an accumulation type: others use its loop.
  static Stream<Arguments> knownToVectors() {
    List<Arguments> known = new ArrayList<>();
    for (Predefined op : Predefined.values()) {
      for (DataType type : DataType.values()) {
        if (op.supports(type)
            && op.accumulationType(type) == type
            && Kernels.variants(op, type).getLast().vectors().wide() != null) {
          known.add(Arguments.of(op, type));
        }
      }
    }
    return known.stream();
  }

  /// A vector and all of a second one but its last lane, on the interpreter: kernels take a loop
  /// only once it is used so often that it has been compiled.
  @ParameterizedTest
  @MethodSource("knownToVectors")
  void vectorLoop_notCompiled_givesWhatTheTilesGive(Predefined op, DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    Carrier carrier = Carrier.of(type);
    VectorFold vectors =
        Objects.requireNonNull(Kernels.variants(op, type).getLast().vectors().wide());
    int vectorBytes = VectorLoops.species(carrier).vectorByteSize();
    int tail = vectorBytes - carrier.bytes();
    int count = 2 * vectorBytes / type.bytes();
    byte[] expected = new byte[2 * vectorBytes];
    Kernel plain = Kernels.variants(op, type).getFirst();
    try (Arena arena = Arena.ofConfined()) {
      for (boolean isNative : new boolean[] {false, true}) {
        IntFunction<MemorySegment> memory =
            isNative ? arena::allocate : bytes -> carrier.tile(bytes).segment();
        MemorySegment a = memory.apply(expected.length);
        MemorySegment b = memory.apply(expected.length);
        MemorySegment out = memory.apply(expected.length);
        VectorLoop loop = vectors.loop(a, b, out);
        for (int round = 0; round < 20; round++) {
          a.copyFrom(MemorySegment.ofArray(Reference.random(type, count, random)));
          b.copyFrom(MemorySegment.ofArray(Reference.random(type, count, random)));
          plain.combineInto(a, 0, b, 0, MemorySegment.ofArray(expected), 0, count);
          Arrays.fill(expected, vectorBytes + tail, expected.length, (byte) 0x55);
          out.fill((byte) 0x55);

          assertThat(loop.apply(a, 0, b, 0, out, 0, vectorBytes)).isTrue();
          loop.applyMasked(a, vectorBytes, b, vectorBytes, out, vectorBytes, tail);

          assertThat(out.toArray(ValueLayout.JAVA_BYTE))
              .as("%s of %s, native %s, seed %d", op, type, isNative, seed)
              .inHexadecimal()
              .isEqualTo(expected);
        }
      }
    }
  }

  /// Each primitive once, with different operators: to compile a loop takes seconds.
  @ParameterizedTest
  @CsvSource({"SUM,FLOAT32", "MAX,FLOAT64", "SUM,INT8", "PRODUCT,INT64", "MIN,UINT32", "MAX,INT16"})
  void vectors_onceCompiled_giveWhatTheTilesGive(Predefined op, DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    TileKernel plain = Kernels.variants(op, type).getFirst();
    TileKernel vectors = Kernels.variants(op, type).getLast();
    int count = 2003;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment a = arena.allocate(type.bytes(count));
      MemorySegment b = arena.allocate(type.bytes(count));
      MemorySegment out = arena.allocate(type.bytes(count));
      MemorySegment expected = arena.allocate(type.bytes(count));
      untilFast(
          () -> vectors.combineInto(a, 0, b, 0, out, 0, count),
          () -> {
            a.copyFrom(MemorySegment.ofArray(Reference.random(type, count, random)));
            b.copyFrom(MemorySegment.ofArray(Reference.random(type, count, random)));
            vectors.combineInto(a, 0, b, 0, out, 0, count);
            plain.combineInto(a, 0, b, 0, expected, 0, count);
            assertThat(out.mismatch(expected))
                .as("%s of %s, seed %d", op, type, seed)
                .isEqualTo(-1);
          },
          () -> isFast(vectors.vectors().wide(), a, b, out));
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT32", "FLOAT64"})
  void makeNansCanonical_onceCompiled_mendsEachAndWritesNothingElse(DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    int count = 2003;
    VectorFold vectors = Kernels.canonicalNans(Carrier.of(type));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment data = arena.allocate(type.bytes(count));
      MemorySegment readOnly = data.asReadOnly(); // is refused where something is written
      untilFast(
          () -> {
            data.fill((byte) 0);
            Kernel.makeNansCanonical(type, readOnly, 0, count);
          },
          () -> {
            byte[] elements = Reference.random(type, count, random);
            data.copyFrom(MemorySegment.ofArray(elements));
            Kernel.makeNansCanonical(type, data, 0, count);
            for (int i = 0; i < count; i++) {
              byte[] element =
                  Reference.element(MemorySegment.ofArray(elements), 0, i, type.bytes());
              assertThat(Reference.element(data, 0, i, type.bytes()))
                  .as("element %d, seed %d", i, seed)
                  .isEqualTo(canonical(type, element));
            }
          },
          () -> isFast(vectors, data, data, data));
    }
  }

  /// Calls loops until they are compiled, and a while longer.
  ///
  /// @param compare looks at what they give, for new data; now and then, and each time in the end
  private static void untilFast(Runnable call, Runnable compare, BooleanSupplier isFast) {
    long deadline = System.nanoTime() + 20_000_000_000L;
    int sinceFast = 0;
    for (int i = 0; sinceFast < 20 && System.nanoTime() < deadline; i++) {
      call.run();
      if (i % 500 == 0 || sinceFast > 0) {
        compare.run();
      }
      sinceFast += isFast.getAsBoolean() ? 1 : 0;
    }
    assumeThat(sinceFast).as("calls since the compiler was done").isPositive();
  }

  @ParameterizedTest
  @CsvSource({"SUM,BFLOAT16", "PRODUCT,BFLOAT16", "SUM,FLOAT16", "PRODUCT,FLOAT16"})
  void smallFloatVectors_onceCompiled_giveWhatTheTilesGive(Predefined op, DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    TileKernel plain = Kernels.variants(op, type).getFirst();
    TileKernel vectors = Kernels.variants(op, type).getLast();
    int count = 2003;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment a = arena.allocate(type.bytes(count));
      MemorySegment b = arena.allocate(type.bytes(count));
      MemorySegment whole = arena.allocate(type.bytes(count));
      MemorySegment expectedWhole = arena.allocate(type.bytes(count));
      MemorySegment wide = arena.allocate(FLOAT32.bytes(count));
      MemorySegment out = arena.allocate(type.bytes(count));
      MemorySegment expectedWide = arena.allocate(FLOAT32.bytes(count));
      MemorySegment expected = arena.allocate(type.bytes(count));
      Runnable byVectors =
          () -> {
            reduce(vectors, a, b, wide, out, count);
            vectors.combineFinished(a, 0, b, 0, whole, 0, count, 1);
          };
      TileKernel.Vectors all = vectors.vectors();
      untilFast(
          byVectors,
          () -> {
            a.copyFrom(MemorySegment.ofArray(Reference.random(type, count, random)));
            b.copyFrom(MemorySegment.ofArray(Reference.random(type, count, random)));
            byVectors.run();
            reduce(plain, a, b, expectedWide, expected, count);
            plain.combineFinished(a, 0, b, 0, expectedWhole, 0, count, 1);
            String what = "%s of %s, seed %d".formatted(op, type, seed);
            assertThat(wide.mismatch(expectedWide)).as("wide, " + what).isEqualTo(-1);
            assertThat(out.mismatch(expected)).as(what).isEqualTo(-1);
            assertThat(whole.mismatch(expectedWhole)).as("whole, " + what).isEqualTo(-1);
          },
          () ->
              isFast(all.raw(), a, b, wide)
                  && isFast(all.mixed(), wide, b, wide)
                  && isFast(all.rounding(), wide, wide, out)
                  && (all.whole() == null || isFast(all.whole(), a, b, out)));
    }
  }

  /// Whole loops leave what is not finite to the tiles, of FLOAT16 also what may give such sums.
  @ParameterizedTest
  @CsvSource({"SUM,FLOAT16", "SUM,BFLOAT16", "PRODUCT,BFLOAT16"})
  void wholeLoops_ofAllThatTheyKnow_giveWhatTheTilesGive(Predefined op, DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    TileKernel plain = Kernels.variants(op, type).getFirst();
    TileKernel vectors = Kernels.variants(op, type).getLast();
    int magnitudes = type == FLOAT16 ? 0x7800 : 0x7f80;
    int count = 2 * magnitudes;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment a = arena.allocate(2L * count);
      MemorySegment b = arena.allocate(2L * count);
      MemorySegment out = arena.allocate(2L * count);
      MemorySegment expected = arena.allocate(2L * count);
      for (int i = 0; i < count; i++) {
        int half = i < magnitudes ? i : 0x8000 | (i - magnitudes);
        a.setAtIndex(ValueLayout.JAVA_SHORT, i, (short) half);
      }
      untilFast(
          () -> vectors.combineFinished(a, 0, b, 0, out, 0, 2000, 1),
          () -> {
            int turn = random.nextInt(count);
            int near = random.nextInt(32);
            boolean small = random.nextBoolean(); // sums; else of numbers less than 2 with all
            for (int i = 0; i < count; i++) {
              int from = (i + (small ? magnitudes + near : turn)) % count;
              int half = a.getAtIndex(ValueLayout.JAVA_SHORT, from) & (small ? 0xffff : 0xbfff);
              b.setAtIndex(ValueLayout.JAVA_SHORT, i, (short) half);
            }
            vectors.combineFinished(a, 0, b, 0, out, 0, count, 1);
            plain.combineFinished(a, 0, b, 0, expected, 0, count, 1);
            assertThat(out.mismatch(expected))
                .as("turn %d, near %d, small %s", turn, near, small)
                .isEqualTo(-1);
          },
          () -> isFast(vectors.vectors().whole(), a, b, out));
    }
  }

  /// `out = round(a ∘ b ∘ b)`.
  private static void reduce(
      Kernel kernel,
      MemorySegment a,
      MemorySegment b,
      MemorySegment wide,
      MemorySegment out,
      int count) {
    kernel.combineRawInto(a, 0, b, 0, wide, 0, count);
    kernel.combineRaw(b, 0, wide, 0, count);
    kernel.finish(wide, 0, out, 0, count, 1);
  }

  @ParameterizedTest
  @MethodSource("legal")
  void combineFinished_givesWhatCombiningAndFinishingGive(Predefined op, DataType type) {
    long seed = System.nanoTime();
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    for (Kernel kernel : Kernels.variants(op, type)) {
      for (int count : COUNTS) {
        MemorySegment a = MemorySegment.ofArray(Reference.random(type, count, random));
        MemorySegment b = MemorySegment.ofArray(Reference.random(type, count, random));
        MemorySegment wide =
            MemorySegment.ofArray(new byte[(int) kernel.accumulator().bytes(count)]);
        MemorySegment expected = MemorySegment.ofArray(new byte[(int) type.bytes(count)]);
        kernel.combineRawInto(a, 0, b, 0, wide, 0, count);
        kernel.finish(wide, 0, expected, 0, count, 3);

        kernel.combineFinished(a, 0, b, 0, a, 0, count, 3); // in place

        assertThat(a.mismatch(expected))
            .as("%s of %d × %s, seed %d", op, count, type, seed)
            .isEqualTo(-1);
      }
    }
  }

  /// All 16-bit values, and what lies between them.
  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT16", "BFLOAT16"})
  void finish_everyFloatNearThem_isRoundedAsByTheTiles(DataType type) {
    int count = 1 << 20;
    float[] wide = new float[count];
    for (int i = 0; i < count; i++) {
      int nearby = (i & 15) < 8 ? (i & 7) - 4 : 0x1000 + (i & 7) - 4;
      int raw = i >>> 4;
      int bits =
          type == DataType.BFLOAT16
              ? raw << 16 | (i & 15) << 12
              : Float.floatToRawIntBits(Float.float16ToFloat((short) raw)) + nearby;
      wide[i] = Float.intBitsToFloat(bits);
    }
    MemorySegment source = MemorySegment.ofArray(wide);
    short[] expected = new short[count];
    Kernel plain = Kernels.variants(Predefined.SUM, type).getFirst();
    plain.finish(source, 0, MemorySegment.ofArray(expected), 0, count, 1);
    Kernel vectors = Kernels.variants(Predefined.SUM, type).getLast();
    VectorFold rounding = Kernels.variants(Predefined.SUM, type).getLast().vectors().rounding();
    short[] result = new short[count];
    MemorySegment target = MemorySegment.ofArray(result);
    untilFast(
        () -> vectors.finish(source, 0, target, 0, count, 1),
        () -> assertThat(result).isEqualTo(expected),
        () -> isFast(rounding, source, source, target));
  }

  private static boolean isFast(
      @Nullable VectorFold fold, MemorySegment a, MemorySegment b, MemorySegment out) {
    return fold != null && fold.isFast(a, b, out);
  }

  @Test
  void of_illegalPair_isRefused() {
    for (Predefined op : Predefined.values()) {
      for (DataType type : DataType.values()) {
        if (!op.supports(type)) {
          assertThatThrownBy(() -> Kernel.of(op, type))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining(op.name())
              .hasMessageContaining(type.name());
        }
      }
    }
  }

  @Test
  void of_calledTwice_givesTheSameKernel() {
    assertThat(Kernel.of(ReduceOp.SUM, DataType.INT32))
        .isSameAs(Kernel.of(ReduceOp.SUM, DataType.INT32));
  }

  @Test
  void combine_segmentTooSmall_isRefused() {
    Kernel kernel = Kernel.of(ReduceOp.SUM, DataType.FLOAT32);
    MemorySegment small = MemorySegment.ofArray(new float[99]);
    MemorySegment large = MemorySegment.ofArray(new float[100]);
    assertThatThrownBy(() -> kernel.combine(small, 0, large, 0, 100))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> kernel.combine(large, 0, small, 0, 100))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void combine_readOnlyArrayAsResult_isRefused() {
    Kernel sum = Kernel.of(ReduceOp.SUM, FLOAT32);
    float[] array = {1, 2};
    MemorySegment target = MemorySegment.ofArray(array).asReadOnly();
    MemorySegment source = MemorySegment.ofArray(new float[] {1, 1});
    assertThatThrownBy(() -> sum.combine(source, 0, target, 0, 2))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(array).containsExactly(1, 2);
  }

  @Test
  void combine_ofReadOnlyArray_isTheSum() {
    Kernel sum = Kernel.of(ReduceOp.SUM, FLOAT32);
    float[] array = {1, 2};
    MemorySegment source = MemorySegment.ofArray(new float[] {3, 4}).asReadOnly();
    sum.combine(source, 0, MemorySegment.ofArray(array), 0, 2);
    assertThat(array).containsExactly(4, 6);
  }

  @Test
  void average_int32_doesNotOverflowOnTheWay() {
    Kernel kernel = Kernel.of(ReduceOp.AVERAGE, DataType.INT32);
    MemorySegment values =
        MemorySegment.ofArray(new int[] {Integer.MAX_VALUE, Integer.MIN_VALUE, -3});
    long[] sum = new long[3];
    MemorySegment wide = MemorySegment.ofArray(sum);
    kernel.combineRawInto(values, 0, values, 0, wide, 0, 3);
    kernel.combineRaw(values, 0, wide, 0, 3);
    int[] average = new int[3];
    kernel.finish(wide, 0, MemorySegment.ofArray(average), 0, 3, 3);
    assertThat(average).containsExactly(Integer.MAX_VALUE, Integer.MIN_VALUE, -3);
    sum[0] = -7;
    sum[1] = 7;
    kernel.finish(wide, 0, MemorySegment.ofArray(average), 0, 2, 2);
    assertThat(average).startsWith(-3, 3);
  }

  @Test
  void sum_bfloat16_isRoundedOnlyOnce() {
    // 256 + 1 is a tie in bfloat16 and would stay 256 for ever if every sum were rounded
    Kernel kernel = Kernel.of(ReduceOp.SUM, DataType.BFLOAT16);
    MemorySegment one = MemorySegment.ofArray(new short[] {Conversions.toBfloat16(1)});
    MemorySegment wide = MemorySegment.ofArray(new float[] {256});
    for (int i = 0; i < 8; i++) {
      kernel.combineRaw(one, 0, wide, 0, 1);
    }
    short[] result = new short[1];
    kernel.finish(wide, 0, MemorySegment.ofArray(result), 0, 1, 9);
    assertThat(Float.intBitsToFloat(result[0] << 16)).isEqualTo(264f);
  }

  /// `a ∘ b = 10 a + b`: neither commutative nor known to any processor.
  private static final ReduceOp DIGITS =
      ReduceOp.of(
          "digits",
          (source, accumulator, type, count) -> {
            assertThat(source.isReadOnly()).isTrue();
            for (long at = 0; at < type.bytes(count); at += type.bytes()) {
              int digits = accumulator.get(ValueLayout.JAVA_INT_UNALIGNED, at);
              accumulator.set(
                  ValueLayout.JAVA_INT_UNALIGNED,
                  at,
                  10 * digits + source.get(ValueLayout.JAVA_INT_UNALIGNED, at));
            }
          });

  @Test
  void userDefined_everyMethod_keepsTheOrder() {
    Kernel kernel = Kernel.of(DIGITS, DataType.INT32);
    int count = 2051;
    int[] ones = filled(count, 1);
    int[] twos = filled(count, 2);
    int[] out = new int[count];
    MemorySegment a = MemorySegment.ofArray(ones);
    MemorySegment b = MemorySegment.ofArray(twos);
    kernel.combineInto(a, 0, b, 0, MemorySegment.ofArray(out), 0, count);
    assertThat(out).containsOnly(12);
    assertThat(ones).containsOnly(1);

    kernel.combineRawInto(a, 0, b, 0, b, 0, count);
    assertThat(twos).containsOnly(12);

    kernel.combine(b, 0, a, 0, count);
    assertThat(ones).containsOnly(22);

    kernel.combineRaw(b, 4, a, 0, count - 1);
    assertThat(ones).startsWith(232).endsWith(22);

    kernel.widen(a, 0, b, 0, count);
    assertThat(twos).isEqualTo(ones);
    kernel.finish(b, 0, MemorySegment.ofArray(out), 0, count, 7);
    assertThat(out).isEqualTo(ones);
    assertThat(kernel.accumulator()).isEqualTo(DataType.INT32);
  }

  /// As where an operator calls the communicator of another launch.
  @Test
  void userDefined_functionCombinesByAnother_keepsItsElements() {
    Kernel inner =
        Kernel.of(
            ReduceOp.of("seven", (_, accumulator, _, _) -> accumulator.fill((byte) 7)),
            DataType.INT8);
    var bytes = MemorySegment.ofArray(new byte[256]);
    ReduceOp sum =
        ReduceOp.of(
            "sum",
            (source, accumulator, _, count) -> {
              inner.combineInto(bytes, 0, bytes, 128, bytes, 64, 64);
              for (long at = 0; at < count; at++) {
                accumulator.setAtIndex(
                    ValueLayout.JAVA_INT_UNALIGNED,
                    at,
                    accumulator.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, at)
                        + source.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, at));
              }
            });
    int[] out = new int[50];

    Kernel.of(sum, DataType.INT32)
        .combineInto(
            MemorySegment.ofArray(filled(50, 1)),
            0,
            MemorySegment.ofArray(filled(50, 2)),
            0,
            MemorySegment.ofArray(out),
            0,
            50);

    assertThat(out).containsOnly(3);
  }

  private static int[] filled(int count, int value) {
    int[] array = new int[count];
    Arrays.fill(array, value);
    return array;
  }
}
