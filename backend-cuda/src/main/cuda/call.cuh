// What a kernel is told, the signals by which ranks meet, and how they wait.
//
// Every rank has a window that all ranks of the group reach. It begins with signals, one set for each
// block: block b of one rank meets block b of the others and no other, so all ranks launch the same
// number of blocks and threads, and what one block leaves to another is read by the same threads.
//
//   entries  [2][MAX_BLOCKS][MAX_RANKS]  who has come to this call, with what
//   passes   [MAX_BLOCKS][MAX_RANKS]     how far it is
//   broken                               that this rank has given up
//   left     [MAX_RANKS]                 that another one has
//   lines    [2][ranks][…]               the digest of a call and small data, each word with its flag
//   scratch  [2][…]                      partial results
//
// The calls of a group are numbered, from 1, the same on all ranks. A rank that has come to call
// e + 1 has ended call e; so who is past the entries of e + 1 knows that all have ended e. What has
// two banks, taken in turn, is therefore free again without another word.
//
// A flag's value grows for ever (at one call each nanosecond for 500 years), so none is ever cleared.
#pragma once

#include "platform.cuh"

constexpr u32 MAX_RANKS = 16;
constexpr u32 MAX_BLOCKS = 512;

// A rank has come to a call.
struct Entry {
  u64 number;  // of the call; written last
  u64 address; // where its data is, see Call::bases
  u64 digest;  // of what ranks must agree on
  u64 unused;
};

struct Signals {
  Entry entries[2][MAX_BLOCKS][MAX_RANKS];
  u64 passes[MAX_BLOCKS][MAX_RANKS];
  u64 broken; // 8 × the call in which a kernel of this rank has left early, + its Outcome; 0: none
  u64 unused;
  u64 left[MAX_RANKS]; // of each rank: the call that it has left early; its memory may change
};

// In the host's memory: how host and kernel speak while the kernel runs.
struct Control {
  u64 abort;              // the host wants the kernel to leave
  u64 outcome;            // of the first kernel that has left early, an Outcome; written last
  u64 number;             // of that call
  u64 unused;
  u64 concerns[MAX_RANKS]; // of each rank: the Outcome that concerns it, or 0
};

enum Outcome : u64 { DONE = 0, ABORTED = 1, LATE = 2, MISMATCH = 3, LEFT = 4 };

// What is done to each element of a sum or average of floats as it is stored in this rank's output: the
// result, rounded to its type, is widened again and multiplied by the factor, bias and residual are
// added, each step rounded in the wide type, and then it is rounded to the type. So it is, bit for bit,
// what the reduction gives and then the function. Scratch has results without it: each rank's may be
// another one.
//
// The output may have another floating-point type, and bias and residual with it: what casts rounds to
// that in the end, and the wide type is the wider of both. Kernels that are compiled at run time have an
// expression of the user's, whose value is what is rounded.
struct Epilogue {
  u32 is_wanted;
  u32 type;       // of the output, a FloatType
  double factor;  // in each wide type
  float factor32;
  u32 unused;
  u64 bias;       // elements of the type; element i of the output gets the (first + i) mod count-th
  u64 bias_count; // 0: no bias
  u64 first;
  u64 residual;   // as many elements as the output has; 0: none. May be the output, or this rank's input
};

// The parameters. Addresses are this rank's. Offsets are from the beginning of a window.
struct Call {
  u64 number;
  u64 digest;
  u64 timeout_ns;
  u64 control;
  u64 input;   // published: a peer adds what it has for this rank in `bases`
  u64 output;
  u64 from;    // reductions: the first element of everybody's data that this rank reduces
  u64 count;   // reductions: how many elements
  u64 lines;   // the offset of the lines
  u64 line_bytes; // of data that one rank's lines hold, besides a digest
  u64 scratch; // the offset of the scratch
  u64 scratch_bytes; // of one bank
  u32 rank;
  u32 ranks;
  u32 divisor; // of averages
  u32 stages;  // of reductions, 1 or 2
  u32 wait_for_readers; // whether peers read memory that is not this backend's
  u32 unused;
  Epilogue epilogue;
  u64 windows[MAX_RANKS];
  u64 bases[MAX_RANKS];
};

