package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.comm4j.api.CommException;
import org.comm4j.api.EvictedException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// Why a communicator is broken, by what the session knows.
///
/// Who notices a rank's end by itself may break a communicator before the session knows of it, so
/// what came first is not always the reason. A rank that ends by an exception has often said before
/// why: then that is the reason, and not that it is gone. Nor does a rank's end make others
/// disagree or come too late. And what a program itself has aborted while all were there, nobody's
/// end has broken: ranks often end because of it. Where the session has ended with the rank that
/// hosted it, that is a failed peer to whoever has a communicator with it, and else an eviction.
public final class BreakReason {
  private BreakReason() {}

  /// {@return what this rank throws; null where nothing has happened that concerns it}
  ///
  /// @param scope of the communicator
  /// @param rank this one, in the communicator; what it has said itself it knows
  /// @param members world ranks
  /// @param rankOf of a world rank its number in the communicator; -1 for one that is no member
  public static @Nullable CommException of(
      Session.News news, long scope, int rank, int[] members, IntUnaryOperator rankOf) {
    List<Session.Failure> failed = failed(news.failures(), rankOf);
    if (news.evicted() != null && failed.stream().noneMatch(Session.Failure::hosted)) {
      return new EvictedException(news.evicted());
    }
    for (Session.Abort abort : news.aborts()) {
      int by = rankOf.applyAsInt(abort.rank());
      if (abort.scope() != scope || by < 0 || by == rank) {
        continue;
      }
      AbortNotice notice = AbortNotice.decode(abort.reason());
      if (failed.isEmpty()
          || failed.getFirst().rank() == abort.rank()
          || notice.kind().isNeverOfFailure()
          || (notice.isOf(by)
              && failed(news.failures().subList(0, abort.failuresBefore()), rankOf).isEmpty())) {
        return notice.exception(by, members);
      }
    }
    return failed.isEmpty() ? null : peersFailed(failed, rankOf);
  }

  private static List<Session.Failure> failed(
      List<Session.Failure> failures, IntUnaryOperator rankOf) {
    List<Session.Failure> failed = new ArrayList<>();
    for (Session.Failure gone : failures) {
      if (!gone.left() && rankOf.applyAsInt(gone.rank()) >= 0) {
        failed.add(gone);
      }
    }
    return failed;
  }

  private static CommException peersFailed(List<Session.Failure> failed, IntUnaryOperator rankOf) {
    Session.Failure first = failed.getFirst();
    return new PeerFailedException(
        failed.stream().map(gone -> rankOf.applyAsInt(gone.rank())).toList(),
        failed.stream().map(Session.Failure::rank).toList(),
        first.evidence(),
        first.cause());
  }
}
