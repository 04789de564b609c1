package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.Vector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorOperators.Associative;
import jdk.incubator.vector.VectorSpecies;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp.Predefined;
import org.jspecify.annotations.Nullable;

/// The operators as the vector module knows them. Only for virtual machines that have the module.
///
/// What is not here (logical operators, complex products, pairs) has no single vector instruction
/// and goes through tiles. [SmallFloatLoops] has the floats of 16 bits.
///
/// The loops are written out: they call methods of the vector module alone, which the compiler
/// always inlines. A vector that goes through another method is an object in each call where that
/// one is not inlined, and how deep the compiler inlines is a matter of who calls.
final class VectorLoops {
  private VectorLoops() {}

  /// The fold of an operator on an accumulation type, or null if vectors do not know it.
  static @Nullable VectorFold of(Predefined op, DataType type) {
    Associative operator = operator(op, type);
    if (operator == null) {
      return null;
    }
    Carrier carrier = Carrier.of(type);
    VectorSpecies<?> species = species(carrier);
    Lanes lanes = new Lanes(carrier, species, operator);
    return new VectorFold(
        Template.class, lanes, carrier, carrier, carrier, species.vectorByteSize());
  }

  /// What makes NaNs of floats or doubles canonical, in memory that is given three times.
  static VectorFold canonicalNans(Carrier carrier) {
    return new VectorFold(
        CanonicalNans.class, carrier, carrier, carrier, carrier, species(carrier).vectorByteSize());
  }

  static VectorSpecies<?> species(Carrier carrier) {
    return switch (carrier) {
      case BYTE -> ByteVector.SPECIES_PREFERRED;
      case SHORT -> ShortVector.SPECIES_PREFERRED;
      case INT -> IntVector.SPECIES_PREFERRED;
      case LONG -> LongVector.SPECIES_PREFERRED;
      case FLOAT -> FloatVector.SPECIES_PREFERRED;
      case DOUBLE -> DoubleVector.SPECIES_PREFERRED;
    };
  }

  private static @Nullable Associative operator(Predefined op, DataType type) {
    boolean smallFloat = type.kind() == Kind.FLOAT && type.bytes() < Float.BYTES;
    boolean unsigned = type.kind() == Kind.UNSIGNED;
    return switch (op) {
      case SUM, AVERAGE -> VectorOperators.ADD;
      case PRODUCT -> type.kind() == Kind.COMPLEX ? null : VectorOperators.MUL;
      case MIN -> smallFloat ? null : unsigned ? VectorOperators.UMIN : VectorOperators.MIN;
      case MAX -> smallFloat ? null : unsigned ? VectorOperators.UMAX : VectorOperators.MAX;
      case BIT_AND -> VectorOperators.AND;
      case BIT_OR -> VectorOperators.OR;
      case BIT_XOR -> VectorOperators.XOR;
      case LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, MIN_LOC, MAX_LOC -> null;
    };
  }

  /// What a copy of the template works on.
  ///
  /// @param carrier the primitive
  /// @param species how many lanes of it
  record Lanes(Carrier carrier, VectorSpecies<?> species, Associative operator) {}

  /// The loop for all primitives: in a copy the species is a constant too.
  @SuppressWarnings({"unchecked", "rawtypes"}) // any one primitive will do for the compiler
  static final class Template implements VectorLoop {
    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final Lanes LANES = Specialized.operator(MethodHandles.lookup(), Lanes.class);
    private static final Associative OP = LANES.operator();
    private static final Carrier CARRIER = LANES.carrier();
    private static final VectorSpecies SPECIES = LANES.species();

    /// The canonical NaN is made here: a vector kept in a field is in an array, which the compiler
    /// reads again after each result that goes to an array of the same primitive.
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
      for (int i = 0; i < bytes; i += SPECIES.vectorByteSize()) {
        Vector x = SPECIES.fromMemorySegment(a, aOffset + i, ORDER);
        Vector y = SPECIES.fromMemorySegment(b, bOffset + i, ORDER);
        Vector z = x.lanewise(OP, y);
        Vector result =
            switch (CARRIER) {
              case FLOAT -> ((FloatVector) z).blend(Float.NaN, z.compare(VectorOperators.NE, z));
              case DOUBLE -> ((DoubleVector) z).blend(Double.NaN, z.compare(VectorOperators.NE, z));
              case BYTE, SHORT, INT, LONG -> z;
            };
        result.intoMemorySegment(out, outOffset + i, ORDER);
      }
      return true;
    }

    @Override
    public boolean hasMaskedForm() {
      return true;
    }

