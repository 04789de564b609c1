package org.comm4j.api;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.comm4j.api.Backends.Selection;
import org.comm4j.api.Discovery.Found;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.Session;

/// Which of the backends that were found is used. What was asked for by name is used or refused,
/// never replaced; `auto` takes the best that is usable for the launch, on every rank the same.
final class Choice {
  private static final Map<String, String> OURS = // and where they are
      Map.of(
          "local", "comm4j-backend-local",
          "shm", "comm4j-backend-local",
          "aeron", "comm4j-backend-aeron",
          "mpi", "comm4j-backend-mpi",
          "cuda", "comm4j-backend-cuda");
  private static final String TOO_MANY_FILES = "Too many open files"; // in the system's words

  private final CommConfig config;
  private final List<Found> found;
  private final List<Found> candidates;
  private final Map<String, String> refusals; // of backends that are usable on this rank: why not

  private Choice(
      CommConfig config, List<Found> found, List<Found> candidates, Map<String, String> refusals) {
    this.config = config;
    this.found = found;
    this.candidates = candidates;
    this.refusals = refusals;
  }

  /// Chooses for the launch that the configuration describes.
  ///
  /// @throws BackendUnavailableException if this rank can use none
  static Choice of(List<Found> found, CommConfig config) {
    List<Found> candidates = isExplicit(config) ? asked(found, config) : auto(found, config);
    return new Choice(config, found, candidates, Map.of());
  }

  static boolean isExplicit(CommConfig config) {
    return !config.backend().equals(CommConfig.AUTO);
  }

  /// Whether the ranks are several processes.
  static boolean isProcessLaunch(CommConfig config) {
    return config.rank().isPresent() && config.worldSize().orElse(1) > 1;
  }

  private static List<Found> asked(List<Found> found, CommConfig config) {
    Found backend = ready(found, config.backend());
    if (isProcessLaunch(config) && backend.hasKind(RankKind.THREADS)) {
      throw new BackendUnavailableException(
          backend.name(),
          "its ranks are threads of one JVM, and this is rank %d of a launch of %d processes"
              .formatted(config.rank().orElseThrow(), config.worldSize().orElseThrow()),
          "use a backend whose ranks are processes (%s), or comm-cli run --backend %s"
              .formatted(namesOrNone(found, RankKind.PROCESSES), backend.name()));
    }
    return List.of(backend);
  }

  /// The backend with this name, if it is ready.
  static Found ready(List<Found> found, String name) {
    Found backend = named(found, name);
    if (!backend.isReady()) {
      throw unavailable(backend);
    }
    return backend;
  }

  /// The backend with this name, ready or not, if it is not broken.
  static Found working(List<Found> found, String name) {
    Found backend = named(found, name);
    if (backend.isBroken()) {
      throw unavailable(backend);
    }
    return backend;
  }

  private static Found named(List<Found> found, String name) {
    return found.stream()
        .filter(each -> each.name().equals(name))
        .findFirst()
        .orElseThrow(() -> unknown(found, name));
  }

  private static BackendUnavailableException unavailable(Found backend) {
    return new BackendUnavailableException(
        backend.name(), backend.info().reason().orElse(""), backend.info().remedy().orElse(""));
  }

  private static BackendUnavailableException unknown(List<Found> found, String name) {
    for (Found each : found) {
      String reason = each.info().reason().orElse("");
      if (reason.contains(TOO_MANY_FILES)) { // it may be the one that is asked for
        return new BackendUnavailableException(
            name,
            "it can't be looked for: " + reason,
            "let this process open more files: ulimit -n 4096 in the shell that starts it");
      }
    }
    String known = String.join(", ", found.stream().map(Found::name).distinct().toList());
    String remedy =
        found.stream()
            .map(Found::name)
            .filter(each -> Values.distance(each, name) < each.length())
            .filter(each -> Values.distance(each, name) <= Math.clamp(name.length() / 3, 2, 4))
            .min(Comparator.comparingInt(each -> Values.distance(each, name)))
            .map(each -> "did you mean '" + each + "'?")
            .orElse(
                OURS.containsKey(name)
                    ? "add %s to the class path, or name another one".formatted(OURS.get(name))
                    : "name another one, or put its jar on the class path or into COMM_PLUGIN_PATH");
    return new BackendUnavailableException(
        name,
        "no such backend is on the class path (found: %s)%s"
            .formatted(known.isEmpty() ? "none" : known, Discovery.unreadable(found)),
        remedy);
  }

  /// The best one whose ranks are threads.
  static Found bestOfThreads(List<Found> found) {
    return found.stream()
        .filter(each -> each.isReady() && each.hasKind(RankKind.THREADS))
        .findFirst()
        .orElseThrow(() -> none(found, Set.of(RankKind.THREADS)));
  }

  private static List<Found> auto(List<Found> found, CommConfig config) {
    List<Found> ready = new ArrayList<>(found.stream().filter(Found::isReady).toList());
    if (isProcessLaunch(config)) {
      ready.removeIf(each -> !each.hasKind(RankKind.PROCESSES));
      if (ready.isEmpty()) {
        throw none(found, Set.of(RankKind.PROCESSES));
      }
    } else {
      // A group of one needs no network: a thread is enough. The sort is stable.
      ready.sort(Comparator.comparing(each -> !each.hasKind(RankKind.THREADS)));
      if (ready.isEmpty()) {
        throw none(found, Set.of(RankKind.values()));
      }
    }
    return ready;
  }

