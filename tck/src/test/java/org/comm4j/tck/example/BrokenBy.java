package org.comm4j.tck.example;

import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.AbortNotice;
import org.comm4j.core.engine.BreakReason;
import org.jspecify.annotations.Nullable;

/// Why a communicator of the native door is broken. This rank finds out, or the session tells it
/// what another one has found, or that a rank has died.
final class BrokenBy {
  private final Session session;
  private final long scope; // the communicator's number, the same on its ranks, no other's
  private final int rank;
  private final int[] members; // its ranks, by their numbers in the session
  private final Session.NewsAction wakingUp;
  private final AtomicReference<@Nullable CommException> reason = new AtomicReference<>();
  private volatile Session.News seen = Session.News.NONE;

  /// @param wakeUp ends waits of this rank's, which ask for the failure again
  BrokenBy(Session session, long scope, int rank, int[] members, Runnable wakeUp) {
    this.session = session;
    this.scope = scope;
    this.rank = rank;
    this.members = members;
    this.wakingUp = session.onNews(wakeUp);
  }

  /// For `close`: nobody waits any more, and the session forgets this communicator.
  void close() {
    wakingUp.close();
  }

  /// For `abort`, and for whatever fails a call.
  void abort(CommException failure) {
    if (reason.compareAndSet(null, failure)) { // the first one stays
      session.abort(scope, AbortNotice.of(failure).encode());
    }
  }

  /// For `failure`, and for each look of a wait.
  @Nullable CommException failure() {
    Session.News now = session.news(); // one volatile read
    if (now != seen && reason.get() == null) {
      reason.compareAndSet(null, BreakReason.of(now, scope, rank, members, this::rankOf));
    }
    seen = now;
    return reason.get();
  }

  private int rankOf(int worldRank) {
    return IntStream.range(0, members.length)
        .filter(each -> members[each] == worldRank)
        .findFirst()
        .orElse(-1);
  }
}
