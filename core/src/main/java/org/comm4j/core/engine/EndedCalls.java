package org.comm4j.core.engine;

import java.util.Arrays;
import org.comm4j.api.Collective;
import org.jspecify.annotations.Nullable;

/// Collectives that have ended, kept to be made again: programs make the same few over and over,
/// mostly in the same order, so the last one and the one that came after it are tried first.
///
/// For one thread at a time.
final class EndedCalls {
  private static final int MOST = 32;
  private static final int SELDOM = 8;

  private final int size;
  private final @Nullable CollectiveCall[] calls = new CollectiveCall[MOST]; // as they first came
  private final long[] keys = new long[MOST]; // of their shapes: most calls differ in them
  private int count;
  private int last; // taken or kept
  private int oldest; // when there are many
  private int misses; // in a row

  /// @param size the group's
  EndedCalls(int size) {
    this.size = size;
  }

  /// Takes out a call that can be made again as `next`; null if there is none. Where many in a row
  /// have come in vain it is not always looked for, which would take longer than it saves.
  @Nullable CollectiveCall take(Collective next) {
    if (canRestart(last, next)) {
      return take(last);
    }
    int following = last + 1 < count ? last + 1 : 0;
    if (canRestart(following, next)) {
      return take(following);
    }
    misses++;
    if (misses > MOST && misses % SELDOM != 0) {
      return null;
    }
    long key = Shapes.key(next, size);
    for (int at = 0; at < count; at++) {
      if (keys[at] == key && canRestart(at, next)) {
        return take(at);
      }
    }
    return null;
  }

  private boolean canRestart(int at, Collective next) {
    CollectiveCall call = calls[at];
    return call != null && call.canRestart(next);
  }

  private @Nullable CollectiveCall take(int at) {
    CollectiveCall call = calls[at];
    calls[at] = null; // until somebody has waited for it
    last = at;
    misses = 0;
    return call;
  }

  /// Keeps a call that a thread has waited for, instead of the oldest one if there are many.
  void keep(CollectiveCall call) {
    if (calls[last] != null) {
      last = count < MOST ? count : oldest;
      oldest = count < MOST ? 0 : (oldest + 1) % MOST;
    }
    count = Math.max(count, last + 1);
    calls[last] = call;
    keys[last] = Shapes.key(call.shape());
  }

  /// Forgets all: calls of the same shape are to be planned otherwise.
  void clear() {
    Arrays.fill(calls, null);
    count = 0;
    last = 0;
    oldest = 0;
  }
}
