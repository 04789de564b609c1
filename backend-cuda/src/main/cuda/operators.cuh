// The operators. Each begins with its identity, so that a fold has no first step of its own:
// combining it with a value gives the value's bits. `finish` ends the fold: it knows an average's
// divisor, and whether there was one contribution alone, which stays as it is.
#pragma once

#include "types.cuh"

DEVICE float bits_or(float a, float b) { return float_of(float_bits(a) | float_bits(b)); }
DEVICE float bits_and(float a, float b) { return float_of(float_bits(a) & float_bits(b)); }
DEVICE double bits_or(double a, double b) { return double_of(double_bits(a) | double_bits(b)); }
DEVICE double bits_and(double a, double b) { return double_of(double_bits(a) & double_bits(b)); }

// −0 is the identity of a sum: 0 would turn −0 into 0.
template <class Type>
struct FloatSum : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)-0.0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a + b; }
  static DEVICE Wide finish(Wide sum, u32, bool) { return sum; }
};

template <class Type>
struct FloatAverage : FloatSum<Type> {
  using Wide = typename Type::Wide;
  static DEVICE Wide finish(Wide sum, u32 divisor, bool) { return sum / (Wide)divisor; }
};

// By its divisor, 1 of a sum: one kernel for both.
template <class Type>
struct FloatSumOrAverage : FloatAverage<Type> {
  using Wide = typename Type::Wide;
  static DEVICE Wide finish(Wide sum, u32 divisor, bool alone) {
    return divisor == 1 ? sum : FloatAverage<Type>::finish(sum, divisor, alone);
  }
};

// The same, with a function of the user's at the epilogue's end. It has the type of the output, `To`,
// and of a value and of its element's index in the whole result makes another value: `of`.
template <class Type, class Function>
struct Expressed : FloatSumOrAverage<Type> {
  using Expression = Function;
};

// Whether it has one.
template <class Operator>
constexpr bool HAS_EXPRESSION = requires { typename Operator::Expression; };

// Whether an epilogue may follow, see call.cuh.
template <class Operator>
constexpr bool HAS_EPILOGUE = HAS_EXPRESSION<Operator>;
template <class Type>
constexpr bool HAS_EPILOGUE<FloatSum<Type>> = true;
template <class Type>
constexpr bool HAS_EPILOGUE<FloatAverage<Type>> = true;
template <class Type>
constexpr bool HAS_EPILOGUE<FloatSumOrAverage<Type>> = true;

template <class Type>
struct FloatProduct : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 1; }
  static DEVICE Wide combine(Wide a, Wide b) { return a * b; }
  static DEVICE Wide finish(Wide product, u32, bool) { return product; }
};

// As Java's Math.min: a NaN wins, and −0 is less than 0.
template <class Type>
struct FloatMin : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)float_of(0x7f800000); }
  static DEVICE Wide combine(Wide a, Wide b) {
    return a < b ? a : b < a ? b : a == b ? bits_or(a, b) : a + b;
  }
  static DEVICE Wide finish(Wide least, u32, bool) { return least; }
};

template <class Type>
struct FloatMax : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)float_of(0xff800000); }
  static DEVICE Wide combine(Wide a, Wide b) {
    return a > b ? a : b > a ? b : a == b ? bits_and(a, b) : a + b;
  }
  static DEVICE Wide finish(Wide most, u32, bool) { return most; }
};

template <class Type>
struct IntegerSum : Type {
  using Wide = typename Type::Wide;
  using Modular = typename Type::Modular;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return (Wide)((Modular)a + (Modular)b); }
  static DEVICE Wide finish(Wide sum, u32, bool) { return sum; }
};

// In 64 bits, rounded toward zero.
template <class Type, class Sum>
struct IntegerAverage : IntegerSum<Widened<Type, Sum>> {
  static DEVICE Sum finish(Sum sum, u32 divisor, bool) { return sum / (Sum)divisor; }
};

template <class Type>
struct IntegerProduct : Type {
  using Wide = typename Type::Wide;
  using Modular = typename Type::Modular;
  static DEVICE Wide identity() { return 1; }
  static DEVICE Wide combine(Wide a, Wide b) { return (Wide)((Modular)a * (Modular)b); }
  static DEVICE Wide finish(Wide product, u32, bool) { return product; }
};

// The smallest value of a type is all zeros or the sign alone, the largest its complement.
template <class Type>
struct IntegerMin : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() {
    return (Wide)-1 < 0 ? (Wide)~((u64)1 << (8 * sizeof(Wide) - 1)) : (Wide)-1;
  }
  static DEVICE Wide combine(Wide a, Wide b) { return b < a ? b : a; }
  static DEVICE Wide finish(Wide least, u32, bool) { return least; }
};

