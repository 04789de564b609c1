package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorOperators.Associative;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp.Predefined;
import org.jspecify.annotations.Nullable;

/// FLOAT16 and BFLOAT16 on vectors: widened to FLOAT32 on the way in, rounded on the way out, by
/// arithmetic on their bits. Only for virtual machines that have the vector module.
///
/// What is combined comes from two places, raw or accumulated, and goes to a third. Sizes are those
/// of the accumulated form, of which the raw one has half; of [#ofWhole], of the raw one.
final class SmallFloatLoops {
  private static final VectorSpecies<Float> FLOATS = FloatVector.SPECIES_PREFERRED;

  private SmallFloatLoops() {}

  /// `out = widen(a) ∘ widen(b)`, or null if vectors do not know it.
  static @Nullable VectorFold ofRaw(Predefined op, DataType type) {
    return of(Form.RAW_RAW, operator(op), type);
  }

  /// `out = a ∘ widen(b)`, with `a` accumulated, or null if vectors do not know it.
  static @Nullable VectorFold ofMixed(Predefined op, DataType type) {
    return of(Form.WIDE_RAW, operator(op), type);
  }

  /// `out = round(a)`, whatever `b` is, or null if vectors do not know it.
  static @Nullable VectorFold ofRounding(DataType type) {
    return of(Form.ROUND, VectorOperators.ADD, type);
  }

  /// `out = round(widen(a) ∘ widen(b))`, or null if vectors do not know it. Of products of FLOAT16
  /// that is more than the compiler takes in one piece.
  static @Nullable VectorFold ofWhole(Predefined op, DataType type) {
    Associative operator = operator(op);
    boolean brain = type == DataType.BFLOAT16;
    boolean half = type == DataType.FLOAT16 && operator == VectorOperators.ADD;
    if (operator == null || !(brain || half) || FLOATS.vectorBitSize() < 128) {
      return null;
    }
    return new VectorFold(
        SmallFloatPairs.class,
        new SmallFloatPairs.Elements(brain, operator),
        Carrier.SHORT,
        Carrier.SHORT,
        Carrier.SHORT,
        FLOATS.vectorByteSize());
  }

  private static @Nullable Associative operator(Predefined op) {
    return switch (op) {
      case SUM, AVERAGE -> VectorOperators.ADD;
      case PRODUCT -> VectorOperators.MUL;
      default -> null;
    };
  }

  private static @Nullable VectorFold of(Form form, @Nullable Associative op, DataType type) {
    boolean small = type == DataType.FLOAT16 || type == DataType.BFLOAT16;
    if (op == null || !small || FLOATS.vectorBitSize() < 128) {
      return null;
    }
    Carrier a = form == Form.RAW_RAW ? Carrier.SHORT : Carrier.FLOAT;
    Carrier b = form == Form.ROUND ? Carrier.FLOAT : Carrier.SHORT;
    Carrier out = form == Form.ROUND ? Carrier.SHORT : Carrier.FLOAT;
    Lanes lanes = new Lanes(form, type == DataType.BFLOAT16, op);
    return new VectorFold(Template.class, lanes, a, b, out, FLOATS.vectorByteSize());
  }

  enum Form {
    RAW_RAW,
    WIDE_RAW,
    ROUND
  }

  /// What a copy of the template works on.
  ///
  /// @param brain whether it is BFLOAT16, else FLOAT16
  record Lanes(Form form, boolean brain, Associative operator) {}

  /// The loop for both types and all forms: in a copy which ones is a constant.
  static final class Template implements VectorLoop {
    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final Lanes LANES = Specialized.operator(MethodHandles.lookup(), Lanes.class);
    private static final Associative OP = LANES.operator();
    private static final boolean BRAIN = LANES.brain();
    private static final VectorSpecies<Float> WIDE = FloatVector.SPECIES_PREFERRED;
    private static final VectorSpecies<Integer> BITS = IntVector.SPECIES_PREFERRED;
    private static final VectorSpecies<Short> RAW =
        VectorSpecies.of(short.class, VectorShape.forBitSize(WIDE.vectorBitSize() / 2));