  /// @param wanted ranks of any of these kinds would do
  private static BackendUnavailableException none(List<Found> found, Set<RankKind> wanted) {
    String condition =
        wanted.size() > 1
            ? ""
            : "has %s as ranks and ".formatted(Values.lower(wanted.iterator().next()));
    List<String> remedies = new ArrayList<>();
    for (Found each : found) {
      if (each.info().kind().map(wanted::contains).orElse(true)) {
        each.info().remedy().ifPresent(remedy -> remedies.add(each.name() + ": " + remedy));
      }
    }
    if (remedies.isEmpty()) {
      remedies.add("add one to the class path, for example comm4j-backend-local");
    }
    found.stream()
        .filter(Found::isReady)
        .forEach(each -> remedies.add("or use --backend " + each.name()));
    String rows = others(found);
    return new BackendUnavailableException(
        CommConfig.AUTO,
        "no backend %scan be used here (found: %s)"
            .formatted(condition, rows.isEmpty() ? "none" : rows),
        String.join("; ", remedies));
  }

  private static String others(List<Found> found) {
    return found.stream()
        .map(each -> each.name() + each.info().reason().map(it -> ": " + it).orElse(""))
        .collect(Collectors.joining("; "));
  }

  private static String namesOrNone(List<Found> found, RankKind kind) {
    String names =
        found.stream()
            .filter(each -> each.isReady() && each.hasKind(kind))
            .map(Found::name)
            .collect(Collectors.joining(", "));
    return names.isEmpty() ? "none is ready here" : names;
  }

  // --- together with the other ranks ---

  /// {@return names that this rank can use, best first}
  List<String> names() {
    return candidates.stream().map(Found::name).toList();
  }

  /// {@return what this rank can use, best first}
  List<BackendProvider> providers() {
    return candidates.stream().map(Choice::provider).toList();
  }

  /// Settles on one backend with all ranks of a session. It follows from what the ranks said when
  /// they joined, so all come to the same result, or all throw.
  ///
  /// @return this choice with that one backend left, or more, best first
  Choice agree(Session session) {
    List<String> common = new ArrayList<>(session.member(0).backends());
    for (int rank = 1; rank < session.size(); rank++) {
      common.retainAll(session.member(rank).backends());
    }
    if (common.isEmpty()) {
      throw disagreement(session);
    }
    BackendUnavailableException refusal = null;
    List<Found> agreed = new ArrayList<>();
    Map<String, String> refusals = new HashMap<>();
    names().stream()
        .filter(name -> !common.contains(name))
        .forEach(name -> refusals.put(name, "not all ranks can use it"));
    for (String name : common) {
      Found candidate = ready(candidates, name);
      Availability reach = provider(candidate).connects(session);
      if (reach instanceof Availability.Unavailable it) {
        refusals.put(name, it.reason());
        var refused = new BackendUnavailableException(name, it.reason(), it.remedy());
        refusal = refusal == null ? refused : refusal;
      } else {
        agreed.add(candidate);
      }
    }
    if (agreed.isEmpty() && refusal != null) {
      throw refusal;
    }
    return new Choice(config, found, agreed, refusals);
  }

  private static JoinException disagreement(Session session) {
    Map<String, List<Integer>> ranksByAnswer = new LinkedHashMap<>();
    IntStream.range(0, session.size())
        .forEach(rank ->
            ranksByAnswer
                .computeIfAbsent(
                    String.join(", ", session.member(rank).backends()), _ -> new ArrayList<>())
                .add(rank));
    String answers =
        ranksByAnswer.entrySet().stream()
            .map(answer ->
                "%s %s: %s"
                    .formatted(
                        answer.getValue().size() == 1 ? "rank" : "ranks",
                        numbers(answer.getValue()),
                        answer.getKey().isEmpty() ? "none" : answer.getKey()))
            .collect(Collectors.joining("; "));
    return new JoinException(
        JoinException.Reason.CONFIGURATION,
        "no backend that all ranks can use (%s); give all ranks the same COMM_BACKEND and class"
                .formatted(answers)
            + " path, and see comm-cli available-backends on the hosts that lack one");
  }

  private static String numbers(List<Integer> ranks) {
    String text = ranks.toString();
    return text.substring(1, text.length() - 1);
  }

  // --- the result ---

  Found backend() {
    return candidates.getFirst();
  }

  static BackendProvider provider(Found backend) {
    BackendProvider provider = backend.provider();
    if (provider == null) {
      throw new IllegalStateException(backend.name() + " is not ready");
    }
    return provider;
  }

  Selection selection() {
    Found chosen = backend();
    return new Selection(chosen.name(), why(chosen));
  }

  private String why(Found chosen) {
    if (isExplicit(config)) {
      return "'%s' was asked for by name".formatted(chosen.name());
    }
    String all;
    if (isProcessLaunch(config)) {
      int size = config.worldSize().orElseThrow();
      all = "of what is usable for a launch of %d processes".formatted(size);
    } else if (chosen.hasKind(RankKind.THREADS)) {
      all = "of what has threads as ranks, which a group of one needs no more than";
    } else {
      all = "of what is usable for a group of one";
    }
    String passedOver =
        found.stream()
            .filter(each -> each != chosen)
            .map(this::whyNot)
            .collect(Collectors.joining("; "));
    return "'%s' has the highest priority (%d) %s%s"
        .formatted(
            chosen.name(),
            chosen.info().priority(),
            all,
            passedOver.isEmpty() ? "" : "; besides there is " + passedOver);
  }

  private String whyNot(Found other) {
    BackendInfo info = other.info();
    return info.reason()
        .or(() -> Optional.ofNullable(refusals.get(other.name())))
        .map(reason -> "%s (%s)".formatted(info.name(), reason))
        .orElseGet(
            () -> "%s (%s, priority %d)".formatted(info.name(), info.reaches(), info.priority()));
  }
}
