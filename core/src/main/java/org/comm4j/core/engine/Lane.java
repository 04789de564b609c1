package org.comm4j.core.engine;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.comm4j.core.schedule.SplitMix;
import org.comm4j.core.transport.PeerMemory;
import org.jspecify.annotations.Nullable;

/// One communicator's flags and staging areas in the windows of its ranks. Ranks whose windows
/// can't be read, since they are on other hosts, have no part in it.
///
/// What ranks publish is numbered through: every peer-memory plan takes as many indexes as it has
/// stages, on all ranks. A flag is the lane's base plus the index plus one; its ranks agree on a base
/// that is above all flags of former users of the lane. A slot of index i is written again for
/// i + [WindowLayout#SLOTS], a staging area for i + 2, once every rank is done with i. Whoever has published
/// i + 1 is done with i, so its "done" need not be looked at; that of others is looked at when it is needed,
/// which is seldom while data is little: its line comes from another core.
///
///     published: flag (release) │ digest │ where │ data, if it is little … │ owner │ sequence │ what │ count │ detail
///     done:      flag (release) … │ revoked │ over
///
/// Where the data is: at a place in the window, or, if that is negative, behind `~where` bytes of
/// the segment that the rank has lent its peers for this index ([PeerMemory#lend]).
///
/// A digest is of all calls so far, those that needed no lane or no peer too: ranks that call different
/// things, now or before, have different ones. Two ranks that each take the other one for the root of
/// a gather do not wait for each other, nor do those of a call of 0 elements; their next call finds
/// that out.
final class Lane {
  private static final VarHandle FLAG = JAVA_LONG.varHandle();
  private static final int AREAS = WindowLayout.AREAS;
  private static final long LINE_BYTES = 64;
  private static final long DIGEST = 8;
  private static final long WHERE = 16;
  private static final long OWNER = WindowLayout.CALL_AT;
  private static final long SEQUENCE = OWNER + 8;
  private static final long WHAT = SEQUENCE + 8;
  private static final long COUNT = SEQUENCE + 16;
  private static final long DETAIL = SEQUENCE + 24;
  private static final long REVOKED =
      2 * LINE_BYTES; // in the slot that says done, but not near it:
  private static final long OVER = REVOKED + 8; // peers read it in each call, and it stays as it is

  private final PeerMemory memory;
  private final WindowLayout layout;
  private final int number;
  private final int[] members;
  private final int[] near; // the others whose windows can be read, as ranks of the communicator
  private final int rank;
  private final long base;
  private final long owner;
  private final long publishedAt; // in each window; of the first slot
  private final long doneAt;
  private final MemorySegment own;
  private final MemorySegment[] windows; // of this rank and those
  private final long[] staged = new long[AREAS]; // up to where each area was used last
  private long digest;
  private long lastPublished = -1;
  private long doneUpTo = -1; // every peer is known to be done with

  /// @param members world ranks
  /// @param rank this one, in the communicator
  /// @param base at least as great as any flag that a former user has left in the lane
  /// @param owner the communicator's id
  Lane(Windows windows, int number, int[] members, int rank, long base, long owner) {
    this.memory = windows.memory();
    this.layout = windows.layout();
    this.number = number;
    this.members = members;
    this.rank = rank;
    this.base = base;
    this.owner = owner;
    this.digest = owner;
    this.publishedAt = layout.published(number, 0);
    this.doneAt = layout.done(number);
    this.own = memory.window(members[rank]);
    this.near = near(memory, members, rank);
    this.windows = new MemorySegment[members.length];
    this.windows[rank] = own;
    for (int peer : near) {
      this.windows[peer] = memory.window(members[peer]);
    }
  }

  private static int[] near(PeerMemory memory, int[] members, int rank) {
    int here = memory.host(members[rank]);
    return IntStream.range(0, members.length)
        .filter(peer -> peer != rank && memory.host(members[peer]) == here)
        .toArray();
  }

  /// The other ranks of the communicator that share memory with this one; not to be written.
  int[] near() {
    return near;
  }

  int number() {
    return number;
  }

  long base() {
    return base;
  }

  /// Takes a call into the digest; calls come in their order.
  ///
  /// @param calls a digest of it and of all calls before it
  void begin(long calls) {
    digest = SplitMix.mixed(digest ^ calls);
  }

  /// The index that has the slot before `index` has it, and, for data that is not little, the
  /// staging area; once all are done with it, that may be published. Negative for the first ones.
  long before(long index, long bytes) {
    return index - (bytes <= WindowLayout.INLINE_BYTES ? WindowLayout.SLOTS : AREAS);
  }

