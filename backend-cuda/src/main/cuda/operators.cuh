// The operators. Each begins with its identity, so that a fold has no first step of its own:
// combining it with a value gives the value's bits.
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
  static DEVICE Wide finish(Wide sum, u32) { return sum; }
};

template <class Type>
struct FloatAverage : FloatSum<Type> {
  using Wide = typename Type::Wide;
  static DEVICE Wide finish(Wide sum, u32 divisor) { return sum / (Wide)divisor; }
};

template <class Type>
struct FloatProduct : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 1; }
  static DEVICE Wide combine(Wide a, Wide b) { return a * b; }
  static DEVICE Wide finish(Wide product, u32) { return product; }
};

// As Java's Math.min: a NaN wins, and −0 is less than 0.
template <class Type>
struct FloatMin : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)float_of(0x7f800000); }
  static DEVICE Wide combine(Wide a, Wide b) {
    return a < b ? a : b < a ? b : a == b ? bits_or(a, b) : a + b;
  }
  static DEVICE Wide finish(Wide least, u32) { return least; }
};

template <class Type>
struct FloatMax : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)float_of(0xff800000); }
  static DEVICE Wide combine(Wide a, Wide b) {
    return a > b ? a : b > a ? b : a == b ? bits_and(a, b) : a + b;
  }
  static DEVICE Wide finish(Wide most, u32) { return most; }
};

template <class Type>
struct IntegerSum : Type {
  using Wide = typename Type::Wide;
  using Modular = typename Type::Modular;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return (Wide)((Modular)a + (Modular)b); }
  static DEVICE Wide finish(Wide sum, u32) { return sum; }
};

// In 64 bits, rounded toward zero.
template <class Type, class Sum>
struct IntegerAverage : IntegerSum<Widened<Type, Sum>> {
  static DEVICE Sum finish(Sum sum, u32 divisor) { return sum / (Sum)divisor; }
};

template <class Type>
struct IntegerProduct : Type {
  using Wide = typename Type::Wide;
  using Modular = typename Type::Modular;
  static DEVICE Wide identity() { return 1; }
  static DEVICE Wide combine(Wide a, Wide b) { return (Wide)((Modular)a * (Modular)b); }
  static DEVICE Wide finish(Wide product, u32) { return product; }
};

// The smallest value of a type is all zeros or the sign alone, the largest its complement.
template <class Type>
struct IntegerMin : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() {
    return (Wide)-1 < 0 ? (Wide)~((u64)1 << (8 * sizeof(Wide) - 1)) : (Wide)-1;
  }
  static DEVICE Wide combine(Wide a, Wide b) { return b < a ? b : a; }
  static DEVICE Wide finish(Wide least, u32) { return least; }
};

template <class Type>
struct IntegerMax : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)~IntegerMin<Type>::identity(); }
  static DEVICE Wide combine(Wide a, Wide b) { return b > a ? b : a; }
  static DEVICE Wide finish(Wide most, u32) { return most; }
};

template <class Type>
struct BitAnd : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return (Wide)-1; }
  static DEVICE Wide combine(Wide a, Wide b) { return a & b; }
  static DEVICE Wide finish(Wide bits, u32) { return bits; }
};

template <class Type>
struct BitOr : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a | b; }
  static DEVICE Wide finish(Wide bits, u32) { return bits; }
};

template <class Type>
struct BitXor : Type {
  using Wide = typename Type::Wide;
  static DEVICE Wide identity() { return 0; }
  static DEVICE Wide combine(Wide a, Wide b) { return a ^ b; }
  static DEVICE Wide finish(Wide bits, u32) { return bits; }
};
