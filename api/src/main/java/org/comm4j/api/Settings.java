package org.comm4j.api;

import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig.CheckLevel;
import org.comm4j.api.CommConfig.Setting;
import org.comm4j.api.spi.OptionText;

/// Every setting of [CommConfig]: what it is, and how its text becomes a value. The one place that
/// the environment, the command line and the documentation share.
final class Settings {
  static final String PREFIX = "COMM_";

  static final Duration TIMEOUT = Duration.ofMinutes(5);
  static final Duration LIVENESS = Duration.ofSeconds(10);
  static final Duration JOIN_TIMEOUT = Duration.ofSeconds(60);
  static final int MASTER_PORT = 29500;

  private static final String BY_LAUNCHER = "from the launcher, else not set";
  private static final String NOBODY_KNOWS = "Only whoever starts the processes knows it.";
  private static final String NUMBER_THEM =
      "give every process of the launch its own number, or start them with comm-cli run";

  /// What a launcher tells the session of its ranks: options that belong to no backend.
  static final Set<String> OF_THE_SESSION =
      Set.of(
          "COMM_SESSION_DIR", "COMM_SESSION_HOSTED", "COMM_SESSION_INSECURE", "COMM_SESSION_PORTS");

  private static final List<Entry> ENTRIES =
      List.of(
          new Entry(
              new Setting(
                  "backend",
                  "COMM_BACKEND",
                  Optional.of("--backend"),
                  "Which backend moves the bytes.",
                  "name",
                  CommConfig.AUTO,
                  "The best usable backend for this launch; comm-cli doctor --verbose says which and why.",
                  "auto, or a name that comm-cli available-backends lists"),
              (builder, text) -> builder.backend(Values.backend("COMM_BACKEND", text))),
          new Entry(
              new Setting(
                  "rank",
                  "COMM_RANK",
                  Optional.empty(),
                  "This process's number in the launch.",
                  "number",
                  BY_LAUNCHER,
                  NOBODY_KNOWS,
                  "0..COMM_WORLD_SIZE-1"),
              (builder, text) -> builder.rank(number("COMM_RANK", text, 0))),
          new Entry(
              new Setting(
                  "worldSize",
                  "COMM_WORLD_SIZE",
                  Optional.of("-n"),
                  "How many processes the launch has.",
                  "processes",
                  BY_LAUNCHER,
                  NOBODY_KNOWS,
                  "1 or more"),
              (builder, text) -> builder.worldSize(number("COMM_WORLD_SIZE", text, 1))),
          new Entry(
              new Setting(
                  "localRank",
                  "COMM_LOCAL_RANK",
                  Optional.empty(),
                  "This process's number on its host.",
                  "number",
                  BY_LAUNCHER,
                  NOBODY_KNOWS,
                  "0..COMM_LOCAL_WORLD_SIZE-1"),
              (builder, text) -> builder.localRank(number("COMM_LOCAL_RANK", text, 0))),
          new Entry(
              new Setting(
                  "localWorldSize",
                  "COMM_LOCAL_WORLD_SIZE",
                  Optional.empty(),
                  "How many processes of the launch run on this host.",
                  "processes",
                  BY_LAUNCHER,
                  NOBODY_KNOWS,
                  "1..COMM_WORLD_SIZE"),
              (builder, text) -> builder.localWorldSize(number("COMM_LOCAL_WORLD_SIZE", text, 1))),
          new Entry(
              new Setting(
                  "nodeRank",
                  "COMM_NODE_RANK",
                  Optional.empty(),
                  "This host's number in the launch.",
                  "number",
                  BY_LAUNCHER,
                  NOBODY_KNOWS,
                  "0 or more"),
              (builder, text) -> builder.nodeRank(number("COMM_NODE_RANK", text, 0))),
          new Entry(
              new Setting(
                  "masterAddress",
                  "COMM_MASTER_ADDR",
                  Optional.empty(),
                  "Host name or IP address of where the ranks meet.",
                  "host",
                  BY_LAUNCHER,
                  NOBODY_KNOWS,
                  "one host, without a port"),
              (builder, text) -> builder.masterAddress(Values.host("COMM_MASTER_ADDR", text))),
          new Entry(
              new Setting(
                  "masterPort",
                  "COMM_MASTER_PORT",
                  Optional.empty(),
                  "The port where the ranks meet.",
                  "port",
                  "from the launcher, else " + MASTER_PORT + " where there is an address",
                  "The port that torchrun uses, so that firewalls of clusters have heard of it.",
                  "1..65535"),
              (builder, text) ->
                  builder.masterPort(
                      Values.integer(
                          "COMM_MASTER_PORT", text, 1, 0xFFFF, "choose a port free on that host"))),
          new Entry(
              new Setting(
                  "session",
                  "COMM_SESSION",
                  Optional.empty(),
                  "Names the launch, so that ranks of two launches never mix.",
                  "name",
                  BY_LAUNCHER,
                  "A batch system's job number is unique where ours could not be.",
                  "1..256 characters without spaces, the same on every rank"),
              (builder, text) -> builder.session(Values.session("COMM_SESSION", text))),
          new Entry(
              new Setting(
                  "secretFile",
                  "COMM_SECRET_FILE",
                  Optional.empty(),
                  "The file with the secret that ranks prove they know.",
                  "path",
                  "not set",
                  "A secret that everybody has is none. comm-cli run makes one for each launch on one host; several hosts need this file.",
                  "a file that only its owner may read (chmod 600); 16 bytes or more where other hosts"
                      + " reach the meeting place"),
              (builder, text) -> builder.secretFile(Values.path("COMM_SECRET_FILE", text))),
          new Entry(
              new Setting(
                  "secret",
                  "COMM_SECRET",
                  Optional.empty(),
                  "The secret itself. Discouraged: other processes of the user and crash reports"
                      + " show environments. Use COMM_SECRET_FILE.",
                  "text",
                  "from comm-cli run on one host, else not set",
                  "A secret belongs in a file.",
                  "not empty, 16 bytes or more where other hosts reach the meeting place; not together with"
                      + " COMM_SECRET_FILE"),
              (builder, text) -> builder.secret(Secret.of(text))),
          new Entry(
              new Setting(
                  "timeout",
                  "COMM_TIMEOUT",
                  Optional.of("--timeout"),
                  "How long an operation may wait for peers that are alive.",
                  "time",
                  Values.text(TIMEOUT),
                  "Longer than what honest programs do between two calls, a checkpoint included;"
                      + " short enough that a deadlock ends while somebody watches.",
                  Values.DURATION_FORMS),
              (builder, text) -> builder.timeout(Values.duration("COMM_TIMEOUT", text))),
          new Entry(
              new Setting(
                  "liveness",
                  "COMM_LIVENESS",
                  Optional.of("--liveness"),
                  "How long a peer may be silent before it counts as failed; it gives a sign of"
                      + " life four times as often.",
                  "time",
                  Values.text(LIVENESS),
                  "A long pause of a large heap or a swapping host passes; a dead host is known"
                      + " within seconds.",
                  Values.DURATION_FORMS + "; " + Values.text(Values.LEAST_LIVENESS) + " or more"),
              (builder, text) ->
                  builder.liveness(
                      Values.liveness("COMM_LIVENESS", Values.duration("COMM_LIVENESS", text)))),
          new Entry(
              new Setting(
                  "joinTimeout",
                  "COMM_JOIN_TIMEOUT",
                  Optional.of("--join-timeout"),
                  "How long the ranks may take to come together.",
                  "time",
                  Values.text(JOIN_TIMEOUT),
                  "JVMs that are started together are up within seconds, on a busy host within a"
                      + " minute; a wrong address should not cost more.",
                  Values.DURATION_FORMS),
              (builder, text) -> builder.joinTimeout(Values.duration("COMM_JOIN_TIMEOUT", text))),
          new Entry(
              new Setting(
                  "reduction",
                  "COMM_REDUCTION",
                  Optional.of("--reduction"),
                  "In which order reductions combine ranks.",
                  "word",
                  Values.lower(Reduction.FAST),
                  "Repeated runs are bit-equal in both; only who compares backends needs ordered.",
                  OptionText.words(Reduction.class)),
              (builder, text) ->
                  builder.reduction(new OptionText("COMM_REDUCTION", text).word(Reduction.class))),
          new Entry(
              new Setting(
                  "check",
                  "COMM_CHECK",
                  Optional.of("--check"),
                  "How much ranks compare before they communicate.",
                  "word",
                  Values.lower(CheckLevel.BASIC),
                  "It costs nothing; full adds an agreement per call on mpi.",
                  OptionText.words(CheckLevel.class)),
              (builder, text) ->
                  builder.check(new OptionText("COMM_CHECK", text).word(CheckLevel.class))),
          new Entry(
              new Setting(
                  "synchronousSend",
                  "COMM_SYNC_SEND",
                  Optional.of("--sync-send"),
                  "Whether every send waits for its receive, which shows programs that count on"
                      + " buffers.",
                  "flag",
                  "0",
                  "It makes correct programs slower.",
                  "1 or true, 0 or false"),
              (builder, text) ->
                  builder.synchronousSend(new OptionText("COMM_SYNC_SEND", text).flag())),
          new Entry(
              new Setting(
                  "tuning",
                  "COMM_TUNING",
                  Optional.of("--tuning"),
                  "A file with choices of algorithms.",
                  "path",
                  "not set",
                  "The built-in choice is good on most hosts.",
                  "a file that can be read, the same on every rank"),
              (builder, text) -> builder.tuning(Values.path("COMM_TUNING", text))),
          new Entry(
              new Setting(
                  "pluginPath",
                  "COMM_PLUGIN_PATH",
                  Optional.of("--plugin-path"),
                  "Where further backends are, as a class path.",
                  "path",
                  "not set",
                  "Backends are dependencies of the program; nothing is loaded from elsewhere"
                      + " unasked.",
                  "jars and folders, separated as in a class path"),
              (builder, text) -> builder.pluginPath(Values.given("COMM_PLUGIN_PATH", text))));

