package org.comm4j.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.comm4j.api.Advice;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.OptionText;
import org.comm4j.api.spi.RankKind;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.guice.CommLifecycle;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// Looks at everything that decides whether ranks come together here, and how fast they are.
@Command(
    name = "doctor",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.OfBackends.class,
    description = {
      "Look at what decides whether ranks come together here: launcher, settings, Java, host,"
          + " backends.",
      "",
      "Exit code 1 if something must be mended. It starts no ranks; comm-cli verify does."
    })
final class Doctor implements Callable<Integer> {
  private static final String LAUNCH = "launch";
  private static final String SETTING = "setting";
  private static final String BACKEND = "backend";

  private static final Map<String, String> OF_THE_SESSION =
      Map.of(
          DefaultSessionFactory.DIRECTORY,
          "Where ranks of one host meet that have a COMM_SESSION and no address.",
          DefaultSessionFactory.HOSTED,
          "Set by comm-cli run: its launcher hosts the session.",
          Authenticator.INSECURE,
          "Whether ranks need no secret where other hosts reach the address.",
          HostedSession.PORTS,
          "From which TCP ports comm-cli run takes the one where ranks meet.");

  private final Map<String, String> environment;
  private final HostFindings host;

  @Spec @Nullable CommandSpec spec;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv; ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  @Option(names = "--verbose", description = "Show what is as it should be in the table too.")
  boolean verbose;

  Doctor() {
    this(Environment.all(), new HostFindings());
  }

  Doctor(Map<String, String> environment, HostFindings host) {
    this.environment = Map.copyOf(environment);
    this.host = host;
  }

  @Override
  public Integer call() {
    CommandSpec own = Objects.requireNonNull(spec);
    Map<String, String> settings = new HashMap<>(environment);
    settings.putAll(RankOptions.given(own));
    List<Finding> findings = new Doctor(settings, host).findings();
    print(findings, own.commandLine().getOut());
    return findings.stream().anyMatch(each -> each.status() == Finding.Status.PROBLEM)
        ? ExitCode.CHECK_FAILED
        : ExitCode.FINE;
  }

  List<Finding> findings() {
    List<Finding> findings = new ArrayList<>();
    CommConfig config = launch(findings);
    settings(config, findings);
    findings.addAll(host.all());
    backends(config, findings);
    findings.add(groupOfOne(config));
    Set<String> told = new HashSet<>(); // one mistake is one problem
    findings.removeIf(each -> each.status() == Finding.Status.PROBLEM && !told.add(each.note()));
    return findings;
  }

  // --- launch ---

  /// The configuration, or what remains of it where it contradicts itself.
  private CommConfig launch(List<Finding> findings) {
    try {
      CommConfig config = CommConfig.fromEnvironment(environment);
      findings.add(launch(config));
      return config;
    } catch (IllegalArgumentException e) {
      findings.add(Finding.problem(LAUNCH, "environment", "wrong", Sentences.of(e)));
      return CommConfig.builder().build();
    }
  }

  private Finding launch(CommConfig config) {
    if (config.rank().isEmpty() && config.session().isPresent()) {
      return Finding.note(
          LAUNCH,
          "launcher",
          config.launcher(),
          "COMM_SESSION names launches that comm-cli run starts; to be a rank of one, this process needs COMM_RANK and COMM_WORLD_SIZE too.");
    }
    if (config.rank().isEmpty()) {
      return Finding.ok(
          LAUNCH,
          "launcher",
          config.launcher(),
          "Nothing launched this process: Communicators.open() gives a group of one.");
    }
    String variables =
        String.join(
            " ",
            config.launchVariables().stream()
                .map(name -> name + "=" + shown(name, environment.getOrDefault(name, "")))
                .toList());
    String value =
        "%s: rank %d of %d"
            .formatted(config.launcher(), config.rank().getAsInt(), config.worldSize().orElse(0));
    try {
      return Finding.ok(
          LAUNCH, "launcher", value, "From %s; %s.".formatted(variables, where(config)));
    } catch (JoinException e) {
      return Finding.problem(
          LAUNCH, "launcher", value, "From %s; %s".formatted(variables, Sentences.of(e)));
    } catch (UnsupportedOperationException e) { // the owner of the secret's file can't be read
      return Finding.note(
          LAUNCH, "launcher", value, "From %s; %s".formatted(variables, e.getMessage()));
    }
  }

