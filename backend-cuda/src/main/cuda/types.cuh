// The types of elements: raw, as the user has them, and the type in which they are combined. Sizes
// are in bytes; every narrowing of a result rounds to nearest, ties to even, and makes a NaN canonical.
#pragma once

#include "platform.cuh"

// A float that, rounded to a smaller one, gives what the double itself would: of the two floats beside
// it the one whose last bit is set, as the nearest might be a tie.
DEVICE float float_by_odd(double value) {
  float nearest = (float)value;
  if (nearest == value || value != value) return nearest;
  double magnitude = value < 0 ? -value : value;
  u32 bits = float_bits(nearest);
  u32 is_beyond = (double)float_of(bits & 0x7fffffff) > magnitude;
  return float_of((bits - is_beyond) | 1);
}

// Rounds to a sign, an exponent with this bias, so many mantissa bits, at most to `max`.
template <int MANTISSA, int BIAS, u32 MAX>
DEVICE u32 round_float(float value, u32 sign) {
  constexpr u32 NORMAL = (127 + 1 - BIAS) << 23;
  constexpr u32 MAGIC = (127 + 1 - BIAS - MANTISSA + 23) << 23;
  constexpr int DROP = 23 - MANTISSA;
  u32 bits = float_bits(value);
  u32 magnitude = bits & 0x7fffffff;
  u32 rounded;
  if (magnitude < NORMAL) {
    // the sum with a power of two whose last place is the smallest subnormal rounds as wanted
    rounded = float_bits(float_of(magnitude) + float_of(MAGIC)) - MAGIC;
  } else {
    u32 odd = (magnitude >> DROP) & 1;
    rounded = ((magnitude + (1u << (DROP - 1)) - 1 + odd) >> DROP) - ((127u - BIAS) << MANTISSA);
  }
  return (rounded < MAX ? rounded : MAX) | ((bits >> 31) * sign);
}

// A NaN's bits may be any; then they are those of every narrowing.
DEVICE double canonical(double value) { return value == value ? value : double_of(0x7ff8000000000000); }
DEVICE float canonical(float value) { return value == value ? value : float_of(0x7fc00000); }

struct Float64 {
  using Raw = double;
  using Wide = double;
  static DEVICE double widen(double raw) { return raw; }
  static DEVICE double narrow(double wide) { return canonical(wide); }
};

struct Float32 {
  using Raw = float;
  using Wide = float;
  static DEVICE float widen(float raw) { return raw; }
  static DEVICE float narrow(float wide) { return float_of(result_bits(wide)); }
};

struct Float16 {
  using Raw = u16;
  using Wide = float;
#ifdef __CUDACC__
  static DEVICE float widen(u16 raw) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(raw));
    return wide;
  }
  static DEVICE u16 narrow(float wide) {
    u16 raw;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(wide));
    return wide == wide ? raw : 0x7e00;
  }
#else
  static DEVICE float widen(u16 raw) {
    u32 magnitude = (raw & 0x7fffu) << 13;
    float wide = raw & 0x7c00
            && (raw & 0x7c00) == 0x7c00 ? float_of(magnitude | 0x7f800000)
                                        : float_of(magnitude) * float_of((127 + 112) << 23);
    return float_of(float_bits(wide) | (raw & 0x8000u) << 16);
  }
  static DEVICE u16 narrow(float wide) {
    return wide == wide ? (u16)round_float<10, 15, 0x7c00>(wide, 0x8000) : 0x7e00;
  }
#endif
};

