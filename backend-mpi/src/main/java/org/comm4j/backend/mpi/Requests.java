package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.BackendException;
import org.jspecify.annotations.Nullable;

/// The library's requests of one stage of a call: handles, and the status of each that has ended.
/// Used again for the next stage. Guarded by its call's group.
final class Requests {
  private static final int HANDLE_BYTES = Long.BYTES; // the largest there is

  /// A receive that is taken back ends at one of the next looks; one that a long message has
  /// matched only when its sender goes on, which nobody may wait for.
  private static final int LEAST_LOOKS = 10;

  private static final long LOOK_NS = 1_000_000;

  private final int leastLooks;
  private final long lookNs;
  private final MemorySegment flag;
  private final MemorySegment[] handles;
  private final MemorySegment[] statuses;
  private final boolean[] ended;
  private int used;
  private int open;
  private @Nullable RuntimeException late; // what was found too early to be thrown
  private boolean isCancelled; // the first one, be that possible or not

  /// @param most how many there may be at once
  Requests(int most) {
    this(most, LEAST_LOOKS, LOOK_NS);
  }

  /// @param leastLooks how often at least it is asked for one that is taken back
  /// @param lookNs and how long at least
  Requests(int most, int leastLooks, long lookNs) {
    this.leastLooks = leastLooks;
    this.lookNs = lookNs;
    Constants constants = Functions.constants();
    Arena arena = Arena.ofAuto();
    long statusBytes = (constants.statusBytes + 7L) / 8 * 8;
    MemorySegment memory = arena.allocate(8 + most * (HANDLE_BYTES + statusBytes), 8);
    this.flag = memory.asSlice(0, JAVA_INT);
    this.handles = new MemorySegment[most];
    this.statuses = new MemorySegment[most];
    this.ended = new boolean[most];
    for (int i = 0; i < most; i++) {
      handles[i] = memory.asSlice(8 + (long) i * HANDLE_BYTES, HANDLE_BYTES);
      statuses[i] = memory.asSlice(8 + (long) most * HANDLE_BYTES + i * statusBytes, statusBytes);
    }
  }

  int most() {
    return handles.length;
  }

  /// Forgets those of the stage before.
  void clear() {
    used = 0;
    open = 0;
    late = null;
    isCancelled = false;
  }

  /// Where the next request's handle goes; the caller starts it.
  MemorySegment next() {
    ended[used] = false;
    open++;
    return handles[used++];
  }

  /// Where a blocking receive's status goes, as that of the first request.
  MemorySegment blockingStatus() {
    used = 1;
    ended[0] = true;
    return statuses[0];
  }

  /// Whether none is running.
  boolean areEnded() {
    return open == 0;
  }

  /// Whether the i-th one has ended.
  boolean isEnded(int i) {
    return ended[i];
  }

  /// Moves them along.
  ///
  /// @return whether all have ended
  boolean test() {
    RuntimeException before = late;
    if (before != null) {
      late = null;
      throw before;
    }
    for (int i = 0; i < used && open > 0; i++) {
      if (!ended[i]) {
        int code = Mpi.test(handles[i], flag, statuses[i]);
        if (code != Constants.SUCCESS || flag.get(JAVA_INT, 0) != 0) {
          end(i, code, "MPI_Test");
        }
      }
    }
    return open == 0;
  }

  /// Waits until all have ended.
  void await() {
    for (int i = 0; i < used; i++) {
      if (!ended[i]) {
        end(i, Mpi.await(handles[i], statuses[i]), "MPI_Wait");
      }
    }
  }

  private void end(int i, int code, String function) {
    ended[i] = true; // a request that has failed is gone too
    open--;
    if (Errors.isTruncation(code)) {
      throw new TruncatedException(source(i), tag(i));
    }
    Errors.check(code, function);
  }

  /// Takes the first one back, a receive. What was wrong with a message that had matched it is
  /// thrown by the next [#test].
  ///
  /// @return whether nothing had matched it; false also while that is not known yet, which
  ///   [#wasTakenBack] tells when it has ended
  boolean cancel() {
    if (isCancelled) { // and looked for: those who wait for the call look on
      return wasTakenBack();
    }
    if (ended[0] || Mpi.cancel(handles[0]) != Constants.SUCCESS) {
      return false;
    }
    isCancelled = true;
    long startNs = System.nanoTime();
    try {
      for (int i = 0; !ended[0]; i++) {
        if (i >= leastLooks && System.nanoTime() - startNs >= lookNs) {
          break;
        }
        test();
      }
    } catch (TruncatedException | BackendException e) {
      late = e; // something had matched it
      return false;
    }
    return wasTakenBack();
  }

  /// Whether the first one has ended because it was taken back, and not with a message.
  boolean wasTakenBack() {
    return isCancelled
        && ended[0]
        && Mpi.testCancelled(statuses[0], flag) == Constants.SUCCESS
        && flag.get(JAVA_INT, 0) != 0;
  }

  /// Who sent what the i-th request has received.
  int source(int i) {
    return Statuses.source(statuses[i]);
  }

  int tag(int i) {
    return Statuses.tag(statuses[i]);
  }

  /// How many bytes it has received.
  long bytes(int i) {
    return Statuses.bytes(statuses[i]);
  }
}