  /// Where the ranks meet; what a join says if they can't.
  private static String where(CommConfig config) {
    if (config.worldSize().orElse(1) == 1) {
      return "one rank meets nobody";
    }
    try {
      return "ranks meet " + DefaultSessionFactory.outlook(config);
    } catch (JoinException e) {
      if (e.reason() == JoinException.Reason.ADDRESS && meetsByMpi(config)) {
        return "ranks meet by MPI, whichever backend is chosen";
      }
      throw e;
    }
  }

  /// Whether backend mpi knows a place where the launch names none, or a secret where it is asked
  /// for by name.
  private static boolean meetsByMpi(CommConfig config) {
    boolean isAsked = config.backend().equals("mpi");
    boolean mayBe = config.backend().equals(CommConfig.AUTO) && config.masterAddress().isEmpty();
    return (isAsked || mayBe)
        && Backends.availableBackends(config).stream()
            .anyMatch(each -> each.isReady() && each.name().equals("mpi"));
  }

  // --- settings ---

  private void settings(CommConfig config, List<Finding> findings) {
    for (CommConfig.Setting setting : CommConfig.settings()) {
      String given = environment.get(setting.variable());
      findings.add(
          Finding.ok(
              SETTING,
              setting.variable(),
              given == null ? "(" + setting.defaultValue() + ")" : shown(setting.variable(), given),
              "%s Expected: %s.".formatted(setting.doc(), setting.range())));
    }
    new TreeMap<>(config.options())
        .forEach((variable, value) -> findings.add(option(variable, shown(variable, value))));
    config.secretFile().ifPresent(file -> findings.add(secretFile(file)));
    boolean isOfLaunch = config.options().containsKey(DefaultSessionFactory.HOSTED);
    if (config.secret().isPresent() && !isOfLaunch) {
      findings.add(
          Finding.note(
              SETTING,
              "COMM_SECRET",
              "(not shown)",
              "Other processes can see it; put it into a file and set COMM_SECRET_FILE."));
    }
    config.tuning().ifPresent(file -> findings.add(tuning(file, config)));
  }

  private static Finding option(String variable, String value) {
    try { // what those do that read them
      CommConfig alone = CommConfig.builder().option(variable, value).build();
      Authenticator.of(alone);
      HostedSession.checkPorts(alone);
    } catch (JoinException | IllegalArgumentException e) {
      return Finding.problem(SETTING, variable, value, Sentences.of(e));
    }
    if (variable.equals(Authenticator.INSECURE) && new OptionText(variable, value).flag()) {
      return Finding.note(
          SETTING,
          variable,
          value,
          "Whoever reaches the address where ranks meet may join; unset it and give all ranks a COMM_SECRET_FILE.");
    }
    return Finding.ok(
        SETTING, variable, value, OF_THE_SESSION.getOrDefault(variable, "Of a single backend."));
  }

  private static Finding tuning(Path file, CommConfig config) {
    try {
      Set<String> nobody = Tuning.read(file).backends();
      if (config.backend().equals("mpi")) {
        return Finding.note(
            SETTING,
            "COMM_TUNING",
            file.toString(),
            "Backend mpi does not read it: the library chooses.");
      }
      List<String> names =
          Backends.availableBackends(config).stream().map(BackendInfo::name).toList();
      names.forEach(nobody::remove);
      return nobody.isEmpty()
          ? Finding.ok(SETTING, "COMM_TUNING", file.toString(), "It can be read.")
          : Finding.note(
              SETTING,
              "COMM_TUNING",
              file.toString(),
              "Nobody reads its lines for %s (found: the backends %s)."
                  .formatted(String.join(", ", nobody), String.join(", ", names)));
    } catch (IllegalArgumentException e) {
      return Finding.problem(SETTING, "COMM_TUNING", file.toString(), Sentences.of(e));
    }
  }

  /// What a join says of it.
  private static Finding secretFile(Path file) {
    String item = "COMM_SECRET_FILE";
    String value = file.toString();
    try {
      var authenticator = Authenticator.of(CommConfig.builder().secretFile(file).build());
      return authenticator.isLong()
          ? Finding.ok(SETTING, item, value, "Only its owner may read it.")
          : Finding.note(SETTING, item, value, "Too short for ranks on several hosts.");
    } catch (JoinException e) {
      return Finding.problem(SETTING, item, value, Sentences.of(e));
    } catch (UnsupportedOperationException e) {
      return Finding.note(SETTING, item, value, "Its owner can't be read: " + e.getMessage());
    }
  }

