// The kernels: templates over an operator, which knows its type.
#pragma once

#include "call.cuh"
#include "operators.cuh"

constexpr u32 UNIT_BYTES = 16; // what a thread loads at once

struct alignas(UNIT_BYTES) Unit {
  u32 words[4];
};

template <class Operator>
constexpr u32 UNIT = UNIT_BYTES / sizeof(typename Operator::Raw); // elements

// From how many ranks a thread loads before it folds what it has loaded.
constexpr u32 RANKS_AT_ONCE = 2;

DEVICE u64 grid_thread() { return (u64)block_index() * thread_count() + thread_index(); }
DEVICE u64 grid_threads() { return (u64)block_count() * thread_count(); }

DEVICE u64 units(u64 count, u64 unit) { return (count + unit - 1) / unit; }

DEVICE bool is_aligned(u64 address) { return address % UNIT_BYTES == 0; }

// The words of a unit in another order, since registers have no index: the first ones become the last.
template <u32 WORDS>
DEVICE Unit rotated(Unit unit) {
  Unit result;
#pragma unroll
  for (u32 i = 0; i < 4; i++) result.words[i] = unit.words[(i + WORDS) % 4];
  return result;
}

// Up to eight bytes, as far as there are so many.
DEVICE u64 load_bytes(u64 address, u64 bytes) {
  if (bytes >= WORD_BYTES && address % WORD_BYTES == 0) return *(const u64*)address;
  u64 word = 0;
#pragma unroll 1
  for (u32 i = 0; i < WORD_BYTES && i < bytes; i++) word |= (u64)((const u8*)address)[i] << (8 * i);
  return word;
}

DEVICE void store_bytes(u64 address, u64 bytes, u64 word) {
  if (bytes >= WORD_BYTES && address % WORD_BYTES == 0) {
    *(u64*)address = word;
    return;
  }
#pragma unroll 1
  for (u32 i = 0; i < WORD_BYTES && i < bytes; i++) ((u8*)address)[i] = (u8)(word >> (8 * i));
}

// The left fold of some units over all ranks; they are so many bytes apart.
template <class Operator, u32 UNITS>
DEVICE void fold_units(const Call& call, const u64* data, u64 offset, u64 stride, Unit (&units)[UNITS]) {
  using Raw = typename Operator::Raw;
  using Wide = typename Operator::Wide;
  constexpr u32 N = UNIT<Operator>;
  constexpr u32 R = RANKS_AT_ONCE;
  Wide folded[UNITS][N];
#pragma unroll
  for (u32 u = 0; u < UNITS; u++) {
#pragma unroll
    for (u32 i = 0; i < N; i++) folded[u][i] = Operator::identity();
  }
#pragma unroll 1
  for (u32 base = 0; base < call.ranks; base += R) {
    Unit loaded[R][UNITS];
#pragma unroll
    for (u32 r = 0; r < R; r++) {
      if (base + r < call.ranks) {
#pragma unroll
        for (u32 u = 0; u < UNITS; u++) {
          loaded[r][u] = *(const Unit*)(data[base + r] + offset + u * stride);
        }
      }
    }
#pragma unroll
    for (u32 r = 0; r < R; r++) {
      if (base + r < call.ranks) {
#pragma unroll
        for (u32 u = 0; u < UNITS; u++) {
          Raw raw[N];
          memcpy(raw, &loaded[r][u], UNIT_BYTES);
#pragma unroll
          for (u32 i = 0; i < N; i++) {
            folded[u][i] = Operator::combine(folded[u][i], Operator::widen(raw[i]));
          }
        }
      }
    }
  }
#pragma unroll
  for (u32 u = 0; u < UNITS; u++) {
    Raw result[N];
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      result[i] = Operator::narrow(Operator::finish(folded[u][i], call.divisor, call.ranks == 1));
    }
    memcpy(&units[u], result, UNIT_BYTES);
  }
}

// The same of one element, wherever it lies.
template <class Operator>
DEVICE typename Operator::Raw fold_element(const Call& call, const u64* data, u64 index) {
  using Raw = typename Operator::Raw;
  auto folded = Operator::identity();
#pragma unroll 1
  for (u32 rank = 0; rank < call.ranks; rank++) {
    folded = Operator::combine(folded, Operator::widen(((const Raw*)data[rank])[index]));
  }
  return Operator::narrow(Operator::finish(folded, call.divisor, call.ranks == 1));
}

