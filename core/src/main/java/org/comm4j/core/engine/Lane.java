package org.comm4j.core.engine;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.function.IntPredicate;
import org.comm4j.core.transport.PeerMemory;

/// One communicator's flags and staging areas in the windows of its ranks.
///
/// What ranks publish is numbered through: every peer-memory plan takes as many indexes as it has
/// stages, on all ranks. A flag holds the communicator's number above the index, so flags of a former
/// user of the lane are always smaller. A line of index i is written again for i + 2 once every rank
/// is done with i: that is also what makes a staging area free.
///
///     line: flag (release) │ sequence │ what │ count │ detail │ where in the window
///     done: flag (release) │ revoked  │ digests of the last [#DIGESTS] indexes
///
/// A digest is of all calls that went by the lane up to that index. Ranks that call different things need not wait for
/// each other's lines (two that each take the other one for the root of a gather do not); their
/// digests differ, and whoever publishes next compares them.
final class Lane {
  private static final VarHandle FLAG = JAVA_LONG.varHandle();
  private static final int INDEX_BITS = 40;
  private static final long SEQUENCE = 8;
  private static final long WHAT = 16;
  private static final long COUNT = 24;
  private static final long DETAIL = 32;
  private static final long WHERE = 40;
  private static final long REVOKED = 8; // in the line that says done
  private static final long DIGEST = 16;
  private static final int DIGESTS = 4; // a power of two

  private final PeerMemory memory;
  private final WindowLayout layout;
  private final int number;
  private final int[] members;
  private final int rank;
  private final long base;
  private final MemorySegment own;
  private final long[] digests = new long[2 * DIGESTS];
  private final long[] sequences = new long[2 * DIGESTS];
  private long digest;
  private long lastDone = -1;
  private long lastPublished = -1;

  /// @param members world ranks
  /// @param rank this one, in the communicator
  /// @param context the communicator's number, greater than that of any former user of the lane
  Lane(Windows windows, int number, int[] members, int rank, int context) {
    this.memory = windows.memory();
    this.layout = windows.layout();
    this.number = number;
    this.members = members;
    this.rank = rank;
    this.base = (long) context << INDEX_BITS;
    this.own = memory.window(members[rank]);
  }

  int number() {
    return number;
  }

  /// Takes a call into the digest; calls come in their order.
  ///
  /// @param first of its indexes
  void begin(CallSignature call, long sequence, long first, int stages) {
    digest = 31 * (31 * (31 * digest + call.what()) + call.count()) + call.detail();
    for (long index = Math.max(first, first + stages - digests.length);
        index < first + stages;
        index++) {
      digests[(int) (index % digests.length)] = digest;
      sequences[(int) (index % sequences.length)] = sequence;
    }
  }

  /// A peer that seems to have called something else up to `index`, with which it is done; -1 if
  /// there is none. It may be a false alarm.
  int suspect(long index) {
    for (int peer = 0; peer < members.length; peer++) {
      if (peer == rank) {
        continue;
      }
      long line = layout.done(number);
      long slot = line + DIGEST + (index & DIGESTS - 1) * Long.BYTES;
      boolean differs =
          window(peer).get(JAVA_LONG, slot) != digests[(int) (index % digests.length)];
      VarHandle.acquireFence();
      if (differs && flag(peer, line) < base + index + 1 + DIGESTS) {
        return peer;
      }
    }
    return -1;
  }

  /// The number of the collective that published at this index, one of the last few.
  long sequence(long index) {
    return sequences[(int) (index % sequences.length)];
  }

  /// Whether every rank is done with what stands in the line that `index` will use.
  boolean isFree(long index) {
    return index < 2 || areDone(index - 2);
  }

  /// Whether every peer is done with everything up to `index`.
  boolean areDone(long index) {
    for (int peer = 0; peer < members.length; peer++) {
      if (!isDone(peer, index)) {
        return false;
      }
    }
    return true;
  }

  boolean isDone(int peer, long index) {
    return peer == rank || flag(peer, layout.done(number)) >= base + index + 1;
  }

  MemorySegment staging(long index) {
    return own.asSlice(layout.staging(number, index), layout.stageBytes());
  }

  long stagingOffset(long index) {
    return layout.staging(number, index);
  }