  /// Where the secret is may be seen: whether that file is the right one is what is looked at.
  private static String shown(String variable, String value) {
    return variable.equals("COMM_SECRET_FILE") ? value : CommConfig.shown(variable, value);
  }

  // --- backends ---

  private static void backends(CommConfig config, List<Finding> findings) {
    for (BackendInfo backend : Wiring.backends(config)) {
      String value = backend.status().name().toLowerCase(Locale.ROOT);
      String note =
          backend.reason().orElse(backend.reaches())
              + backend.remedy().map(remedy -> "; " + remedy).orElse("")
              + backend.details().entrySet().stream()
                  .map(detail -> "; " + detail.getKey() + ": " + detail.getValue())
                  .collect(Collectors.joining());
      boolean asked = backend.name().equals(config.backend());
      boolean wrong = backend.status() == BackendInfo.Status.BROKEN || asked;
      findings.add(
          backend.isReady()
              ? Finding.ok(BACKEND, backend.name(), value, note)
              : wrong
                  ? Finding.problem(BACKEND, backend.name(), value, note)
                  : Finding.note(BACKEND, backend.name(), value, note));
      for (Advice advice : backend.advice()) {
        String item = backend.name() + ", " + advice.subject();
        findings.add(Finding.note(BACKEND, item, advice.found(), advice.remedy()));
      }
    }
    findings.add(selection("this process", config, UnaryOperator.identity()));
    if (config.rank().isEmpty()) {
      findings.add(selection("comm-cli run -n 2", config, Doctor::ofTwoRanks));
    }
  }

  /// By what [Launch] chooses a backend: only ranks that it starts one by one are known before.
  private static CommConfig ofTwoRanks(CommConfig config) {
    boolean ofThreads = Backends.rankKind(config).equals(Optional.of(RankKind.THREADS));
    boolean oneByOne = !ofThreads && Backends.launcher(2, config).isEmpty();
    return oneByOne ? config.toBuilder().rank(0).worldSize(2).build() : config;
  }

  /// Opening checks what listing can't: the options of single backends, for example.
  private Finding groupOfOne(CommConfig config) {
    String item = "open a group of one";
    int size = config.worldSize().orElse(1);
    if (size > 1 && config.backend().equals("mpi")) { // its library asks the job who this is
      return Finding.note(
          BACKEND,
          item,
          "not tried",
          "This process is rank %d of %d.".formatted(config.rank().orElse(0), size));
    }
    try (CommLifecycle lifecycle =
        Wiring.lifecycle(CommConfig.fromEnvironment(Environment.withoutLaunch(environment)))) {
      Communicator communicator = lifecycle.communicator();
      communicator.barrier();
      return Finding.ok(BACKEND, item, communicator.backend(), "");
    } catch (IllegalArgumentException | CommException e) {
      return Finding.problem(BACKEND, item, "failed", Sentences.of(e));
    }
  }

  private static Finding selection(
      String what, CommConfig config, UnaryOperator<CommConfig> launch) {
    String item = config.backend() + ", " + what;
    try {
      Backends.Selection selection = Backends.select(launch.apply(config));
      return Finding.ok(BACKEND, item, selection.backend(), selection.why());
    } catch (BackendUnavailableException | IllegalArgumentException e) {
      return Finding.problem(BACKEND, item, "none", Sentences.of(e));
    }
  }

  // --- printing ---

  private void print(List<Finding> findings, PrintWriter out) {
    if (format != Listing.Format.TABLE) {
      Listing listing = new Listing("area", "item", "status", "value", "note");
      findings.forEach(each ->
          listing.row(each.area(), each.item(), each.status().text(), each.value(), each.note()));
      listing.print(format, out);
      return;
    }
    List<Finding> shown =
        findings.stream().filter(each -> verbose || each.status() != Finding.Status.OK).toList();
    for (String area : shown.stream().map(Finding::area).distinct().toList()) {
      Listing listing = new Listing(area, "status", "value", "note");
      shown.stream()
          .filter(each -> each.area().equals(area))
          .forEach(
              each -> listing.row(each.item(), each.status().text(), each.value(), each.note()));
      listing.print(format, out);
      out.println();
    }
    long problems =
        findings.stream().filter(each -> each.status() == Finding.Status.PROBLEM).count();
    out.println(
        (problems == 0 ? "Nothing must be mended." : problems + " must be mended, see 'problem'.")
            + (verbose
                ? ""
                : " --verbose shows the %d that are as they should be."
                    .formatted(findings.size() - shown.size())));
    out.flush();
  }
}