  static final List<Setting> ALL = ENTRIES.stream().map(Entry::setting).toList();

  private Settings() {}

  private record Entry(Setting setting, BiConsumer<CommConfig.Builder, String> reader) {}

  private static int number(String variable, String text, int min) {
    return Values.integer(variable, text, min, Integer.MAX_VALUE, NUMBER_THEM);
  }

  private static Optional<Entry> entry(String variable) {
    return ENTRIES.stream().filter(e -> e.setting().variable().equals(variable)).findFirst();
  }

  static void set(CommConfig.Builder builder, String variable, String text) {
    Optional<Entry> entry = entry(variable);
    if (entry.isEmpty()) {
      checkOption(variable, text);
      builder.option(variable, text);
      return;
    }
    entry.get().reader().accept(builder, Values.given(variable, text));
  }

  static CommConfig read(Map<String, String> environment) {
    CommConfig.Builder builder = CommConfig.builder();
    Launchers.detect(environment).ifPresent(launch -> launch.into(builder));
    new TreeMap<>(environment)
        .forEach((variable, text) -> {
          if (variable.startsWith(PREFIX) && !Launchers.OWN_VARIABLES.contains(variable)) {
            set(builder, variable, text);
          }
        });
    if (environment.containsKey("COMM_SECRET") && environment.containsKey("COMM_SECRET_FILE")) {
      throw new IllegalArgumentException(
          "COMM_SECRET_FILE: '%s' beside COMM_SECRET (expected: one of them); unset COMM_SECRET"
              .formatted(environment.get("COMM_SECRET_FILE")));
    }
    return builder.build();
  }