    @Override
    public boolean apply(
        MemorySegment a,
        long aOffset,
        MemorySegment b,
        long bOffset,
        MemorySegment out,
        long outOffset,
        int bytes) {
      var _ = a.address() ^ b.address() ^ out.address(); // tells the compiler their classes
      for (int i = 0; i < bytes; i += WIDE.vectorByteSize()) {
        switch (LANES.form()) {
          case RAW_RAW ->
              combine(widen(a, aOffset + (i >> 1)), widen(b, bOffset + (i >> 1)))
                  .intoMemorySegment(out, outOffset + i, ORDER);
          case WIDE_RAW ->
              combine(
                      FloatVector.fromMemorySegment(WIDE, a, aOffset + i, ORDER),
                      widen(b, bOffset + (i >> 1)))
                  .intoMemorySegment(out, outOffset + i, ORDER);
          case ROUND ->
              round(FloatVector.fromMemorySegment(WIDE, a, aOffset + i, ORDER))
                  .intoMemorySegment(out, outOffset + (i >> 1), ORDER);
        }
      }
      return true;
    }

    private static FloatVector combine(FloatVector x, FloatVector y) {
      FloatVector z = x.lanewise(OP, y);
      return z.blend(Float.NaN, z.compare(VectorOperators.NE, z));
    }

    private static FloatVector widen(MemorySegment from, long offset) {
      ShortVector raw = ShortVector.fromMemorySegment(RAW, from, offset, ORDER);
      IntVector bits = (IntVector) raw.convertShape(VectorOperators.S2I, BITS, 0);
      return BRAIN
          ? bits.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats()
          : widenHalf(bits);
    }

    /// The exponent is moved by a multiplication, which makes subnormals normal; what had the
    /// largest one has the largest one again.
    private static FloatVector widenHalf(IntVector half) {
      IntVector magnitude = half.and(0x7fff);
      IntVector sign = half.and(0x8000).lanewise(VectorOperators.LSHL, 16);
      IntVector bits =
          magnitude
              .lanewise(VectorOperators.LSHL, 13)
              .reinterpretAsFloats()
              .mul(0x1p112f)
              .reinterpretAsInts();
      VectorMask<Integer> special = magnitude.compare(VectorOperators.GE, 0x7c00);
      return bits.lanewise(VectorOperators.OR, 0x7f80_0000, special).or(sign).reinterpretAsFloats();
    }

    private static ShortVector round(FloatVector wide) {
      IntVector raw = BRAIN ? roundBrain(wide) : roundHalf(wide.reinterpretAsInts());
      return (ShortVector) raw.convertShape(VectorOperators.I2S, RAW, 0);
    }

    private static IntVector roundBrain(FloatVector wide) {
      IntVector bits = wide.reinterpretAsInts();
      IntVector odd = bits.lanewise(VectorOperators.LSHR, 16).and(1);
      IntVector rounded = bits.add(0x7fff).add(odd).lanewise(VectorOperators.LSHR, 16);
      VectorMask<Float> nan = wide.test(VectorOperators.IS_NAN);
      return rounded.blend(Conversions.BFLOAT16_NAN, nan.cast(BITS));
    }

    /// To nearest, ties to even. Subnormals are rounded by an addition that leaves them in the last
    /// bits of a float.
    private static IntVector roundHalf(IntVector bits) {
      IntVector magnitude = bits.and(0x7fff_ffff);
      IntVector sign = bits.lanewise(VectorOperators.LSHR, 16).and(0x8000);
      IntVector odd = magnitude.lanewise(VectorOperators.LSHR, 13).and(1);
      IntVector normal =
          magnitude.sub((112 << 23) - 0xfff).add(odd).lanewise(VectorOperators.LSHR, 13);
      IntVector subnormal =
          magnitude.reinterpretAsFloats().add(0.5f).reinterpretAsInts().sub(0x3f00_0000);
      IntVector rounded =
          normal
              .blend(subnormal, magnitude.compare(VectorOperators.LT, 0x3880_0000))
              .blend(0x7c00, magnitude.compare(VectorOperators.GE, 0x4780_0000))
              .or(sign);
      return rounded.blend(
          Conversions.FLOAT16_NAN, magnitude.compare(VectorOperators.GT, 0x7f80_0000));
    }
  }
}