template <class Type>
struct IntegerMax : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)~IntegerMin<Type>::identity(); }
  static DEVICE Wide combine(Wide a, Wide b) { return b > a ? b : a; }
  static DEVICE Wide finish(Wide most, u32, bool) { return most; }
};

template <class Type>
struct BitAnd : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)-1; }
  static DEVICE Wide combine(Wide a, Wide b) { return a & b; }
  static DEVICE Wide finish(Wide bits, u32, bool) { return bits; }
};

template <class Type>
struct BitOr : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a | b; }
  static DEVICE Wide finish(Wide bits, u32, bool) { return bits; }
};

template <class Type>
struct BitXor : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a ^ b; }
  static DEVICE Wide finish(Wide bits, u32, bool) { return bits; }
};

// Nonzero is true. What is combined is zero or not, and only at the end 0 or 1.
template <class Type>
struct Logical : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide finish(Wide truth, u32, bool alone) { return alone ? truth : truth != 0; }
};

template <class Type>
struct LogicalAnd : Logical<Type> {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 1; }
  static DEVICE Wide combine(Wide a, Wide b) { return a == 0 ? 0 : b; }
};

template <class Type>
struct LogicalOr : Logical<Type> {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a | b; }
};

template <class Type>
struct LogicalXor : Logical<Type> {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a == 0 ? b : b == 0 ? a : 0; }
};

// What a sum or an average does to floats, to both parts of complex numbers.
template <class Operator>
struct OfParts : Complex<Operator> {
  using Wide = typename Complex<Operator>::Wide;
  static DEVICE Wide identity() { return {Operator::identity(), Operator::identity()}; }
  static DEVICE Wide combine(Wide a, Wide b) {
    return {Operator::combine(a.real, b.real), Operator::combine(a.imaginary, b.imaginary)};
  }
  static DEVICE Wide finish(Wide parts, u32 divisor, bool alone) {
    return {Operator::finish(parts.real, divisor, alone),
            Operator::finish(parts.imaginary, divisor, alone)};
  }
};

// By the textbook formula, in which nothing is an identity: 1 would turn zeros and infinities.
template <class Part>
struct ComplexProduct : Complex<Part> {
  using Number = typename Complex<Part>::Wide;
  struct Wide {
    Number product;
    bool is_empty;
  };
  static DEVICE Wide widen(Number raw) { return {raw, false}; }
  static DEVICE Wide identity() { return {{0, 0}, true}; }
  static DEVICE Wide combine(Wide left, Wide right) {
    Number a = left.product, b = right.product;
    Number product = {a.real * b.real - a.imaginary * b.imaginary,
                      a.real * b.imaginary + a.imaginary * b.real};
    return left.is_empty ? right : Wide{product, false};
  }
  // Of one rank there is no product, and a NaN that it has is still its own.
  static DEVICE Number finish(Wide all, u32, bool) {
    return {canonical(all.product.real), canonical(all.product.imaginary)};
  }
};

// The pair that comes first: by its value, then by its index, and before all values a NaN. The
// identity comes last.
template <class Order, bool LARGEST_FIRST>
struct First {
  struct Raw {
    u64 word;
    i64 index;
  };
  struct Wide {
    i64 key, index;
  };
  static constexpr i64 LAST = (i64)(~(u64)0 >> 1);
  static constexpr i64 NAN_KEY = -LAST - 1; // no number's
  static DEVICE i64 turned(i64 key) { return LARGEST_FIRST ? ~key : key; }
  static DEVICE Wide widen(Raw raw) {
    return {Order::is_nan(raw.word) ? NAN_KEY : turned(Order::key(raw.word)), raw.index};
  }
  static DEVICE Raw narrow(Wide wide) {
    bool is_nan = Order::NAN_WORD != 0 && wide.key == NAN_KEY;
    return {is_nan ? Order::NAN_WORD : Order::word(turned(wide.key)), wide.index};
  }
  static DEVICE Wide identity() { return {LAST, LAST}; }
  static DEVICE Wide combine(Wide a, Wide b) {
    return b.key < a.key || (b.key == a.key && b.index < a.index) ? b : a;
  }
  static DEVICE Wide finish(Wide first, u32, bool) { return first; }
};

template <class Order>
using MinLoc = First<Order, false>;

template <class Order>
using MaxLoc = First<Order, true>;