// Stores what a thread copies, in a place that can have any alignment.
template <class Raw>
struct Target {
  static constexpr u32 UNITS_AT_ONCE = 8; // on the way to a thread, where it has so many: memory is far away
  u64 address;
  DEVICE u64 alignment() const { return address; } // units go where it is a multiple of theirs
  DEVICE void put_unit(u64 unit, Unit value) { ((Unit*)address)[unit] = value; }
  DEVICE void put(u64 index, Raw value) { ((Raw*)address)[index] = value; }
  DEVICE void end_of_piece() {}
};

// Elements that a thread loads or stores at once, or, where they are more than that takes, one by one.
template <class Raw, u32 COUNT>
struct alignas(COUNT * sizeof(Raw) < UNIT_BYTES ? COUNT * sizeof(Raw) : UNIT_BYTES) Pack {
  Raw elements[COUNT];
};

// The epilogue of a thread's results, piece by piece: of each piece all elements, in their order.
template <class Operator>
class Finish {
  using Raw = typename Operator::Raw;

 public:
  // Pieces have so many elements; piece i is the work of thread i modulo all threads. The first of all
  // begins at this element of the output.
  DEVICE Finish(const Call& call, u64 first, u32 piece) : epilogue(call.epilogue) {
    if constexpr (HAS_EXPRESSION<Operator>) {
      index = epilogue.first + first + grid_thread() * piece;
      index_step = (grid_threads() - 1) * piece;
    }
    if (is_wanted() && epilogue.bias_count != 0) {
      at = (epilogue.first + first + grid_thread() * piece) % epilogue.bias_count;
      step = (grid_threads() - 1) * piece % epilogue.bias_count;
    }
  }

  DEVICE bool is_wanted() const { return HAS_EPILOGUE<Operator> && epilogue.is_wanted != 0; }

  // The next results. To: what the output has; the steps are in the wider of both. Step by step for
  // all of them: all threads ask alike what is wanted.
  template <class To, u32 COUNT>
  DEVICE Pack<typename To::Raw, COUNT> apply(const Raw (&results)[COUNT],
                                             Pack<typename To::Raw, COUNT> residuals) {
    if constexpr (HAS_EPILOGUE<Operator>) {
      using Wide = decltype(typename Operator::Wide() + typename To::Wide());
      Wide values[COUNT];
#pragma unroll
      for (u32 i = 0; i < COUNT; i++) values[i] = (Wide)Operator::widen(results[i]) * factor<Wide>();
      if (epilogue.bias_count != 0) add<To>(values, next_biases<typename To::Raw, COUNT>());
      if (epilogue.residual != 0) add<To>(values, residuals);
      if constexpr (HAS_EXPRESSION<Operator>) {
#pragma unroll
        for (u32 i = 0; i < COUNT; i++) { // of a NaN it may give any
          values[i] = canonical(Operator::Expression::of(values[i], (i64)(index + i)));
        }
        index += COUNT;
      }
#pragma unroll
      for (u32 i = 0; i < COUNT; i++) residuals.elements[i] = rounded<To>(values[i]);
    }
    return residuals;
  }

  DEVICE void end_of_piece() {
    if (is_wanted()) advance(step);
    if constexpr (HAS_EXPRESSION<Operator>) index += index_step;
  }

 private:
  template <class Wide>
  DEVICE Wide factor() const {
    if constexpr (sizeof(Wide) == sizeof(float)) return epilogue.factor32;
    return epilogue.factor;
  }

