package org.comm4j.core.session;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Member;

/// Who has joined, and who may. One for each group; the same rules for every kind of session.
final class Roster {
  private static final int MOST_HOSTS = 16; // in a message
  private static final int MOST_REFUSED = 4; // the same

  private final Optional<String> job;
  private final OptionalInt worldSize;
  private final TreeMap<Integer, JoinRequest> joined = new TreeMap<>();
  private final List<Refusal> refused = new ArrayList<>(); // the latest, while ranks are missing

  /// @param job that ranks must ask for; the first one decides where it is empty
  /// @param worldSize that ranks must expect, likewise
  Roster(Optional<String> job, OptionalInt worldSize) {
    this.job = job;
    this.worldSize = worldSize;
  }

  /// What to do with a rank.
  sealed interface Verdict {
    /// It is in.
    record Admitted() implements Verdict {}

    /// It is turned away; the others go on.
    record Refused(Reason reason, String message) implements Verdict {}

    /// It shows that the group can't be formed; everyone is turned away.
    record Broken(Reason reason, String message) implements Verdict {}
  }

  private record Refusal(JoinRequest request, String message) {
    boolean isOfProcess(JoinRequest other) {
      return request.member().pid() == other.member().pid()
          && request.member().host().id().equals(other.member().host().id());
    }

    @Override
    public String toString() {
      return "rank %d (%s): %s".formatted(request.rank(), request.who(), message);
    }
  }

  /// Judges a rank, and adds it if it is admitted.
  ///
  /// @param alive whether the rank that has joined under a number is still there
  Verdict admit(JoinRequest request, IntPredicate alive) {
    Verdict verdict = judge(request, alive);
    switch (verdict) {
      case Verdict.Admitted _ -> {
        forgetRefusals(request);
        joined.put(request.rank(), request);
      }
      case Verdict.Refused no -> {
        forgetRefusals(request);
        refused.add(new Refusal(request, no.message()));
      }
      case Verdict.Broken _ -> {}
    }
    while (refused.size() > (isComplete() ? 0 : MOST_REFUSED)) {
      refused.removeFirst();
    }
    return verdict;
  }

  /// A process may come again, and in the end be in: one that looks for a free number, for example.
  private void forgetRefusals(JoinRequest request) {
    refused.removeIf(each -> each.isOfProcess(request));
  }

  private Verdict judge(JoinRequest request, IntPredicate alive) {
    String expectedJob = job.orElseGet(() -> first().map(JoinRequest::job).orElse(request.job()));
    if (!expectedJob.equals(request.job())) {
      return new Verdict.Refused(
          Reason.OTHER_JOB,
          "this is session %s, not %s; give each job its own COMM_MASTER_PORT"
              .formatted(quoted(expectedJob), quoted(request.job())));
    }
    if (isComplete()) {
      return judgeLate(request, alive);
    }
    return first().map(first -> judgeAgainst(first, request)).orElseGet(() -> judgeFirst(request));
  }

  private Verdict judgeLate(JoinRequest request, IntPredicate alive) {
    int size = joined.size();
    if (request.worldSize() != size) {
      return new Verdict.Refused(
          Reason.WORLD_SIZE,
          "rank %d expects %d ranks, but the group has formed with %d; set the same COMM_WORLD_SIZE on all ranks"
              .formatted(request.rank(), request.worldSize(), size));
    }
    return alive.test(request.rank())
        ? duplicate(request)
        : new Verdict.Refused(
            Reason.LATE,
            "the group of %d ranks has formed, and its rank %d has left it since; start all ranks of a launch once, together"
                .formatted(size, request.rank()));
  }

  private Verdict judgeFirst(JoinRequest request) {
    if (worldSize.isPresent() && worldSize.getAsInt() != request.worldSize()) {
      return new Verdict.Broken(
          Reason.WORLD_SIZE,
          "rank %d (%s) expects %d ranks, but the launcher has started %d; leave COMM_WORLD_SIZE as the launcher set it"
              .formatted(request.rank(), request.who(), request.worldSize(), worldSize.getAsInt()));
    }
    return new Verdict.Admitted();
  }

