package org.comm4j.backend.mpi;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.Session;

/// Which ranks of a communicator say in the session that they wait in a collective. Of those for
/// which a call waits the others are late.
final class Waiters {
  private static final long LONG_NS = 20_000_000_000L; // who waits longer says so

  private final Session session;
  private final long scope;
  private final int[] members;
  private final long timeoutNs;

  /// @param scope by which the communicator's ranks know it in the session
  /// @param members its world ranks
  Waiters(MpiJob job, long scope, int[] members) {
    this.session = job.session();
    this.scope = scope;
    this.members = members;
    this.timeoutNs = job.timeoutNs();
  }

  /// Says that this rank waits, once it has waited for long or another one has said so, which may
  /// be about to name the ranks that are late.
  void register(MpiCall call, long waitedNs) {
    boolean isFirst = !isKnown(callKey(call));
    if (isFirst && waitedNs <= Math.min(LONG_NS, timeoutNs / 4)) {
      return;
    }
    call.register();
    session.put(waitingKey(session.rank(), call), new byte[0]);
    if (isFirst) {
      session.put(callKey(call), new byte[0]);
    }
  }

  /// Of the ranks that a call may wait for, those that do not wait themselves.
  List<Integer> late(MpiCall call) {
    BitSet ranks = new BitSet();
    call.missing(ranks);
    List<Integer> late = new ArrayList<>();
    for (int peer : ranks.stream().toArray()) {
      if (!call.isCollective() || !isKnown(waitingKey(members[peer], call))) {
        late.add(peer);
      }
    }
    return late;
  }

  private boolean isKnown(String key) {
    try {
      session.get(key, Duration.ZERO);
      return true;
    } catch (CommException _) {
      return false;
    }
  }

  /// Under which the first one says that somebody waits.
  private String callKey(MpiCall call) {
    return "mpi/" + Long.toHexString(scope) + "/" + call.number(); // in no locale's digits
  }

  private String waitingKey(int worldRank, MpiCall call) {
    return callKey(call) + "/" + worldRank;
  }
}