  template <class To, class Wide, u32 COUNT>
  static DEVICE void add(Wide (&values)[COUNT], const Pack<typename To::Raw, COUNT>& others) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) values[i] = values[i] + (Wide)To::widen(others.elements[i]);
  }

  // Loaded at once where they are together and begin where a thread can.
  template <class To, u32 COUNT>
  DEVICE Pack<To, COUNT> next_biases() {
    const To* next = (const To*)epilogue.bias + at;
    if (at + COUNT <= epilogue.bias_count && (u64)next % alignof(Pack<To, COUNT>) == 0) {
      advance(COUNT);
      return *(const Pack<To, COUNT>*)next;
    }
    Pack<To, COUNT> biases;
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) {
      biases.elements[i] = ((const To*)epilogue.bias)[at];
      advance(1);
    }
    return biases;
  }

  DEVICE void advance(u64 elements) {
    at += elements;
    if (at >= epilogue.bias_count) at -= epilogue.bias_count;
  }

  const Epilogue& epilogue;
  u64 at = 0, step = 0; // in the bias; from one piece of the thread to its next
  u64 index = 0, index_step = 0; // in the whole result, for an expression
};

// This rank's output from an element on, where a thread stores its results after the epilogue.
template <class Operator>
class Output {
  using Raw = typename Operator::Raw;
  static constexpr u32 N = UNIT<Operator>;

 public:
  static constexpr u32 UNITS_AT_ONCE = N < 16 ? 8 : 2; // with many elements the code gets long

  // Pieces are as `Finish` has them.
  DEVICE Output(const Call& call, u64 first, u32 piece)
      : finish(call, first, piece),
        target{call.output + first * sizeof(Raw)},
        residual(call.epilogue.residual == 0 ? 0 : call.epilogue.residual + first * sizeof(Raw)) {}

  DEVICE u64 alignment() const { return target.alignment() | (finish.is_wanted() ? residual : 0); }

  DEVICE void put_unit(u64 unit, Unit result) {
    if (finish.is_wanted()) result = finished(result, unit);
    target.put_unit(unit, result);
  }

  DEVICE void put(u64 index, Raw result) {
    if (finish.is_wanted()) {
      Pack<Raw, 1> other = {};
      if (residual != 0) other.elements[0] = ((const Raw*)residual)[index];
      result = finish.template apply<Operator>({result}, other).elements[0];
    }
    target.put(index, result);
  }

  // The elements of a word, of which the output has the first `count`.
  template <u32 COUNT>
  DEVICE void put_word(u64 word, Raw (&results)[COUNT], u64 count) {
    if (finish.is_wanted()) {
      Pack<Raw, COUNT> others = {};
#pragma unroll
      for (u32 i = 0; i < COUNT; i++) {
        u64 index = word * COUNT + i;
        if (residual != 0 && index < count) others.elements[i] = ((const Raw*)residual)[index];
      }
      others = finish.template apply<Operator>(results, others);
      memcpy(results, &others, sizeof results);
    }
    u64 value;
    memcpy(&value, results, WORD_BYTES);
    u64 at = word * WORD_BYTES;
    store_bytes(target.address + at, count * sizeof(Raw) - at, value);
  }

  DEVICE void end_of_piece() { finish.end_of_piece(); }

 private:
  // Some elements at once.
  DEVICE Unit finished(Unit result, u64 unit) {
    constexpr u32 AT_ONCE = N <= 8 ? N : 4;
    constexpr u32 WORDS = AT_ONCE * sizeof(Raw) / sizeof(u32);
    Unit others = {};
    if (residual != 0) others = ((const Unit*)residual)[unit];
#pragma unroll 1
    for (u32 done = 0; done < N; done += AT_ONCE) {
      Raw raw[AT_ONCE];
      Pack<Raw, AT_ONCE> other;
      memcpy(raw, &result, sizeof raw);
      memcpy(&other, &others, sizeof other);
      other = finish.template apply<Operator>(raw, other);
      memcpy(&result, &other, sizeof other);
      result = rotated<WORDS>(result);
      others = rotated<WORDS>(others);
    }
    return result;
  }

  Finish<Operator> finish;
  Target<Raw> target;
  u64 residual;
};

// The same where the output has another floating-point type than the results, which the epilogue
// says: one kernel has all of them, and asks once for a unit, where all threads go the same way.
template <class Operator>
class CastOutput {
  using Raw = typename Operator::Raw;
  static constexpr u32 N = UNIT<Operator>;
  static constexpr u32 AT_ONCE = N < 4 ? N : 4; // elements, of which a thread stores 2 to 16 bytes at once

  template <class To>
  using Casts = Pack<typename To::Raw, AT_ONCE>;