    /// Only a species of a known primitive loads with a mask.
    @Override
    public void applyMasked(
        MemorySegment a,
        long aOffset,
        MemorySegment b,
        long bOffset,
        MemorySegment out,
        long outOffset,
        int bytes) {
      var _ = a.address() ^ b.address() ^ out.address(); // tells the compiler their classes
      VectorMask mask = SPECIES.indexInRange(0, bytes / (SPECIES.elementSize() / 8));
      Vector x =
          switch (CARRIER) {
            case BYTE -> ByteVector.fromMemorySegment(SPECIES, a, aOffset, ORDER, mask);
            case SHORT -> ShortVector.fromMemorySegment(SPECIES, a, aOffset, ORDER, mask);
            case INT -> IntVector.fromMemorySegment(SPECIES, a, aOffset, ORDER, mask);
            case LONG -> LongVector.fromMemorySegment(SPECIES, a, aOffset, ORDER, mask);
            case FLOAT -> FloatVector.fromMemorySegment(SPECIES, a, aOffset, ORDER, mask);
            case DOUBLE -> DoubleVector.fromMemorySegment(SPECIES, a, aOffset, ORDER, mask);
          };
      Vector y =
          switch (CARRIER) {
            case BYTE -> ByteVector.fromMemorySegment(SPECIES, b, bOffset, ORDER, mask);
            case SHORT -> ShortVector.fromMemorySegment(SPECIES, b, bOffset, ORDER, mask);
            case INT -> IntVector.fromMemorySegment(SPECIES, b, bOffset, ORDER, mask);
            case LONG -> LongVector.fromMemorySegment(SPECIES, b, bOffset, ORDER, mask);
            case FLOAT -> FloatVector.fromMemorySegment(SPECIES, b, bOffset, ORDER, mask);
            case DOUBLE -> DoubleVector.fromMemorySegment(SPECIES, b, bOffset, ORDER, mask);
          };
      Vector z = x.lanewise(OP, y);
      Vector result =
          switch (CARRIER) {
            case FLOAT -> ((FloatVector) z).blend(Float.NaN, z.compare(VectorOperators.NE, z));
            case DOUBLE -> ((DoubleVector) z).blend(Double.NaN, z.compare(VectorOperators.NE, z));
            case BYTE, SHORT, INT, LONG -> z;
          };
      result.intoMemorySegment(out, outOffset, ORDER, mask);
    }
  }

  /// Makes NaNs canonical on the way from `a` to `out`, which are the same memory. They are looked
  /// for first, in a loop without conditions: where there are none nothing is written.
  @SuppressWarnings({"unchecked", "rawtypes"}) // any one primitive will do for the compiler
  static final class CanonicalNans implements VectorLoop {
    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final Carrier CARRIER =
        Specialized.operator(MethodHandles.lookup(), Carrier.class);

    private static final VectorSpecies<Float> SPECIES = (VectorSpecies<Float>) species(CARRIER);

    @Override
    public boolean apply(
        MemorySegment a,
        long aOffset,
        MemorySegment b,
        long bOffset,
        MemorySegment out,
        long outOffset,
        int bytes) {
      var _ = a.address() ^ out.address(); // tells the compiler their classes
      VectorMask<Float> found = SPECIES.maskAll(false);
      for (int i = 0; i < bytes; i += SPECIES.vectorByteSize()) {
        Vector<Float> x = SPECIES.fromMemorySegment(a, aOffset + i, ORDER);
        found = found.or(x.compare(VectorOperators.NE, x));
      }
      if (!found.anyTrue()) {
        return true;
      }
      for (int i = 0; i < bytes; i += SPECIES.vectorByteSize()) {
        Vector x = SPECIES.fromMemorySegment(a, aOffset + i, ORDER);
        VectorMask nans = x.compare(VectorOperators.NE, x);
        Vector canonical =
            CARRIER == Carrier.FLOAT
                ? ((FloatVector) x).blend(Float.NaN, nans)
                : ((DoubleVector) x).blend(Double.NaN, nans);
        canonical.intoMemorySegment(out, outOffset + i, ORDER);
      }
      return true;
    }

    @Override
    public boolean hasMaskedForm() {
      return true;
    }

    /// As [#apply]; lanes outside the mask are zeros.
    @Override
    public void applyMasked(
        MemorySegment a,
        long aOffset,
        MemorySegment b,
        long bOffset,
        MemorySegment out,
        long outOffset,
        int bytes) {
      var _ = a.address() ^ out.address(); // tells the compiler their classes
      VectorMask mask = SPECIES.indexInRange(0, bytes / (SPECIES.elementSize() / 8));
      Vector x =
          CARRIER == Carrier.FLOAT
              ? FloatVector.fromMemorySegment((VectorSpecies) SPECIES, a, aOffset, ORDER, mask)
              : DoubleVector.fromMemorySegment((VectorSpecies) SPECIES, a, aOffset, ORDER, mask);
      VectorMask nans = x.compare(VectorOperators.NE, x);
      if (nans.anyTrue()) {
        Vector canonical =
            CARRIER == Carrier.FLOAT
                ? ((FloatVector) x).blend(Float.NaN, nans)
                : ((DoubleVector) x).blend(Double.NaN, nans);
        canonical.intoMemorySegment(out, outOffset, ORDER, mask);
      }
    }
  }
}