// A copy: from each rank so many bytes, from there in its data to there in the output.
struct Copy {
  Call call;
  u64 bytes[MAX_RANKS];
  u64 from[MAX_RANKS];
  u64 to[MAX_RANKS];
};

static_assert(sizeof(Entry) == 32 && sizeof(Control) == 32 + 8 * MAX_RANKS);
static_assert(sizeof(Call) == 176 + 16 * MAX_RANKS, "as Parameters has it");
static_assert(sizeof(Copy) == sizeof(Call) + 24 * MAX_RANKS && sizeof(Copy) <= 4096);

DEVICE Signals* signals(const Call& call, u32 rank) { return (Signals*)call.windows[rank]; }

DEVICE Control* control(const Call& call) { return (Control*)call.control; }

// Tells the host why this kernel leaves and which ranks that concerns, kernels behind it in the
// stream that they must leave, and the others that it has left. The outcome of the thread that comes
// first stands; others may add ranks to it.
DEVICE void leave_because(const Call& call, Outcome outcome, u32 peer) {
  u64 mine = 8 * call.number + outcome;
  u64 known = replace_zero(&signals(call, call.rank)->broken, mine);
  if (known == 0 || known == mine) store_relaxed(&control(call)->concerns[peer], outcome);
  if (known != 0) return;
  for (u32 rank = 0; rank < call.ranks; rank++) {
    if (rank != call.rank) store_relaxed(&signals(call, rank)->left[call.rank], call.number);
  }
  store_relaxed(&control(call)->number, call.number);
  store_release(&control(call)->outcome, outcome);
}

// Other threads of the same call may have left already; they don't count, since peers wait for this
// one too.
DEVICE bool is_broken(const Call& call) {
  u64 broken = load_relaxed(&signals(call, call.rank)->broken);
  return broken != 0 && broken / 8 < call.number;
}

constexpr u32 WORD_BYTES = 8; // of data: two lines, each of four bytes and a flag

// What a line of this call has in its upper half.
DEVICE u64 line_flag(const Call& call) { return call.number << 32; }

DEVICE bool is_flagged(const Call& call, u64 line) { return line >> 32 == line_flag(call) >> 32; }

DEVICE u64 word_of(u64 low, u64 high) { return (low & 0xffffffff) | high << 32; }

DEVICE void store_word(const Call& call, u64* lines, u64 word) {
  store_relaxed(lines, (word & 0xffffffff) | line_flag(call));
  store_relaxed(lines + 1, (word >> 32) | line_flag(call));
}

// Where the lines of a rank lie in the window of another: those of the digest, then those of data.
DEVICE u64* lines(const Call& call, u32 owner, u32 writer) {
  u64 of_rank = 2 * (call.line_bytes + WORD_BYTES); // with flags
  u64 bank = (call.number & 1) * call.ranks + writer;
  return (u64*)(call.windows[owner] + call.lines + bank * of_rank);
}

// Whether a peer has come with something else, by signals or by lines. A flag of 0 is none: lines
// that were cleared have it, and calls with such a number use none.
DEVICE bool disagrees(const Call& call, u32 peer) {
  const Entry* entry = &signals(call, call.rank)->entries[call.number & 1][0][peer];
  if (load_acquire(&entry->number) == call.number && entry->digest != call.digest) return true;
  if (line_flag(call) == 0) return false;
  const u64* digest = lines(call, call.rank, peer);
  u64 low = load_relaxed(digest), high = load_relaxed(digest + 1);
  return is_flagged(call, low) && is_flagged(call, high) && word_of(low, high) != call.digest;
}

// Whether to wait no longer for a peer: it has come with something else, the host has said to leave,
// or the time is over. Asked so rarely that it need not be in line.
NOT_INLINE bool must_leave(const Call& call, u32 peer, u64 waited_ns) {
  bool is_other = disagrees(call, peer);
  bool is_aborted = load_relaxed(&control(call)->abort) != 0;
  if (!is_other && !is_aborted && waited_ns <= call.timeout_ns) return false;
  leave_because(call, is_other ? MISMATCH : is_aborted ? ABORTED : LATE, peer);
  return true;
}

