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
  static final class Template implements VectorLoop {
    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final Lanes LANES = Specialized.operator(MethodHandles.lookup(), Lanes.class);
    private static final Associative OP = LANES.operator();

    @SuppressWarnings("unchecked") // any one primitive will do for the compiler
    private static final VectorSpecies<Float> SPECIES = (VectorSpecies<Float>) LANES.species();

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
        Vector<Float> x = SPECIES.fromMemorySegment(a, aOffset + i, ORDER);
        Vector<Float> y = SPECIES.fromMemorySegment(b, bOffset + i, ORDER);
        combine(x, y).intoMemorySegment(out, outOffset + i, ORDER);
      }
      return true;
    }

    @Override
    public boolean hasMaskedForm() {
      return true;
    }

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
      VectorMask<Float> mask = SPECIES.indexInRange(0, bytes / (SPECIES.elementSize() / 8));
      Vector<Float> x = load(a, aOffset, mask);
      Vector<Float> y = load(b, bOffset, mask);
      combine(x, y).intoMemorySegment(out, outOffset, ORDER, mask);
    }

    /// Only a species of a known primitive loads with a mask.
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Vector<Float> load(MemorySegment from, long offset, VectorMask mask) {
      VectorSpecies species = SPECIES;
      return switch (LANES.carrier()) {
        case BYTE -> (Vector) ByteVector.fromMemorySegment(species, from, offset, ORDER, mask);
        case SHORT -> (Vector) ShortVector.fromMemorySegment(species, from, offset, ORDER, mask);
        case INT -> (Vector) IntVector.fromMemorySegment(species, from, offset, ORDER, mask);
        case LONG -> (Vector) LongVector.fromMemorySegment(species, from, offset, ORDER, mask);
        case FLOAT -> (Vector) FloatVector.fromMemorySegment(species, from, offset, ORDER, mask);
        case DOUBLE -> (Vector) DoubleVector.fromMemorySegment(species, from, offset, ORDER, mask);
      };
    }

    /// The canonical NaN is made here: a vector kept in a field is in an array, which the compiler
    /// reads again after each result that goes to an array of the same primitive.
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Vector<Float> combine(Vector<Float> x, Vector<Float> y) {
      Vector z = x.lanewise(OP, y);
      return switch (LANES.carrier()) {
        case FLOAT -> ((FloatVector) z).blend(Float.NaN, z.compare(VectorOperators.NE, z));
        case DOUBLE ->
            (Vector) ((DoubleVector) z).blend(Double.NaN, z.compare(VectorOperators.NE, z));
        case BYTE, SHORT, INT, LONG -> z;
      };
    }
  }

  /// Makes NaNs canonical on the way from `a` to `out`, which are the same memory. They are looked
  /// for first, in a loop without conditions: where there are none nothing is written.
  static final class CanonicalNans implements VectorLoop {
    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final Carrier CARRIER =
        Specialized.operator(MethodHandles.lookup(), Carrier.class);

    @SuppressWarnings("unchecked") // any one primitive will do for the compiler
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
        found = found.or(nans(SPECIES.fromMemorySegment(a, aOffset + i, ORDER)));
      }
      if (!found.anyTrue()) {
        return true;
      }
      for (int i = 0; i < bytes; i += SPECIES.vectorByteSize()) {
        Vector<Float> x = SPECIES.fromMemorySegment(a, aOffset + i, ORDER);
        canonical(x, nans(x)).intoMemorySegment(out, outOffset + i, ORDER);
      }
      return true;
    }

    private static VectorMask<Float> nans(Vector<Float> x) {
      return x.compare(VectorOperators.NE, x);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Vector<Float> canonical(Vector x, VectorMask nans) {
      return CARRIER == Carrier.FLOAT
          ? ((FloatVector) x).blend(Float.NaN, nans)
          : (Vector) ((DoubleVector) x).blend(Double.NaN, nans);
    }
  }
}