  /// Whether every peer is done with everything up to `index`.
  boolean areDone(long index) {
    return index <= doneUpTo || haveDone(index);
  }

  /// The same for who has not the engine's lock: nothing is kept of what was seen.
  boolean seemDone(long index) {
    for (int peer : near) {
      if (!isDone(peer, index)) {
        return false;
      }
    }
    return true;
  }

  private boolean haveDone(long index) {
    long least = Long.MAX_VALUE;
    for (int peer : near) {
      least = Math.min(least, doneBy(peer, index));
      if (least < index) {
        return false;
      }
    }
    doneUpTo = least;
    return true;
  }

  /// Up to where a peer is surely done: at least to `index` if it is done with that.
  private long doneBy(int peer, long index) {
    return flag(peer, published(index + 1)) >= base + index + 2
        ? index
        : flag(peer, doneAt) - base - 1;
  }

  boolean isDone(int peer, long index) {
    return doneBy(peer, index) >= index;
  }

  /// Copies larger data into the staging area of an index: behind what was put there before, since
  /// lines that a peer has read lately are in its cache, and writing them again takes four times as
  /// long as writing others.
  ///
  /// @param bytes at most [WindowLayout#stageBytes]
  /// @return where it is, for [#publish]
  long putStaged(long index, MemorySegment data, long from, long bytes) {
    int area = (int) (index & (AREAS - 1));
    long at = staged[area] + bytes <= layout.stageBytes() ? staged[area] : 0;
    staged[area] = (at + bytes + LINE_BYTES - 1) & -LINE_BYTES;
    long where = layout.staging(number, index) + at;
    memory.copyIn(data, from, own, where, bytes);
    return where;
  }

  /// Copies data that comes with the flag, at most [WindowLayout#INLINE_BYTES].
  ///
  /// @return where it is, for [#publish]
  long putInline(long index, MemorySegment data, long from, long bytes) {
    long where = published(index) + WindowLayout.INLINE_AT;
    MemorySegment.copy(data, from, own, where, bytes);
    return where;
  }

  /// Lets peers read the caller's memory where it is, if they can and that is better than a copy.
  ///
  /// @param bytes how much of it
  /// @param awaited whether the calling thread waits until they have
  /// @return where it is, for [#publish]; 0, which is a flag's place, if it has to be copied
  long lend(long index, MemorySegment data, long from, long bytes, boolean awaited) {
    var lender = awaited ? PeerMemory.Lender.WAITS : PeerMemory.Lender.GOES_ON;
    return memory.lend(loan(index), data, bytes, near.length, lender) ? ~from : 0;
  }

  /// Takes back what was lent, so that nobody keeps it alive.
  void endLoans() {
    memory.endLoan(loan(0));
    memory.endLoan(loan(1));
  }

  /// @param where the data is: in this rank's window, or in what it has lent
  void publish(long index, long sequence, CallSignature call, long where) {
    long slot = published(index);
    // Nobody needs the old content any more, but contradiction() may be looking at it: it must not
    // take a part of the old one and a part of the new one for a call.
    FLAG.setOpaque(own, slot, 0L);
    VarHandle.storeStoreFence();
    own.set(JAVA_LONG, slot + OWNER, owner);
    own.set(JAVA_LONG, slot + SEQUENCE, sequence);
    own.set(JAVA_LONG, slot + WHAT, call.what());
    own.set(JAVA_LONG, slot + COUNT, call.count());
    own.set(JAVA_LONG, slot + DETAIL, call.detail());
    own.set(JAVA_LONG, slot + DIGEST, digest);
    own.set(JAVA_LONG, slot + WHERE, where);
    FLAG.setRelease(own, slot, base + index + 1);
    lastPublished = index;
    wakePeers();
  }

  boolean isPublished(int peer, long index) {
    return flag(peer, published(index)) >= base + index + 1;
  }

  /// Whether what a peer has published can only be copied, after [#isPublished].
  boolean isOnlyCopied(int peer, long index) {
    return word(peer, index) < 0 && memory.copiesLoans();
  }

  /// Copies a part of it.
  ///
  /// @param from in the memory that the peer has lent
  /// @return false if it is not there any more
  boolean copyLent(
      int peer, long index, long from, MemorySegment target, long targetOffset, long bytes) {
    return memory.copyLent(members[peer], loan(index), from, target, targetOffset, bytes);
  }