// Who has given up looks once at each of the others, so that all are named that are late.
NOT_INLINE void look_once(const Call& call, u32 peer, bool is_ready) {
  bool is_late = load_relaxed(&signals(call, call.rank)->broken) == 8 * call.number + LATE;
  if (!is_ready && is_late) leave_because(call, LATE, peer);
}

// Waits until a peer is ready; false when this rank must leave. Who is not patient any more does not
// wait. The host's memory and the clock are far away, so they are asked once in a while.
template <class Ready>
DEVICE bool wait(const Call& call, u32 peer, bool patient, Ready ready) {
  constexpr u32 LOOKS = 256;
  if (!patient) {
    look_once(call, peer, ready());
    return false;
  }
  u64 since = 0;
  while (true) {
#pragma unroll 1
    for (u32 look = 0; look < LOOKS; look++) {
      if (ready()) return true;
      relax();
    }
    u64 now = clock_ns();
    if (since == 0) since = now;
    if (must_leave(call, peer, now - since)) return false;
  }
}

DEVICE bool has_left(const Call& call, u32 peer) {
  return load_relaxed(&signals(call, call.rank)->left[peer]) != 0;
}

// Leaves if others have left; false then. Each thread looks at its share of them.
DEVICE bool name_leavers(const Call& call) {
  bool well = true;
  for (u32 peer = thread_index(); peer < call.ranks; peer += thread_count()) {
    if (has_left(call, peer)) {
      leave_because(call, LEFT, peer);
      well = false;
    }
  }
  return well;
}

// Comes to the call, and waits for all. Afterwards every rank's data is complete, and `data` says
// where it is. False where the kernel must leave; so for all threads of the block, whatever each of
// them has seen.
//
// Who has come may have left since, and freed what it lent: that is looked for once all have come,
// and said only where none has come with something else, which is then the reason for all.
DEVICE bool enter(const Call& call, u64* data) {
  u32 bank = call.number & 1;
  bool well = !is_broken(call);
  for (u32 peer = thread_index(); well && peer < call.ranks; peer += thread_count()) {
    Entry* mine = &signals(call, peer)->entries[bank][block_index()][call.rank];
    mine->address = call.input;
    mine->digest = call.digest;
    store_release(&mine->number, call.number);
  }
  bool all_stay = true;
  for (u32 peer = thread_index(); peer < call.ranks; peer += thread_count()) {
    const Entry* theirs = &signals(call, call.rank)->entries[bank][block_index()][peer];
    well = wait(call, peer, well, [&] { return load_acquire(&theirs->number) == call.number; });
    if (well && theirs->digest != call.digest) {
      leave_because(call, MISMATCH, peer);
      well = false;
    }
    if (well) data[peer] = call.bases[peer] + theirs->address;
    all_stay = all_stay && !has_left(call, peer);
  }
  if (all_threads(well && all_stay)) return true;
  if (well) name_leavers(call);
  return false;
}

// The second and third meeting in a call.
enum Pass : u64 { REDUCED = 0, READ = 1 };

// After reading of the others' memory: whether nobody has left. What was read of one that has may be
// what its owner has put there since.
DEVICE bool are_all_there(const Call& call) {
  all_threads(true); // the others of the block have done their share, too
  if (thread_index() < call.ranks) fence(); // and read what they wanted before this one looks
  return all_threads(name_leavers(call));
}

// Says how far this rank is, unless a peer has left; then it says nothing.
DEVICE bool announce(const Call& call, Pass pass) {
  if (!are_all_there(call)) return false;
  for (u32 peer = thread_index(); peer < call.ranks; peer += thread_count()) {
    store_relaxed(&signals(call, peer)->passes[block_index()][call.rank], 2 * call.number + pass);
  }
  return true;
}

DEVICE bool await_all(const Call& call, Pass pass) {
  bool well = true;
  for (u32 peer = thread_index(); peer < call.ranks; peer += thread_count()) {
    const u64* theirs = &signals(call, call.rank)->passes[block_index()][peer];
    well = wait(call, peer, well, [&] {
      return load_acquire(theirs) >= 2 * call.number + pass;
    });
  }
  return all_threads(well);
}

// Says that this rank has read what it wanted of the others. Who has lent its own memory waits until
// all have.
DEVICE void leave(const Call& call) {
  if (announce(call, READ) && call.wait_for_readers) await_all(call, READ);
}
