package org.comm4j.core.session;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Member;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.jspecify.annotations.Nullable;

/// The ranks that a [SessionServer] serves together: who has joined, who is gone, and who of them
/// must be told what. Their events have a history from when all are there until all have gone. For
/// the server's thread, which sends what is queued here and sees to the ends of connections.
final class ServedGroup {
  private final String job;
  private final int worldSize;
  private final int generation;
  private final Roster roster;
  private final Set<Integer> alive = new HashSet<>(); // who has joined and is not gone

  /// Of all who have joined; the rank that hosts has none.
  private final TreeMap<Integer, @Nullable Connection> connections = new TreeMap<>();

  private Phase phase = Phase.JOINING;
  private long firstJoinNs;
  private long joinDeadlineNs;
  private long livenessNs = TimeUnit.SECONDS.toNanos(10);
  private @Nullable JoinException whyOver;

  private enum Phase {
    JOINING,
    FORMED,
    OVER
  }

  /// @param generation how often its ranks have met others before
  ServedGroup(String job, int worldSize, int generation) {
    this.job = job;
    this.worldSize = worldSize;
    this.generation = generation;
    this.roster = new Roster(Optional.of(job), OptionalInt.of(worldSize));
  }

  /// The one that its ranks form next.
  ServedGroup next(int generation) {
    var next = new ServedGroup(job, worldSize, generation);
    next.livenessNs = livenessNs;
    return next;
  }

  String job() {
    return job;
  }

  int generation() {
    return generation;
  }

  /// The first rank's that joined; before that, the last group's.
  long livenessNs() {
    return livenessNs;
  }

  boolean isJoining() {
    return phase == Phase.JOINING;
  }

  boolean isFormed() {
    return phase == Phase.FORMED;
  }

  /// Whether all ranks are there, or have been.
  boolean isComplete() {
    return roster.isComplete();
  }

  /// Whether some rank has joined and is not gone.
  boolean isInUse() {
    return !alive.isEmpty();
  }

  /// Whether this rank has.
  boolean isAlive(int rank) {
    return alive.contains(rank);
  }

  /// Of a rank that has joined; null for the one that hosts.
  @Nullable Connection connection(int rank) {
    return connections.get(rank);
  }

  /// Names a rank, for messages.
  String who(int rank) {
    return roster.who(rank);
  }

  /// Judges a rank of this group, or of an earlier one, and adds it if it is admitted.
  ///
  /// @param connection null for the rank that hosts
  Roster.Verdict admit(JoinRequest request, @Nullable Connection connection, long now) {
    if (request.generation() < generation) {
      return new Roster.Verdict.Refused(
          Reason.LATE, "the ranks have gone on to their next session");
    }
    if (phase == Phase.OVER) {
      return late(whyOver);
    }
    Roster.Verdict verdict = roster.admit(request, this::isAlive);
    if (verdict instanceof Roster.Verdict.Admitted) {
      add(request, connection, now);
    }
    return verdict;
  }

  private static Roster.Verdict late(@Nullable JoinException why) {
    if (why == null) {
      return new Roster.Verdict.Refused(
          Reason.LATE, "the group has formed, and all its ranks have left");
    }
    return why.reason() == Reason.MISSING_RANKS
        ? new Roster.Verdict.Refused(Reason.LATE, "the group has given up: " + why.getMessage())
        : new Roster.Verdict.Refused(why.reason(), String.valueOf(why.getMessage()));
  }

  private void add(JoinRequest request, @Nullable Connection connection, long now) {
    long deadlineNs = now + TimeUnit.MILLISECONDS.toNanos(request.patienceMillis());
    if (connections.isEmpty()) {
      firstJoinNs = now;
      joinDeadlineNs = deadlineNs;
      livenessNs = TimeUnit.MILLISECONDS.toNanos(request.livenessMillis());
    } else if (deadlineNs - joinDeadlineNs < 0) {
      joinDeadlineNs = deadlineNs;
    }
    connections.put(request.rank(), connection);
    alive.add(request.rank());
  }

  /// Why those who have joined wait in vain, if they do.
  ///
  /// @param ended how processes of ranks have ended
  Optional<JoinException> hopeless(Map<Integer, String> ended, long now) {
    if (phase != Phase.JOINING || connections.isEmpty()) {
      return Optional.empty();
    }
    for (var entry : ended.entrySet()) {
      if (!connections.containsKey(entry.getKey())) {
        return Optional.of(
            new JoinException(
                Reason.PEER_FAILED,
                "rank %d %s before it had joined".formatted(entry.getKey(), entry.getValue())));
      }
    }
    return now - joinDeadlineNs < 0
        ? Optional.empty()
        : Optional.of(new JoinException(Reason.MISSING_RANKS, roster.missing(now - firstJoinNs)));
  }

  /// Tells all that they have come together.
  ///
  /// @return all of them, in order
  List<Member> form(String sessionId) {
    phase = Phase.FORMED;
    List<Member> members = roster.members();
    for (Member member : members) {
      tell(FrameCodec.encode(new Frame.Joined(member)), null);
    }
    tell(FrameCodec.encode(new Frame.Welcome(sessionId)), null);
    return members;
  }

  /// Turns everyone away who has joined.
  void giveUp(JoinException why) {
    phase = Phase.OVER;
    whyOver = why;
    tell(
        FrameCodec.encode(new Frame.Refused(why.reason(), String.valueOf(why.getMessage()))), null);
    alive.clear();
  }

  /// Checks what a rank has sent.
  ///
  /// @throws ProtocolException if it is not for that rank to say
  void check(Event event, int sender) throws ProtocolException {
    if (event.rank() != sender || event instanceof Event.Fail || phase != Phase.FORMED) {
      throw new ProtocolException("an event that is not its own");
    }
    if (event instanceof Event.Contribute contribute) {
      List<Integer> members = contribute.topic().members();
      boolean known = members.stream().allMatch(connections::containsKey);
      if (!known
          || !contribute.topic().includes(sender)
          || new HashSet<>(members).size() != members.size()) {
        throw new ProtocolException("members " + members);
      }
    } else if (event instanceof Event.Halt order && (order.code() < 1 || order.code() > 255)) {
      throw new ProtocolException("exit code " + order.code());
    }
  }

  /// Gives an event its place in the history, and tells it to everyone whom it concerns.
  ///
  /// @return false if it has none: there is no history, or its rank is gone
  boolean take(Event event) {
    if (phase != Phase.FORMED || !isAlive(event.rank())) {
      return false;
    }
    if (event instanceof Event.Leave || event instanceof Event.Fail) {
      alive.remove(event.rank());
    }
    tell(FrameCodec.encode(event), event);
    if (!isInUse()) {
      phase = Phase.OVER;
    }
    return true;
  }

  /// Queues a frame for everyone whom it concerns.
  private void tell(ByteBuffer bytes, @Nullable Event event) {
    connections.forEach((rank, connection) -> {
      if (connection != null && concerns(event, rank)) {
        try {
          connection.send(bytes);
        } catch (IOException e) {
          // Too much is queued: the connection is lost, which the next flush finds.
          connection.close();
        }
      }
    });
  }

  private boolean concerns(@Nullable Event event, int rank) {
    return switch (event) {
      case Event.Contribute contribute -> isAlive(rank) && contribute.topic().includes(rank);
      case Event.Fail fail -> isAlive(rank) || fail.rank() == rank;
      case null, default -> isAlive(rank);
    };
  }
}