  /// Refuses what can't be an option of any backend.
  static void checkOption(String variable, String value) {
    if (!variable.startsWith(PREFIX) || variable.length() == PREFIX.length()) {
      throw new IllegalArgumentException(
          "option %s: '%s' (expected: COMM_<BACKEND>_<NAME>); give the whole variable"
              .formatted(variable, CommConfig.shown(variable, value)));
    }
    if (entry(variable).isPresent()) {
      throw new IllegalArgumentException(
          "option %s: '%s' (expected: an option of a single backend); use the builder's %s"
              .formatted(
                  variable,
                  CommConfig.shown(variable, value),
                  entry(variable).get().setting().name()));
    }
    Values.given(variable, value);
  }

  /// Refuses what is no option of these backends.
  ///
  /// @param missing ends the message about one of no backend
  static void checkOption(
      String variable, String value, Map<String, Set<String>> backends, String missing) {
    if (OF_THE_SESSION.contains(variable)) {
      return;
    }
    Optional<Map.Entry<String, Set<String>>> owner =
        backends.entrySet().stream()
            .filter(backend -> variable.startsWith(prefix(backend.getKey())))
            .max(Comparator.comparingInt(backend -> backend.getKey().length()));
    if (owner.isPresent() && variables(owner.get()).anyMatch(variable::equals)) {
      return;
    }
    String expected =
        owner
            .map(e -> "of backend '%s': %s".formatted(e.getKey(), list(variables(e))))
            .orElseGet(() ->
                "a setting of comm4j, or COMM_<BACKEND>_* of a backend that is here: "
                    + list(backends.keySet().stream()));
    String remedy =
        Values.near(variable, candidates(backends))
            .map(near -> "did you mean " + near + "?")
            .orElse(
                owner.isPresent()
                    ? "unset it"
                    : "unset it, or add the backend that it is for to the class path" + missing);
    throw new IllegalArgumentException(
        "%s: '%s' (expected: %s); %s"
            .formatted(variable, CommConfig.shown(variable, value), expected, remedy));
  }

  /// The setting whose variable may be meant.
  static Optional<String> near(String variable) {
    return variable.startsWith(PREFIX)
        ? Values.near(variable, ALL.stream().map(Setting::variable))
        : Optional.empty();
  }

  private static Stream<String> variables(Map.Entry<String, Set<String>> backend) {
    return backend.getValue().stream().map(option -> prefix(backend.getKey()) + option);
  }

  private static Stream<String> candidates(Map<String, Set<String>> backends) {
    return Stream.concat(
        Stream.concat(ALL.stream().map(Setting::variable), OF_THE_SESSION.stream()),
        backends.entrySet().stream().flatMap(Settings::variables));
  }

  private static String list(Stream<String> names) {
    String text = String.join(", ", names.collect(Collectors.toCollection(TreeSet::new)));
    return text.isEmpty() ? "none" : text;
  }

  /// What a backend's variables start with.
  static String prefix(String backend) {
    return PREFIX + backend.toUpperCase(Locale.ROOT).replace('-', '_') + "_";
  }
}