  void publish(long index, long sequence, CallSignature call, long where) {
    long line = layout.published(number, index);
    // Nobody needs the old line any more, but contradiction() may be looking at it: it must not
    // take
    // a part of the old one and a part of the new one for a call.
    FLAG.setOpaque(own, line, 0L);
    VarHandle.storeStoreFence();
    own.set(JAVA_LONG, line + SEQUENCE, sequence);
    own.set(JAVA_LONG, line + WHAT, call.what());
    own.set(JAVA_LONG, line + COUNT, call.count());
    own.set(JAVA_LONG, line + DETAIL, call.detail());
    own.set(JAVA_LONG, line + WHERE, where);
    FLAG.setRelease(own, line, base + index + 1);
    lastPublished = index;
    wakePeers();
  }

  boolean isPublished(int peer, long index) {
    return flag(peer, layout.published(number, index)) >= base + index + 1;
  }

  /// What a peer has published, after [#isPublished].
  MemorySegment window(int peer) {
    return memory.window(members[peer]);
  }

  long where(int peer, long index) {
    return window(peer).get(JAVA_LONG, layout.published(number, index) + WHERE);
  }

  boolean agrees(int peer, long index, CallSignature call) {
    MemorySegment window = window(peer);
    long line = layout.published(number, index);
    return window.get(JAVA_LONG, line + WHAT) == call.what()
        && window.get(JAVA_LONG, line + COUNT) == call.count()
        && window.get(JAVA_LONG, line + DETAIL) == call.detail();
  }

  String difference(int peer, long index, CallSignature call) {
    MemorySegment window = window(peer);
    long line = layout.published(number, index);
    return call.difference(
        rank,
        peer,
        window.get(JAVA_LONG, line + SEQUENCE),
        window.get(JAVA_LONG, line + WHAT),
        window.get(JAVA_LONG, line + COUNT));
  }

  /// Looks whether a peer has published something else as its collective number `sequence`, for
  /// calls that wait for messages it will never send. Reads two lines that may be written at the
  /// same time, so what it finds only counts when the flag, which is 0 meanwhile, is unchanged.
  ///
  /// @return a sentence, or null
  @org.jspecify.annotations.Nullable
  String contradiction(int peer, long sequence, CallSignature call) {
    for (long index = 0; index < 2; index++) {
      long line = layout.published(number, index);
      long before = flag(peer, line);
      if (before <= base || before >>> INDEX_BITS != base >>> INDEX_BITS) {
        continue;
      }
      boolean differs =
          window(peer).get(JAVA_LONG, line + SEQUENCE) == sequence && !agrees(peer, index, call);
      String words = differs ? difference(peer, index, call) : null;
      VarHandle.acquireFence();
      if (differs && flag(peer, line) == before) {
        return words;
      }
    }
    return null;
  }

  void done(long index) {
    for (long each = Math.max(lastDone + 1, index - DIGESTS + 1); each <= index; each++) {
      own.set(
          JAVA_LONG,
          layout.done(number) + DIGEST + (each & DIGESTS - 1) * Long.BYTES,
          digests[(int) (each % digests.length)]);
    }
    lastDone = index;
    FLAG.setRelease(own, layout.done(number), base + index + 1);
    wakePeers();
  }

  /// Says that this rank's published memory may change from now on: the communicator is broken
  /// here.
  void revoke() {
    FLAG.setRelease(own, layout.done(number) + REVOKED, base + 1);
  }

  /// Whether any peer may have changed what this rank has just read.
  boolean isRevoked() {
    VarHandle.acquireFence();
    for (int peer = 0; peer < members.length; peer++) {
      if (isRevoked(peer)) {
        return true;
      }
    }
    return false;
  }

  boolean isRevoked(int peer) {
    return flag(peer, layout.done(number) + REVOKED) == base + 1;
  }

  /// Whether another communicator may use the lane: nobody will read what this rank published.
  ///
  /// @param isGone whether a rank, by its number in the communicator, has failed or left
  boolean isQuiet(IntPredicate isGone) {
    for (int peer = 0; lastPublished >= 0 && peer < members.length; peer++) {
      if (!isDone(peer, lastPublished) && !isGone.test(peer)) {
        return false;
      }
    }
    return true;
  }

  private void wakePeers() {
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        memory.wake(members[peer]);
      }
    }
  }

  private long flag(int peer, long line) {
    return (long) FLAG.getAcquire(memory.window(members[peer]), line);
  }
}
