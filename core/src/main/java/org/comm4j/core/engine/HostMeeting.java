package org.comm4j.core.engine;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// How the ranks of a host come together over the session when they first share memory, without the
/// communicator's other ranks. Once for each communicator.
///
/// It is no call in flight, so it looks itself for what ends calls: the communicator breaks or is
/// closed, the time is over, a rank is gone, or has closed the communicator, which it says when it
/// is asked. What it says comes by the transport, and what it has given to the meeting by the
/// session, so that this may be still on its way; what this rank gives to the session itself comes
/// back behind it.
final class HostMeeting {
  private static final String WHAT = "createRegion() or splitLocal()";

  private final EngineCommunicator parent;
  private final Groups groups;
  private final Engine engine;
  private final Context context;
  private final List<Integer> members;
  private final String key;
  private boolean hasAsked;
  private @Nullable Integer closer; // as a world rank

  /// @param members world ranks
  HostMeeting(EngineCommunicator parent, Groups groups, int[] members) {
    this.parent = parent;
    this.groups = groups;
    this.engine = parent.engine();
    this.context = parent.context();
    this.members = Arrays.stream(members).boxed().toList();
    this.key = "node/" + Long.toHexString(parent.scope());
  }

  /// {@return what all of them say, by world rank}
  Map<Integer, long[]> hold(Proposal mine) {
    Map<Integer, long[]> rows = groups.agree(key, members, mine, this::look);
    List<Integer> gone = members.stream().filter(each -> !rows.containsKey(each)).toList();
    if (!gone.isEmpty()) {
      parent.checkNow(WHAT); // of those who have failed it says how
      throw new PeerFailedException(
          gone.stream().map(context::rankOf).toList(),
          gone,
          Session.Failure.LEFT + " while " + WHAT + " needs it",
          null);
    }
    return rows;
  }

  private void look(List<Integer> missing, boolean isOver) {
    parent.checkNow(WHAT);
    if (closer != null && missing.contains(closer)) {
      int rank = context.rankOf(closer);
      throw new AbortedException(
          rank,
          "rank %d has closed '%s' while %s needs it".formatted(rank, context.name(), WHAT),
          null);
    }
    if (isOver) {
      throw late(missing);
    }
    closer = whoHasClosed(missing);
    if (closer != null) {
      List<Integer> me = List.of(engine.worldRank());
      engine.session().agree(key + "/heard/" + closer, me, new byte[0], engine.config().timeout());
    }
  }

  private @Nullable Integer whoHasClosed(List<Integer> missing) {
    engine.enter();
    try {
      if (!hasAsked) {
        hasAsked = true;
        missing.forEach(each -> context.inquire(context.rankOf(each)));
      }
      engine.advance();
      return missing.stream()
          .filter(each -> context.hasLeft(context.rankOf(each)))
          .findFirst()
          .orElse(null);
    } finally {
      engine.unlock();
    }
  }

  private CollectiveTimeoutException late(List<Integer> missing) {
    List<Integer> ranks = missing.stream().map(context::rankOf).toList();
    return new CollectiveTimeoutException(
        ranks,
        "rank %d waited %.1f s in %s of '%s' for rank(s) %s of its host, who have not come; raise COMM_TIMEOUT if they may take longer"
            .formatted(context.rank(), engine.timeoutNs() / 1e9, WHAT, context.name(), ranks));
  }
}
