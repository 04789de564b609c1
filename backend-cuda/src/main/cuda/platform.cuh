// What differs between a GPU, for which nvcc compiles the kernels, and the host, for which the tests
// compile them with any C++20 compiler: there a thread of a block is a thread of the host.
#pragma once

#ifdef __CUDACC_RTC__ // at run time, where no header of the host's need be; it knows memcpy
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long;
#else
#include <cstdint>
#include <cstring>
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
#endif

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
#define NOT_INLINE inline __device__ __noinline__

DEVICE u32 thread_index() { return threadIdx.x; }
DEVICE u32 thread_count() { return blockDim.x; }
DEVICE u32 block_index() { return blockIdx.x; }
DEVICE u32 block_count() { return gridDim.x; }

// Waits for the block's threads; whether the condition holds on all of them.
DEVICE bool all_threads(bool condition) { return __syncthreads_and(condition); }

// What this thread wrote, and what it knows others of its block have written, is there for whoever
// acquires the value, on any device.
DEVICE void store_release(u64* address, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

DEVICE u64 load_acquire(const u64* address) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

// Whole and in time, and in no order with others.
DEVICE void store_relaxed(u64* address, u64 value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

DEVICE u64 load_relaxed(const u64* address) {
  u64 value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

// Writes in place of 0, in this rank's own memory; what was there.
DEVICE u64 replace_zero(u64* address, u64 value) {
  return atomicCAS((unsigned long long*)address, 0ull, (unsigned long long)value);
}

// Between what the block has read and written, before a barrier, and what this thread does now.
DEVICE void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

DEVICE u64 clock_ns() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

DEVICE void relax() {}

DEVICE u32 float_bits(float value) { return __float_as_uint(value); }
DEVICE float float_of(u32 bits) { return __uint_as_float(bits); }

// The bits of what an operation has given, a NaN's canonical: to GPUs a sum, product or quotient that
// is none has all bits set but the sign.
DEVICE u32 result_bits(float result) {
  return (u32)min((int)__float_as_uint(result), 0x7fc00000);
}

DEVICE u64 double_bits(double value) { return (u64)__double_as_longlong(value); }
DEVICE double double_of(u64 bits) { return __longlong_as_double((long long)bits); }

// Of a block, as CudaProvider launches them: so that any GPU has the registers for one, and all of
// them, for what threads have on the way.
constexpr u32 MAX_THREADS = 512;

#define SHARED(TYPE, NAME, COUNT) __shared__ TYPE NAME[COUNT]
#define KERNEL(NAME, PARAMETERS, ...)                          \
  extern "C" __global__ void __launch_bounds__(MAX_THREADS, 1) \
      NAME(const __grid_constant__ PARAMETERS call) {          \
    __VA_ARGS__;                                               \
  }

#else
#include "host.hh"
#endif