 public:
  static constexpr u32 UNITS_AT_ONCE = N < 16 ? 4 : 2; // fewer, with many types

  // Pieces are as `Finish` has them.
  DEVICE CastOutput(const Call& call, u64 first, u32 piece)
      : finish(call, first, piece), type((FloatType)call.epilogue.type) {
    with_output_type([&]<class To>(To) {
      output = call.output + first * sizeof(typename To::Raw);
      residual = call.epilogue.residual;
      if (residual != 0) residual += first * sizeof(typename To::Raw);
      is_even = (output | residual) % alignof(Casts<To>) == 0;
    });
  }

  DEVICE u64 alignment() const { return is_even ? 0 : 1; }

  DEVICE void put_unit(u64 unit, Unit result) {
    with_output_type([&]<class To>(To) {
#pragma unroll 1
      for (u32 done = 0; done < N; done += AT_ONCE) {
        u64 pack = (unit * N + done) / AT_ONCE;
        Raw raw[AT_ONCE];
        Casts<To> others = {};
        if (residual != 0) others = ((const Casts<To>*)residual)[pack];
        memcpy(raw, &result, sizeof raw);
        ((Casts<To>*)output)[pack] = finish.template apply<To>(raw, others);
        result = rotated<sizeof raw / sizeof(u32)>(result);
      }
    });
  }

  DEVICE void put(u64 index, Raw result) {
    with_output_type([&]<class To>(To) { put<To>(index, result); });
  }

  template <u32 COUNT>
  DEVICE void put_word(u64 word, const Raw (&results)[COUNT], u64 count) {
    with_output_type([&]<class To>(To) {
#pragma unroll
      for (u32 i = 0; i < COUNT; i++) {
        u64 index = word * COUNT + i;
        if (index < count) put<To>(index, results[i]);
      }
    });
  }

  DEVICE void end_of_piece() { finish.end_of_piece(); }

 private:
  // Does something with the output's type. An expression is compiled for one.
  template <class Action>
  DEVICE void with_output_type(Action action) {
    if constexpr (HAS_EXPRESSION<Operator>) {
      action(typename Operator::Expression::To());
    } else {
      with_type(type, action);
    }
  }

  template <class To>
  DEVICE void put(u64 index, Raw result) {
    using Cast = typename To::Raw;
    Pack<Cast, 1> other = {};
    if (residual != 0) other.elements[0] = ((const Cast*)residual)[index];
    ((Cast*)output)[index] = finish.template apply<To>({result}, other).elements[0];
  }

  Finish<Operator> finish;
  FloatType type;
  u64 output, residual;
  bool is_even; // all addresses of packs are what a thread can load and store at once
};

// Reduces `count` elements from element `from` of all ranks' data on, to the output and, if there is
// one, as they are to a copy. Unit i is the work of thread i modulo all threads, whatever the
// alignment.
template <class Operator, class To>
DEVICE void fold(const Call& call, const u64* data, u64 from, u64 count, To output, u64 copy) {
  using Raw = typename Operator::Raw;
  constexpr u32 N = UNIT<Operator>;
  constexpr u32 MOST = HAS_EPILOGUE<Operator> ? 4 : 2; // as sums and their epilogues take time
  constexpr u32 MANY = To::UNITS_AT_ONCE < MOST ? To::UNITS_AT_ONCE : MOST;
  u64 addresses = output.alignment() | copy;
  for (u32 rank = 0; rank < call.ranks; rank++) addresses |= data[rank] + from * sizeof(Raw);
  u64 whole = is_aligned(addresses) ? count / N : 0; // units
  u64 stride = grid_threads();
  auto fold_some = [&]<u32 UNITS>(Unit (&results)[UNITS], u64 unit) {
    fold_units<Operator>(call, data, from * sizeof(Raw) + unit * UNIT_BYTES, stride * UNIT_BYTES, results);
#pragma unroll
    for (u32 u = 0; u < UNITS; u++) {
      if (copy != 0) ((Unit*)copy)[unit + u * stride] = results[u];
      output.put_unit(unit + u * stride, results[u]);
      output.end_of_piece();
    }
  };
  u64 unit = grid_thread();
#pragma unroll 1
  for (; unit + (MANY - 1) * stride < whole; unit += MANY * stride) {
    Unit results[MANY];
    fold_some(results, unit);
  }
#pragma unroll 1
  for (; unit < units(count, N); unit += stride) {
    if (unit < whole) {
      Unit results[1];
      fold_some(results, unit);
      continue;
    }
#pragma unroll 1
    for (u64 i = unit * N; i < count && i < (unit + 1) * N; i++) {
      Raw result = fold_element<Operator>(call, data, from + i);
      if (copy != 0) ((Raw*)copy)[i] = result;
      output.put(i, result);
    }
    output.end_of_piece();
  }
}

