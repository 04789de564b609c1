package org.comm4j.api;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.comm4j.api.DataType.Kind;

/// How a reduction combines two elements: one of the [Predefined] operators or a [UserDefined] one.
///
/// Which operator is legal for which type is the table of `docs/contract.md`, asked by [#supports]
/// and checked before anything is sent. In `ordered` reduction ([Reduction#ORDERED]) every element
/// of a result is the left fold over ranks `0..p-1`, in the [#accumulationType], rounded once.
public sealed interface ReduceOp {
  /// Sum. Integers wrap.
  ReduceOp SUM = Predefined.SUM;

  /// Product. Integers wrap; complex numbers by the textbook formula.
  ReduceOp PRODUCT = Predefined.PRODUCT;

  /// Sum in the accumulation type, then one division by the number of contributions (the ranks; in
  /// a scan those up to this one, in an exclusive one those before it): signed integers toward
  /// zero, unsigned ones unsigned.
  ReduceOp AVERAGE = Predefined.AVERAGE;

  /// Minimum. Floats as [Math#min(double, double)]: NaN wins and −0.0 is less than +0.0.
  ReduceOp MIN = Predefined.MIN;

  /// Maximum. Floats as [Math#max(double, double)]: NaN wins and −0.0 is less than +0.0.
  ReduceOp MAX = Predefined.MAX;

  /// Bitwise and.
  ReduceOp BIT_AND = Predefined.BIT_AND;

  /// Bitwise or.
  ReduceOp BIT_OR = Predefined.BIT_OR;

  /// Bitwise exclusive or.
  ReduceOp BIT_XOR = Predefined.BIT_XOR;

  /// Logical and: nonzero is true, the result is 0 or 1.
  ReduceOp LOGICAL_AND = Predefined.LOGICAL_AND;

  /// Logical or: nonzero is true, the result is 0 or 1.
  ReduceOp LOGICAL_OR = Predefined.LOGICAL_OR;

  /// Logical exclusive or: nonzero is true, the result is 0 or 1.
  ReduceOp LOGICAL_XOR = Predefined.LOGICAL_XOR;

  /// The pair with the smallest value; of equal values the one with the lowest index. Floats
  /// compare as in [#MIN]: NaN is smallest of all.
  ReduceOp MIN_LOC = Predefined.MIN_LOC;

  /// The pair with the largest value; of equal values the one with the lowest index. Floats compare
  /// as in [#MAX]: NaN is largest of all.
  ReduceOp MAX_LOC = Predefined.MAX_LOC;

  /// An operator of the user's own.
  ///
  /// @param name shown in errors and compared between ranks: all ranks must use the same name
  /// @param function combines element by element; see [Function] for what it promises
  /// @return the operator
  static ReduceOp of(String name, Function function) {
    return new UserDefined(name, function);
  }

  /// {@return the operator's name, as errors and the command line show it}
  String name();

  /// {@return whether this operator is defined for elements of `type`}
  ///
  /// @param type the elements' type
  boolean supports(DataType type);

  /// {@return the type in which elements of `type` are combined} 8- and 16-bit floats add and
  /// multiply in FLOAT32; AVERAGE takes integers of 8 to 32 bit in 64 bit; everything else stays in
  /// `type`.
  ///
  /// @param type the elements' type
  DataType accumulationType(DataType type);

  /// The operators that every backend knows.
  enum Predefined implements ReduceOp {
    /// [ReduceOp#SUM].
    SUM,
    /// [ReduceOp#PRODUCT].
    PRODUCT,
    /// [ReduceOp#AVERAGE].
    AVERAGE,
    /// [ReduceOp#MIN].
    MIN,
    /// [ReduceOp#MAX].
    MAX,
    /// [ReduceOp#BIT_AND].
    BIT_AND,
    /// [ReduceOp#BIT_OR].
    BIT_OR,
    /// [ReduceOp#BIT_XOR].
    BIT_XOR,
    /// [ReduceOp#LOGICAL_AND].
    LOGICAL_AND,
    /// [ReduceOp#LOGICAL_OR].
    LOGICAL_OR,
    /// [ReduceOp#LOGICAL_XOR].
    LOGICAL_XOR,
    /// [ReduceOp#MIN_LOC].
    MIN_LOC,
    /// [ReduceOp#MAX_LOC].
    MAX_LOC;

    @Override
    public boolean supports(DataType type) {
      Kind kind = type.kind();
      boolean integer = type.isInteger();
      return switch (this) {
        case SUM, PRODUCT, AVERAGE -> integer || kind == Kind.FLOAT || kind == Kind.COMPLEX;
        case MIN, MAX -> integer || kind == Kind.FLOAT;
        case BIT_AND, BIT_OR, BIT_XOR, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR ->
            integer || kind == Kind.BOOL;
        case MIN_LOC, MAX_LOC -> kind == Kind.PAIR;
      };
    }

    @Override
    public DataType accumulationType(DataType type) {
      return switch (this) {
        case SUM, PRODUCT, AVERAGE ->
            switch (type) {
              case FLOAT16, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 -> DataType.FLOAT32;
              case INT32, INT16, INT8 -> this == AVERAGE ? DataType.INT64 : type;
              case UINT32, UINT16, UINT8 -> this == AVERAGE ? DataType.UINT64 : type;
              default -> type;
            };
        default -> type;
      };
    }
  }

  /// An operator of the user's own, for data in host memory, on backends that have
  /// [Capability#USER_DEFINED_OPERATORS].
  ///
  /// It is applied in rank order, so it need not be commutative, and to elements of the type
  /// itself.
  ///
  /// @param name compared between ranks
  /// @param function what combines the elements
  record UserDefined(String name, Function function) implements ReduceOp {
    /// Checks the arguments.
    public UserDefined {
      Objects.requireNonNull(function, "function");
      Objects.requireNonNull(name, "name");
      if (name.isBlank()) {
        throw new IllegalArgumentException(
            "name: '" + name + "' (expected: a name shown in errors)");
      }
    }

    /// {@return the function, for a backend to call: the library knows when a thread is inside it}
    @Override
    public Function function() {
      return OperatorCalls.marked(function);
    }

    @Override
    public boolean supports(DataType type) {
      return true;
    }

    @Override
    public DataType accumulationType(DataType type) {
      return type;
    }
  }

  /// Combines elements of two segments. It must be associative and pure, give the same bits on
  /// every rank and keep no reference to its arguments. It runs on whichever thread advances the
  /// communicator's operations, never on two at once for one operation, and must not call into the
  /// library. What it throws fails the operation on all ranks.
  @FunctionalInterface
  interface Function {
    /// Replaces each element `a` of `accumulator` by `a ∘ s`, where `s` is its neighbour in
    /// `source`; `a` comes from lower ranks than `s`.
    ///
    /// @param source read only, `count` elements
    /// @param accumulator `count` elements; neither segment is aligned beyond one byte
    /// @param type what the elements are
    /// @param count how many there are, at least 1
    void combine(MemorySegment source, MemorySegment accumulator, DataType type, long count);
  }
}