struct Bfloat16 {
  using Raw = u16;
  using Wide = float;
  static DEVICE float widen(u16 raw) { return float_of((u32)raw << 16); }
  static DEVICE u16 narrow(float wide) {
    u32 bits = result_bits(wide);
    return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

// Largest value 448, no infinity, one NaN.
struct Float8E4M3 {
  using Raw = u8;
  using Wide = float;
  static DEVICE float widen(u8 raw) {
    u32 magnitude = raw & 0x7fu;
    float wide = float_of(magnitude << 20) * float_of((127 + 120) << 23);
    u32 bits = magnitude == 0x7f ? 0x7fc00000 : float_bits(wide);
    return float_of(bits | (raw & 0x80u) << 24);
  }
  static DEVICE u8 narrow(float wide) {
    return wide == wide ? (u8)round_float<3, 7, 0x7e>(wide, 0x80) : 0x7f;
  }
};

// The upper half of a Float16.
struct Float8E5M2 {
  using Raw = u8;
  using Wide = float;
  static DEVICE float widen(u8 raw) { return Float16::widen((u16)(raw << 8)); }
  static DEVICE u8 narrow(float wide) {
    return wide == wide ? (u8)round_float<2, 15, 0x7c>(wide, 0x80) : 0x7e;
  }
};

// The types above, by the numbers that the API has for them.
enum FloatType : u32 { FLOAT64, FLOAT32, FLOAT16, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 };

// Does something with one of them.
template <class Action>
DEVICE void with_type(FloatType type, Action action) {
  switch (type) {
    case FLOAT64: action(Float64()); break;
    case FLOAT32: action(Float32()); break;
    case FLOAT16: action(Float16()); break;
    case BFLOAT16: action(Bfloat16()); break;
    case FLOAT8_E4M3: action(Float8E4M3()); break;
    case FLOAT8_E5M2: action(Float8E5M2()); break;
  }
}

// Rounds a result of the type's wide type, or of a double, once.
template <class Type>
DEVICE typename Type::Raw rounded(float value) {
  return Type::narrow(value);
}

template <class Type>
DEVICE typename Type::Raw rounded(double value) {
  value = canonical(value); // conversions keep of a NaN what they like
  if constexpr (sizeof(typename Type::Raw) == sizeof(double)) {
    return value;
  } else if constexpr (sizeof(typename Type::Raw) == sizeof(float)) {
    return Type::narrow((float)value);
  } else {
    return Type::narrow(float_by_odd(value));
  }
}

template <class Number, class Unsigned>
struct Integer {
  using Raw = Number;
  using Wide = Number;
  using Modular = Unsigned; // in which sums and products wrap around
  static DEVICE Number widen(Number raw) { return raw; }
  static DEVICE Number narrow(Number wide) { return wide; }
};

using Int64 = Integer<i64, u64>;
using Int32 = Integer<i32, u32>;
using Int16 = Integer<i16, u32>; // wider than int, into which smaller ones would promote
using Int8 = Integer<i8, u32>;
using Uint64 = Integer<u64, u64>;
using Uint32 = Integer<u32, u32>;
using Uint16 = Integer<u16, u32>;
using Uint8 = Integer<u8, u32>;

// What averages of integers are taken in: 64 bits.
template <class Type, class Sum>
struct Widened {
  using Raw = typename Type::Raw;
  using Wide = Sum;
  using Modular = u64;
  static DEVICE Sum widen(Raw raw) { return raw; }
  static DEVICE Raw narrow(Sum wide) { return (Raw)wide; }
};

// The real part first; both are combined in their own type.
template <class Part>
struct Complex {
  struct Raw {
    typename Part::Raw real, imaginary;
  };
  using Wide = Raw;
  static DEVICE Wide widen(Raw raw) { return raw; }
  static DEVICE Raw narrow(Wide wide) {
    return {Part::narrow(wide.real), Part::narrow(wide.imaginary)};
  }
};

// The values of pairs, as numbers that have their order: the keys of core's PairOrder. A value is in
// the low bits of a word; the bits above it count for nothing, and are zero in what is made of a key.
template <int BITS>
struct SignedOrder {
  static DEVICE i64 key(u64 word) { return (i64)(word << (64 - BITS)) >> (64 - BITS); }
  static DEVICE u64 word(i64 key) { return (u64)key << (64 - BITS) >> (64 - BITS); }
  static DEVICE bool is_nan(u64) { return false; }
  static constexpr u64 NAN_WORD = 0;
};

template <int BITS>
struct UnsignedOrder : SignedOrder<BITS> {
  static constexpr u64 SIGN = (u64)1 << 63;
  static DEVICE i64 key(u64 word) { return (i64)((u64)SignedOrder<BITS>::key(word) ^ SIGN); }
  static DEVICE u64 word(i64 key) { return SignedOrder<BITS>::word((i64)((u64)key ^ SIGN)); }
};

// Every magnitude above `LARGEST` is a NaN; −0 is less than 0.
template <int BITS, u64 LARGEST, u64 CANONICAL_NAN>
struct FloatOrder : SignedOrder<BITS> {
  static constexpr u64 MAGNITUDE = ~(u64)0 >> (65 - BITS);
  static constexpr u64 NAN_WORD = CANONICAL_NAN;
  static DEVICE i64 turned(i64 value) { return (i64)((u64)value ^ ((u64)(value >> 63) & MAGNITUDE)); }
  static DEVICE i64 key(u64 word) { return turned(SignedOrder<BITS>::key(word)); }
  static DEVICE u64 word(i64 key) { return SignedOrder<BITS>::word(turned(key)); }
  static DEVICE bool is_nan(u64 word) { return (word & MAGNITUDE) > LARGEST; }
};

using Float64Order = FloatOrder<64, 0x7ff0000000000000, 0x7ff8000000000000>;
using Float32Order = FloatOrder<32, 0x7f800000, 0x7fc00000>;
using Float16Order = FloatOrder<16, 0x7c00, 0x7e00>;
using Bfloat16Order = FloatOrder<16, 0x7f80, 0x7fc0>;
using Float8E4M3Order = FloatOrder<8, 0x7e, 0x7f>;
using Float8E5M2Order = FloatOrder<8, 0x7c, 0x7e>;