  private Verdict judgeAgainst(JoinRequest first, JoinRequest request) {
    if (!first.version().equals(request.version())) {
      return new Verdict.Refused(
          Reason.VERSION,
          "rank %d runs comm4j %s, but rank %d (%s) runs %s; use the same version on all ranks"
              .formatted(
                  request.rank(), request.version(), first.rank(), first.who(), first.version()));
    }
    if (first.worldSize() != request.worldSize()) {
      return new Verdict.Broken(
          Reason.WORLD_SIZE,
          "rank %d (%s) expects %d ranks, but rank%s %s expect%s %d; set the same COMM_WORLD_SIZE"
                  .formatted(
                      request.rank(),
                      request.who(),
                      request.worldSize(),
                      joined.size() == 1 ? "" : "s",
                      numbers(List.copyOf(joined.keySet())),
                      joined.size() == 1 ? "s" : "",
                      first.worldSize())
              + " on all ranks");
    }
    if (joined.containsKey(request.rank())) {
      return duplicate(request);
    }
    if (!first.settings().equals(request.settings())) {
      return new Verdict.Broken(
          Reason.CONFIGURATION,
          "rank %d (%s) is configured differently from rank %d (%s): %s; give all ranks the same settings"
              .formatted(
                  request.rank(),
                  request.who(),
                  first.rank(),
                  first.who(),
                  Settings.difference(request.settings(), first.settings())));
    }
    return new Verdict.Admitted();
  }

  private Verdict duplicate(JoinRequest request) {
    JoinRequest holder = joined.get(request.rank());
    return new Verdict.Refused(
        Reason.DUPLICATE_RANK,
        "rank %d has joined already: %s; give each process its own COMM_RANK"
            .formatted(request.rank(), holder == null ? "?" : holder.who()));
  }

  private Optional<JoinRequest> first() {
    return joined.isEmpty() ? Optional.empty() : Optional.of(joined.firstEntry().getValue());
  }

  /// Who has joined, in order.
  List<Integer> ranks() {
    return List.copyOf(joined.keySet());
  }

  /// Whether all ranks are there.
  boolean isComplete() {
    return first().map(first -> joined.size() == first.worldSize()).orElse(false);
  }

  /// Of those who have joined, in order.
  List<Member> members() {
    return joined.values().stream().map(JoinRequest::member).toList();
  }

  /// Names a rank that has joined, for messages.
  String who(int rank) {
    JoinRequest request = joined.get(rank);
    return request == null ? "never seen" : request.who();
  }

  /// Says who has closed, as a rank does where its thread is interrupted: it has not died.
  static String closed(int rank) {
    return "rank %d closed the session while it was joined".formatted(rank);
  }

  /// Says who has not come; at the end, where a cut does no harm, who came and was refused.
  ///
  /// @param waitedNs for how long the others have waited
  String missing(long waitedNs) {
    int size = first().map(JoinRequest::worldSize).orElse(worldSize.orElse(0));
    List<Integer> missing =
        IntStream.range(0, size).filter(rank -> !joined.containsKey(rank)).boxed().toList();
    String text =
        String.format(
            Locale.ROOT, // launchers read it
            "%s %s of %d did not join within %s (joined: %s); see what became of them, or give them longer with COMM_JOIN_TIMEOUT",
            missing.size() == 1 ? "rank" : "ranks",
            numbers(missing),
            size,
            ReplicatedSession.seconds(waitedNs),
            joined.isEmpty() ? "none" : joinedByHost());
    return refused.isEmpty()
        ? text
        : refused.stream()
            .map(Refusal::toString)
            .collect(Collectors.joining("; ", text + "; refused: ", ""));
  }

  /// So that it is seen on which host ranks are missing: `0, 1 on alpha; 3 on beta`.
  private String joinedByHost() {
    Map<String, List<Integer>> byHost =
        joined.values().stream()
            .collect(
                Collectors.groupingBy(
                    request -> request.member().host().name(),
                    LinkedHashMap::new,
                    Collectors.mapping(JoinRequest::rank, Collectors.toList())));
    String text =
        byHost.entrySet().stream()
            .limit(MOST_HOSTS)
            .map(host -> numbers(host.getValue()) + " on " + host.getKey())
            .collect(Collectors.joining("; "));
    return byHost.size() <= MOST_HOSTS ? text : text + "; … (" + byHost.size() + " hosts)";
  }

  static String numbers(List<Integer> ranks) {
    String text = ranks.stream().limit(16).map(String::valueOf).collect(Collectors.joining(", "));
    return ranks.size() <= 16 ? text : text + ", … (" + ranks.size() + ")";
  }

  private static String quoted(String job) {
    return job.isEmpty() ? "without a name" : "'" + job + "'";
  }
}