// Copies elements; unit i is the work of the thread whose it is in `fold`.
template <class Raw, class To>
DEVICE void copy(u64 from, To to, u64 count) {
  constexpr u32 N = UNIT_BYTES / sizeof(Raw);
  constexpr u32 MANY = To::UNITS_AT_ONCE;
  u64 whole = is_aligned(from | to.alignment()) ? count / N : 0; // units
  u64 stride = grid_threads();
  auto copy_some = [&]<u32 UNITS>(Unit (&loaded)[UNITS], u64 unit) {
#pragma unroll
    for (u32 u = 0; u < UNITS; u++) loaded[u] = ((const Unit*)from)[unit + u * stride];
#pragma unroll
    for (u32 u = 0; u < UNITS; u++) {
      to.put_unit(unit + u * stride, loaded[u]);
      to.end_of_piece();
    }
  };
  u64 unit = grid_thread();
#pragma unroll 1
  for (; unit + (MANY - 1) * stride < whole; unit += MANY * stride) {
    Unit loaded[MANY];
    copy_some(loaded, unit);
  }
#pragma unroll 1
  for (; unit < units(count, N); unit += stride) {
    if (unit < whole) {
      Unit loaded[1];
      copy_some(loaded, unit);
      continue;
    }
#pragma unroll 1
    for (u64 i = unit * N; i < count && i < (unit + 1) * N; i++) to.put(i, ((const Raw*)from)[i]);
    to.end_of_piece();
  }
}

// The rank to begin with, so that not all read from the same one at the same time.
DEVICE u32 turned(const Call& call, u32 i) {
  u32 rank = call.rank + i;
  return rank < call.ranks ? rank : rank - call.ranks;
}

// Where the part of a rank begins: parts are whole units, and the last one has what is left.
DEVICE u64 part(u64 count, u64 unit, u32 rank, u32 ranks) {
  return rank == ranks ? count : count / unit * rank / ranks * unit;
}

// Fetches what the others have reduced, each its part.
template <template <class> class To, class Operator>
DEVICE void collect_parts(const Call& call, u64 scratch) {
  using Raw = typename Operator::Raw;
#pragma unroll 1
  for (u32 i = 1; i < call.ranks; i++) {
    u32 peer = turned(call, i);
    u64 begin = part(call.count, UNIT<Operator>, peer, call.ranks);
    u64 end = part(call.count, UNIT<Operator>, peer + 1, call.ranks);
    To<Operator> output(call, begin, UNIT<Operator>);
    copy<Raw>(call.windows[peer] + scratch, output, end - begin);
  }
}

// In one stage each rank reads everybody's data and reduces what it wants of it: all (all-reduce),
// its part (reduce-scatter), all or nothing (reduce). It writes as it reads, so where all want all the
// output must not be what the others read.
//
// In two stages, an all-reduce, each reduces its part, for itself and into its scratch, and fetches
// the others' parts. When all have met in the middle nobody reads an input any more; before, each
// part is written only by who alone reads it, so the output may be the input.
//
// To: where results go, Output or CastOutput.
template <template <class> class To, class Operator>
DEVICE void reduce(const Call& call) {
  SHARED(u64, data, MAX_RANKS);
  if (!enter(call, data)) return;
  bool whole = call.stages == 1;
  u64 scratch = call.scratch + (call.number & 1) * call.scratch_bytes;
  u64 from = whole ? call.from : part(call.count, UNIT<Operator>, call.rank, call.ranks);
  u64 to = whole ? call.from + call.count
                 : part(call.count, UNIT<Operator>, call.rank + 1, call.ranks);
  To<Operator> output(call, whole ? 0 : from, UNIT<Operator>);
  fold<Operator>(call, data, from, to - from, output, whole ? 0 : call.windows[call.rank] + scratch);
  Pass pass = whole ? READ : REDUCED;
  if (!announce(call, pass) || (whole && !call.wait_for_readers)) return;
  if (!await_all(call, pass) || whole) return;
  collect_parts<To, Operator>(call, scratch);
  are_all_there(call);
}

