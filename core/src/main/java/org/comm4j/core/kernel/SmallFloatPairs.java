package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.nio.ByteOrder;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorOperators.Associative;
import jdk.incubator.vector.VectorSpecies;

/// Sums of FLOAT16, and sums and products of BFLOAT16, on vectors, raw from raw: `out =
/// round(widen(a) ∘ widen(b))`, unless there is a NaN or an Infinity, or of FLOAT16 a number of
/// which the sum of two may be one. A template of [Specialized].
///
/// Two elements are in 32 bits, of which each is widened where it is. That is a shift of the whole
/// for the lower one, and keeps all in place. The compiler takes so many operations on vectors in
/// one loop and no more, which is why this has no other cases.
///
/// To widen a FLOAT16 is to move its exponent by 112, which is more work than the sum. But where
/// its bits are put into a float as they are, that float is 2⁻¹¹² times the half, and so is the sum
/// of two, rounded like the sum of the halves as floats: if it is a normal float, to the same 24
/// bits; else it is less than 2⁻¹⁴ as a half, and exact, as it has ten bits.
final class SmallFloatPairs implements VectorLoop {
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();
  private static final Elements ELEMENTS =
      Specialized.operator(MethodHandles.lookup(), Elements.class);
  private static final Associative OP = ELEMENTS.operator();
  private static final boolean BRAIN = ELEMENTS.brain();
  private static final VectorSpecies<Short> RAW = ShortVector.SPECIES_PREFERRED;

  private static final int SIGN = 0x8000_0000;
  private static final short MAGNITUDE = 0x7fff;

  /// What is not for vectors: Infinity; half of the first FLOAT16 that there is not.
  private static final short LARGE = (short) (BRAIN ? 0x7f80 : 0x7800);

  /// How many bits a float's fraction has more.
  private static final int MORE = BRAIN ? 16 : 13;

  /// The bits that an element has in a float.
  private static final int WIDENED = BRAIN ? 0xffff_0000 : 0x8fff_e000;

  /// What a copy of the template works on.
  ///
  /// @param brain whether it is BFLOAT16, else FLOAT16, of which there are sums alone
  record Elements(boolean brain, Associative operator) {}

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
    ShortVector most = ShortVector.zero(RAW);
    for (int i = 0; i < bytes; i += RAW.vectorByteSize()) {
      ShortVector x = ShortVector.fromMemorySegment(RAW, a, aOffset + i, ORDER);
      ShortVector y = ShortVector.fromMemorySegment(RAW, b, bOffset + i, ORDER);
      most = most.max(x.and(MAGNITUDE)).max(y.and(MAGNITUDE));
    }
    if (most.compare(VectorOperators.GE, LARGE).anyTrue()) {
      return false;
    }
    for (int i = 0; i < bytes; i += RAW.vectorByteSize()) {
      IntVector x = ShortVector.fromMemorySegment(RAW, a, aOffset + i, ORDER).reinterpretAsInts();
      IntVector y = ShortVector.fromMemorySegment(RAW, b, bOffset + i, ORDER).reinterpretAsInts();
      IntVector upper = combined(x, y);
      IntVector lower =
          combined(x.lanewise(VectorOperators.LSHL, 16), y.lanewise(VectorOperators.LSHL, 16));
      IntVector z = BRAIN ? joinedBrain(upper, lower) : joinedHalf(upper, lower);
      z.reinterpretAsShorts().intoMemorySegment(out, outOffset + i, ORDER);
    }
    return true;
  }

  /// The upper elements combined, as floats' bits.
  private static IntVector combined(IntVector x, IntVector y) {
    return widened(x)
        .reinterpretAsFloats()
        .lanewise(OP, widened(y).reinterpretAsFloats())
        .reinterpretAsInts();
  }

  private static IntVector widened(IntVector upper) {
    return (BRAIN ? upper : upper.lanewise(VectorOperators.ASHR, 16 - MORE)).and(WIDENED);
  }

  /// To nearest, ties to even: what is below an element's last bit is then to be cut off.
  private static IntVector rounded(IntVector bits) {
    return bits.lanewise(VectorOperators.LSHR, MORE).and(1).add(bits).add((1 << (MORE - 1)) - 1);
  }

  private static IntVector joinedBrain(IntVector upper, IntVector lower) {
    return rounded(upper).and(0xffff_0000).or(rounded(lower).lanewise(VectorOperators.LSHR, 16));
  }

  private static IntVector joinedHalf(IntVector upper, IntVector lower) {
    return rounded(upper)
        .lanewise(VectorOperators.LSHL, 16 - MORE)
        .and(0x7fff_0000)
        .or(rounded(lower).lanewise(VectorOperators.LSHR, MORE).and(0x7fff))
        .or(upper.and(SIGN))
        .or(lower.and(SIGN).lanewise(VectorOperators.LSHR, 16));
  }
}
