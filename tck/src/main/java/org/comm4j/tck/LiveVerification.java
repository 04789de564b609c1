package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.tck.LiveReport.Row;
import org.comm4j.tck.LiveReport.Status;
import org.jspecify.annotations.Nullable;

/// Checks the rules of `docs/contract.md` on live ranks, threads or processes: what `comm-cli
/// verify` does. All ranks call [#run] at once, each with its own communicator. Needs no test
/// framework.
///
/// Each check runs on a duplicate of the communicator, since many break what they run on. What
/// needs a rank to die, or another configuration, is not run here; the report says so.
public final class LiveVerification {
  /// The rules that a backend may declare it can't keep: the closed list of `docs/contract.md`.
  public static final Set<String> DECLARABLE =
      Set.of(
          "D13", "D17", "F4", "F5", "F6", "F8", "F9", "F11", "F12", "F13", "L3", "L4", "M1", "M2",
          "M3", "M4", "M5", "M6", "M7", "P7", "P13", "P15", "T14", "X4");

  /// How much longer than a call a check may take.
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  private final Communicator world;
  private final int hosts;
  private final CommConfig config;
  private final long seed;
  private final PrintWriter log;
  private final Duration patience;
  private final List<LiveCheck> checks;
  private final List<Outcome> outcomes = new ArrayList<>();

  /// How a check ended on this rank.
  ///
  /// @param rules which it is about: of a failure those that were broken
  private record Outcome(Status status, List<String> rules, String detail) {}

  private LiveVerification(
      Communicator world,
      CommConfig config,
      long seed,
      String wanted,
      PrintWriter log,
      Duration patience) {
    this.world = world;
    this.hosts = world.topology().hosts().size();
    this.config = config;
    this.seed = seed;
    this.log = log;
    this.patience = patience;
    this.checks =
        LiveCheck.all().stream().filter(check -> check.toString().matches(wanted)).toList();
  }

  /// Runs all checks that can run; a collective.
  ///
  /// @param world usable, with [Capability#SPLIT]; stays so unless the backend is beyond help
  /// @param config how the launch is configured, the same on all ranks
  /// @param seed decides what is tried; the same on all ranks
  /// @param log gets a line for each check that fails on this rank, and says which one takes long;
  ///   one that ends neither by itself nor by an interrupt is not left, but its stack stands there
  /// @return what was found on all ranks together
  public static LiveReport run(Communicator world, CommConfig config, long seed, PrintWriter log) {
    return run(world, config, seed, System.getProperty("comm4j.check", ".*"), log, PATIENCE);
  }

  /// Does the same with the checks whose rules and name match.
  ///
  /// @param patience how much longer than a call a check may take
  static LiveReport run(
      Communicator world,
      CommConfig config,
      long seed,
      String wanted,
      PrintWriter log,
      Duration patience) {
    return new LiveVerification(world, config, seed, wanted, log, patience).run();
  }

  private LiveReport run() {
    for (LiveCheck check : checks) {
      outcomes.addAll(run(check));
    }
    return new LiveReport(seed, rows(exchange()));
  }

  private List<Outcome> run(LiveCheck check) {
    var reason = check.notRun(world.capabilities(), world.size(), hosts, config, false);
    if (reason.isEmpty() && !world.capabilities().supports(Capability.SPLIT)) {
      reason = Optional.of("the backend has no SPLIT, and checks need groups of their own");
    }
    if (reason.isPresent()) {
      return notRun(check, reason.get());
    }
    try {
      return List.of(runOnCopy(check));
    } catch (RuntimeException e) {
      return List.of(failed(check, e));
    }
  }

  /// One declared rule keeps a check from running, but only that one is declared.
  private List<Outcome> notRun(LiveCheck check, String reason) {
    return check.rules().stream()
        .map(rule -> {
          String why = world.capabilities().deviations().get(rule);
          return why == null
              ? new Outcome(Status.NOT_RUN, List.of(rule), reason)
              : new Outcome(Status.DECLARED, List.of(rule), LiveCheck.declared(rule, why));
        })
        .toList();
  }

