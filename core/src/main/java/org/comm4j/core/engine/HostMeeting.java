package org.comm4j.core.engine;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;

/// How the ranks of a host come together over the session when they first share memory, without the
/// communicator's other ranks. Once for each communicator.
///
/// It is no call in flight, so it looks itself for what ends calls: the communicator breaks or is
/// closed, the time is over, a rank is gone, or has closed the communicator ([Absentees]).
final class HostMeeting {
  private final String label;
  private final EngineCommunicator parent;
  private final Groups groups;
  private final Engine engine;
  private final Context context;
  private final List<Integer> members;
  private final String key;
  private final Absentees absentees;

  /// @param label what the program calls
  /// @param members world ranks
  HostMeeting(String label, EngineCommunicator parent, Groups groups, int[] members) {
    this.label = label;
    this.parent = parent;
    this.groups = groups;
    this.engine = parent.engine();
    this.context = parent.context();
    this.members = Arrays.stream(members).boxed().toList();
    this.key = "node/" + Long.toHexString(parent.scope());
    this.absentees = new Absentees(context, key, context.inquiries()::ask);
  }

  /// {@return what all of them say, by world rank}
  Map<Integer, long[]> hold(Proposal mine) {
    Map<Integer, long[]> rows = groups.agree(key, members, mine, this::look);
    List<Integer> gone = members.stream().filter(each -> !rows.containsKey(each)).toList();
    if (!gone.isEmpty()) {
      throw lacking(gone);
    }
    return rows;
  }

  private void look(List<Integer> missing, boolean isOver) {
    parent.checkNow(label);
    if (isOver) {
      throw late(missing);
    }
    Optional<Integer> absent = absentees.find(missing);
    if (absent.isPresent()) {
      throw lacking(List.of(absent.get()));
    }
  }

  private CommException lacking(List<Integer> worldRanks) {
    parent.checkNow(label); // of those who have failed it says how
    return context.lacking(worldRanks.stream().map(context::rankOf).toList(), label);
  }

  private CollectiveTimeoutException late(List<Integer> missing) {
    List<Integer> ranks = missing.stream().map(context::rankOf).toList();
    return new CollectiveTimeoutException(
        ranks,
        "rank %d waited %.1f s in %s of '%s' for rank(s) %s of its host, who have not come; raise COMM_TIMEOUT if they may take longer"
            .formatted(context.rank(), engine.timeoutNs() / 1e9, label, context.name(), ranks));
  }
}