  /// The memory in which a peer has published something, after [#isPublished]; not if it
  /// [#isOnlyCopied].
  MemorySegment memory(int peer, long index) {
    return word(peer, index) >= 0 ? windows[peer] : lent(peer, index);
  }

  /// From where on in that memory it is, in bytes.
  long where(int peer, long index) {
    long where = word(peer, index);
    return where >= 0 ? where : ~where;
  }

  private long word(int peer, long index) {
    return windows[peer].get(JAVA_LONG, published(index) + WHERE);
  }

  private MemorySegment lent(int peer, long index) {
    MemorySegment lent = memory.lent(members[peer], loan(index));
    if (lent == null || !lent.scope().isAlive()) {
      throw new IllegalStateException(
          "rank %d has closed the memory of a call before the call had ended".formatted(peer));
    }
    return lent;
  }

  private int loan(long index) {
    return AREAS * number + (int) (index & (AREAS - 1));
  }

  /// Whether a peer has called the same as this rank, up to what it has published here.
  boolean agrees(int peer, long index) {
    return windows[peer].get(JAVA_LONG, published(index) + DIGEST) == digest;
  }

  /// Why it does not; null if the reason is an earlier call, or that the peer has closed this
  /// communicator and uses the lane for another one.
  @Nullable String difference(int peer, long index, CallSignature call) {
    MemorySegment window = windows[peer];
    long slot = published(index);
    long what = window.get(JAVA_LONG, slot + WHAT);
    long count = window.get(JAVA_LONG, slot + COUNT);
    boolean same =
        what == call.what()
            && count == call.count()
            && window.get(JAVA_LONG, slot + DETAIL) == call.detail();
    if (same || window.get(JAVA_LONG, slot + OWNER) != owner) {
      return null;
    }
    return call.difference(rank, peer, window.get(JAVA_LONG, slot + SEQUENCE), what, count);
  }

  /// Looks whether a peer has published something else as its collective number `sequence`, for
  /// calls that wait for messages it will never send. Reads slots that may be written at the same
  /// time, so what it finds only counts when the flag, which is 0 meanwhile, is unchanged.
  ///
  /// @return a sentence, or null
  @Nullable String contradiction(int peer, long sequence, CallSignature call) {
    for (long index = 0; index < WindowLayout.SLOTS; index++) {
      long slot = published(index);
      long before = flag(peer, slot);
      if (before <= base) {
        continue;
      }
      boolean same = windows[peer].get(JAVA_LONG, slot + SEQUENCE) == sequence;
      String words = same ? difference(peer, index, call) : null;
      VarHandle.acquireFence();
      if (words != null && flag(peer, slot) == before) {
        return words;
      }
    }
    return null;
  }

  void done(long index) {
    FLAG.setRelease(own, doneAt, base + index + 1);
    wakePeers();
  }

  /// Says that this rank's published memory may change from now on: the communicator is broken
  /// here.
  void revoke() {
    FLAG.setRelease(own, doneAt + REVOKED, base + 1);
    VarHandle.fullFence(); // before anything that the user writes there
    endLoans();
  }

  /// Whether any peer may have changed what this rank has just read.
  boolean isRevoked() {
    VarHandle.acquireFence();
    for (int peer : near) {
      if (isRevoked(peer)) {
        return true;
      }
    }
    return false;
  }

  boolean isRevoked(int peer) {
    return flag(peer, doneAt + REVOKED) == base + 1;
  }

  /// Says that this rank reads nothing more by this lane: the communicator is broken or closed
  /// here.
  void over() {
    FLAG.setRelease(own, doneAt + OVER, base + 1);
  }

  private boolean isOver(int peer) {
    return flag(peer, doneAt + OVER) > base; // perhaps a later user's
  }

  /// Whether another communicator may use the lane: nobody will read what this rank published. Who
  /// is only given up may go on in the middle of a call, and take what comes there for its data.
  ///
  /// @param mayRead whether a rank, by its number in the communicator, can still do so
  boolean isQuiet(IntPredicate mayRead) {
    for (int peer : near) {
      if (lastPublished >= 0
          && !isDone(peer, lastPublished)
          && !isOver(peer)
          && mayRead.test(peer)) {
        return false;
      }
    }
    return true;
  }

  private void wakePeers() {
    for (int peer : near) {
      memory.wake(members[peer]);
    }
  }

  private long published(long index) {
    return publishedAt + (index & (WindowLayout.SLOTS - 1)) * WindowLayout.SLOT_BYTES;
  }

  private long flag(int peer, long slot) {
    return (long) FLAG.getAcquire(windows[peer], slot);
  }
}