// Tells all peers what this rank calls, and looks what they do; for one thread of the grid.
DEVICE bool agree_by_lines(const Call& call) {
  for (u32 i = 0; i < call.ranks; i++) {
    store_word(call, lines(call, turned(call, i), call.rank), call.digest);
  }
  bool well = true;
  for (u32 rank = 0; rank < call.ranks; rank++) {
    const u64* theirs = lines(call, call.rank, rank);
    well = wait(call, rank, well, [&] {
      return is_flagged(call, load_relaxed(theirs)) && is_flagged(call, load_relaxed(theirs + 1));
    });
    if (well && disagrees(call, rank)) {
      leave_because(call, MISMATCH, rank);
      well = false;
    }
  }
  return well;
}

// An all-reduce of little data, but some: each rank writes its data into everybody's window, each four
// bytes together with a flag, and before it what it calls. No other sign is waited for: a store of
// eight bytes is whole, so who sees the flag has the data. Flags are the low half of the call's
// number; the host clears the lines before these come again. The output may be the input.
template <template <class> class To, class Operator>
DEVICE void low_latency(const Call& call) {
  using Raw = typename Operator::Raw;
  using Wide = typename Operator::Wide;
  constexpr u32 N = WORD_BYTES / sizeof(Raw);
  if (is_broken(call)) return;
  u64 bytes = call.count * sizeof(Raw);
  u64 words = units(bytes, WORD_BYTES);
  u64 input = call.bases[call.rank] + call.input;
  for (u64 word = grid_thread(); word < words; word += grid_threads()) {
    u64 value = load_bytes(input + word * WORD_BYTES, bytes - word * WORD_BYTES);
    for (u32 i = 0; i < call.ranks; i++) {
      store_word(call, lines(call, turned(call, i), call.rank) + 2 * (1 + word), value);
    }
  }
  if (grid_thread() == 0 && !agree_by_lines(call)) return;
  To<Operator> output(call, 0, N);
  for (u64 word = grid_thread(); word < words; word += grid_threads()) {
    Wide folded[N];
#pragma unroll
    for (u32 i = 0; i < N; i++) folded[i] = Operator::identity();
    bool well = true;
#pragma unroll 1
    for (u32 rank = 0; rank < call.ranks; rank++) {
      const u64* theirs = lines(call, call.rank, rank) + 2 * (1 + word);
      u64 low, high;
      well = wait(call, rank, well, [&] {
        low = load_relaxed(theirs);
        high = load_relaxed(theirs + 1);
        return is_flagged(call, low) && is_flagged(call, high);
      });
      u64 value = word_of(low, high);
      Raw raw[N];
      memcpy(raw, &value, WORD_BYTES);
#pragma unroll
      for (u32 i = 0; i < N; i++) {
        folded[i] = Operator::combine(folded[i], Operator::widen(raw[i]));
      }
    }
    if (!well) return; // no thread waits for another of its block
    Raw result[N];
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      result[i] = Operator::narrow(Operator::finish(folded[i], call.divisor, call.ranks == 1));
    }
    output.put_word(word, result, call.count);
    output.end_of_piece();
  }
}

// The epilogue alone, of results that are in this device's memory or the host's.
template <template <class> class To, class Operator>
DEVICE void finish_results(const Call& call) {
  copy<typename Operator::Raw>(call.input, To<Operator>(call, 0, UNIT<Operator>), call.count);
}

