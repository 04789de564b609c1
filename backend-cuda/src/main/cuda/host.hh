// The host's side of platform.cuh: blocks and their threads as threads of the host. For tests.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define DEVICE inline
#define NOT_INLINE inline

// A block while it runs.
struct Block {
  explicit Block(u32 threads) : met(threads) {}
  std::barrier<> met;
  std::atomic<bool> all{true}; // once false it stays so: then all threads leave
  alignas(16) u64 shared[64];
};

// Where this thread is.
struct Place {
  Block* block;
  u32 thread, threads, index, blocks;
};
inline thread_local Place place;

DEVICE u32 thread_index() { return place.thread; }
DEVICE u32 thread_count() { return place.threads; }
DEVICE u32 block_index() { return place.index; }
DEVICE u32 block_count() { return place.blocks; }

DEVICE bool all_threads(bool condition) {
  if (!condition) place.block->all = false;
  place.block->met.arrive_and_wait();
  return place.block->all;
}

DEVICE void store_release(u64* address, u64 value) {
  std::atomic_ref(*address).store(value, std::memory_order_release);
}

DEVICE u64 load_acquire(const u64* address) {
  return std::atomic_ref(*(u64*)address).load(std::memory_order_acquire);
}

DEVICE void store_relaxed(u64* address, u64 value) {
  std::atomic_ref(*address).store(value, std::memory_order_relaxed);
}

DEVICE u64 load_relaxed(const u64* address) {
  return std::atomic_ref(*(u64*)address).load(std::memory_order_relaxed);
}

DEVICE u64 replace_zero(u64* address, u64 value) {
  u64 known = 0;
  std::atomic_ref(*address).compare_exchange_strong(known, value);
  return known;
}

DEVICE void fence() { std::atomic_thread_fence(std::memory_order_acq_rel); }

DEVICE u64 clock_ns() {
  return (u64)std::chrono::steady_clock::now().time_since_epoch().count();
}

// Who waits long, as for a rank that does not come, leaves the processors to others.
DEVICE void relax() {
  thread_local u32 count = 0;
  if (++count % 64 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  } else {
    std::this_thread::yield();
  }
}

template <class To, class From>
DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

DEVICE u32 float_bits(float value) { return bits_as<u32>(value); }
DEVICE float float_of(u32 bits) { return bits_as<float>(bits); }
// What operations of the host's give that is no number may have a sign, as on no GPU. Kernels that end
// in an expression, which may give such a NaN on GPUs too, must not rely on it here either.
DEVICE u32 result_bits(float result) {
#ifdef NANS_HAVE_SIGNS
  return (u32)std::min((i32)float_bits(result), 0x7fc00000);
#else
  return result == result ? float_bits(result) : 0x7fc00000;
#endif
}
DEVICE u64 double_bits(double value) { return bits_as<u64>(value); }
DEVICE double double_of(u64 bits) { return bits_as<double>(bits); }

using Kernel = std::function<void(const void*)>;

inline std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> all;
  return all;
}

struct Registration {
  Registration(const char* name, Kernel kernel) { kernels()[name] = std::move(kernel); }
};

// Each kernel has one array at most.
#define SHARED(TYPE, NAME, COUNT)                          \
  static_assert(sizeof(TYPE) * COUNT <= sizeof(Block::shared)); \
  TYPE* NAME = (TYPE*)place.block->shared
#define KERNEL(NAME, PARAMETERS, ...)                                   \
  static const Registration registration_of_##NAME(#NAME, [](const void* parameters) { \
    const PARAMETERS& call = *(const PARAMETERS*)parameters;             \
    __VA_ARGS__;                                                                \
  });