  private Outcome runOnCopy(LiveCheck check) {
    try (Communicator copy = world.duplicate();
        Communicator bell = world.duplicate();
        Alarm alarm = new Alarm(bell);
        Watch watch = watch(check, alarm)) {
      Throwable thrown = null;
      try {
        check.run(new LiveRank(copy, config, seed, null, null));
      } catch (RuleViolation | RuntimeException | VirtualMachineError e) {
        thrown = e;
      }
      RuleViolation late = watch.violation();
      return late == null ? outcome(check, alarm, thrown) : failed(check, late);
    }
  }

  private Watch watch(LiveCheck check, Alarm alarm) {
    return new Watch(
        check,
        config.timeout().plus(patience),
        log,
        () -> alarm.ring("%s has not ended on rank %d".formatted(check.name(), world.rank())));
  }

  /// @param thrown what the check has thrown, if anything
  private Outcome outcome(LiveCheck check, Alarm alarm, @Nullable Throwable thrown) {
    if (thrown == null) {
      return new Outcome(Status.PASSED, check.rules(), "");
    }
    if (alarm.hasRung()) {
      return new Outcome(Status.NOT_RUN, check.rules(), "it failed on another rank");
    }
    alarm.ring("%s failed on rank %d".formatted(check.name(), world.rank()));
    return failed(check, thrown);
  }

  private Outcome failed(LiveCheck check, Throwable e) {
    List<String> rules = e instanceof RuleViolation broken ? broken.rules() : check.rules();
    String detail = "rank %d, %s: %s".formatted(world.rank(), check.name(), e.getMessage());
    log.println("FAILED " + detail);
    log.flush();
    return new Outcome(Status.FAILED, rules, detail);
  }

  /// All ranks' outcomes; this rank's alone if the communicator is broken.
  private List<Outcome> exchange() {
    StringBuilder mine = new StringBuilder();
    for (Outcome outcome : outcomes) {
      mine.append(outcome.status())
          .append('\t')
          .append(String.join(" ", outcome.rules()))
          .append('\t')
          .append(outcome.detail().replaceAll("[\\t\\r\\n]+", " "))
          .append('\n');
    }
    byte[] bytes = mine.toString().getBytes(UTF_8);
    try {
      int[] lengths = new int[world.size()];
      world.allGather(new int[] {bytes.length}, lengths);
      byte[] all = new byte[Arrays.stream(lengths).sum()];
      world.allGatherV(
          CommData.of(bytes), CommData.of(all), Arrays.stream(lengths).asLongStream().toArray());
      return new String(all, UTF_8).lines().map(LiveVerification::outcome).toList();
    } catch (RuntimeException e) {
      log.println("FAILED rank %d, results can't be exchanged: %s".formatted(world.rank(), e));
      log.flush();
      List<Outcome> known = new ArrayList<>(outcomes);
      known.add(new Outcome(Status.FAILED, List.of("G9"), e.toString()));
      return known;
    }
  }

  private static Outcome outcome(String line) {
    String[] parts = line.split("\t", -1);
    return new Outcome(Status.valueOf(parts[0]), List.of(parts[1].split(" ", -1)), parts[2]);
  }

  private List<Row> rows(List<Outcome> all) {
    Map<String, Row> rows = new TreeMap<>(Comparator.comparing(LiveVerification::order));
    for (Outcome outcome : all) {
      for (String rule : outcome.rules()) {
        rows.merge(
            rule, new Row(rule, outcome.status(), outcome.detail()), LiveVerification::worse);
      }
    }
    return List.copyOf(rows.values());
  }

  /// Failed before passed before declared before not run.
  private static Row worse(Row a, Row b) {
    for (Status status : List.of(Status.FAILED, Status.PASSED, Status.DECLARED, Status.NOT_RUN)) {
      if (a.status() == status) {
        return a;
      }
      if (b.status() == status) {
        return b;
      }
    }
    return a;
  }

  /// The order of the sections in `docs/contract.md`, then numbers.
  private static String order(String rule) {
    int section = "DTOEPBGAMFXSL".indexOf(rule.charAt(0));
    return "%02d%03d".formatted(section, Integer.parseInt(rule.substring(1)));
  }

  /// All rules that a check names.
  static Set<String> rules() {
    Set<String> rules = new LinkedHashSet<>();
    LiveCheck.all().forEach(check -> rules.addAll(check.rules()));
    return rules;
  }
}