// Fetches from each rank what this rank gets of it: all-gather, gather, broadcast, scatter,
// all-to-all, also their V-forms.
DEVICE void fetch_parts(const Copy& it) {
  const Call& call = it.call;
  SHARED(u64, data, MAX_RANKS);
  if (!enter(call, data)) return;
#pragma unroll 1
  for (u32 i = 0; i < call.ranks; i++) {
    u32 peer = turned(call, i);
    u64 from = data[peer] + it.from[peer];
    u64 to = call.output + it.to[peer];
    u64 bytes = it.bytes[peer];
    if ((from | to | bytes) % 4 == 0) {
      copy<u32>(from, Target<u32>{to}, bytes / 4);
    } else {
      copy<u8>(from, Target<u8>{to}, bytes);
    }
  }
  leave(call);
}

// All have come.
DEVICE void meet_all(const Call& call) {
  SHARED(u64, data, MAX_RANKS);
  enter(call, data);
}

#define REDUCTION(OP, TYPE, ...) \
  KERNEL(reduce_##OP##_##TYPE, Call, reduce<Output, __VA_ARGS__>(call))

// Also of little data: elements of at most a word.
#define REDUCTIONS(OP, TYPE, ...)      \
  REDUCTION(OP, TYPE, __VA_ARGS__) \
  KERNEL(low_latency_##OP##_##TYPE, Call, low_latency<Output, __VA_ARGS__>(call))

// What may have an epilogue, with an output of another floating-point type.
#define CASTS(TYPE, CLASS) \
  KERNEL(reduce_##TYPE##_cast, Call, reduce<CastOutput, FloatSumOrAverage<CLASS>>(call)) \
  KERNEL(low_latency_##TYPE##_cast, Call, low_latency<CastOutput, FloatSumOrAverage<CLASS>>(call))

// What ends in an expression, by itself too; see Expression.java, which writes what is compiled.
#define EXPRESSION(TO, CLASS, FUNCTION)                                                      \
  KERNEL(reduce_expression, Call, reduce<TO, Expressed<CLASS, FUNCTION>>(call))             \
  KERNEL(low_latency_expression, Call, low_latency<TO, Expressed<CLASS, FUNCTION>>(call))   \
  KERNEL(finish_expression, Call, finish_results<TO, Expressed<CLASS, FUNCTION>>(call))

#define FLOATS(TYPE, CLASS)                         \
  REDUCTIONS(sum, TYPE, FloatSum<CLASS>)            \
  REDUCTIONS(average, TYPE, FloatAverage<CLASS>)    \
  REDUCTIONS(product, TYPE, FloatProduct<CLASS>)    \
  REDUCTIONS(min, TYPE, FloatMin<CLASS>)            \
  REDUCTIONS(max, TYPE, FloatMax<CLASS>)

#define ORDERED(TYPE, CLASS, SUM)                   \
  REDUCTIONS(average, TYPE, IntegerAverage<CLASS, SUM>) \
  REDUCTIONS(min, TYPE, IntegerMin<CLASS>)          \
  REDUCTIONS(max, TYPE, IntegerMax<CLASS>)

// Of unsigned integers too, which have the same bits.
#define MODULAR(TYPE, CLASS)                        \
  REDUCTIONS(sum, TYPE, IntegerSum<CLASS>)          \
  REDUCTIONS(product, TYPE, IntegerProduct<CLASS>)  \
  REDUCTIONS(bit_and, TYPE, BitAnd<CLASS>)          \
  REDUCTIONS(bit_or, TYPE, BitOr<CLASS>)            \
  REDUCTIONS(bit_xor, TYPE, BitXor<CLASS>)

#define LOGICAL(TYPE, CLASS)                         \
  REDUCTIONS(logical_and, TYPE, LogicalAnd<CLASS>)  \
  REDUCTIONS(logical_or, TYPE, LogicalOr<CLASS>)    \
  REDUCTIONS(logical_xor, TYPE, LogicalXor<CLASS>)

#define COMPLEX(SIZED, TYPE, PART)                         \
  SIZED(sum, TYPE, OfParts<FloatSum<PART>>)         \
  SIZED(average, TYPE, OfParts<FloatAverage<PART>>) \
  SIZED(product, TYPE, ComplexProduct<PART>)

#define PAIRS(TYPE, ORDER)                          \
  REDUCTION(min_loc, TYPE, MinLoc<ORDER>)           \
  REDUCTION(max_loc, TYPE, MaxLoc<ORDER>)
