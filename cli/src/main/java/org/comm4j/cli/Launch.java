package org.comm4j.cli;

import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.RankLauncher;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.SessionFiles;

/// Starts ranks on this host and waits for them.
///
/// @param ranks how many on this host, at least 1
/// @param cluster the other hosts, if there are any
/// @param settings that come before those of the environment, by their variables
/// @param binding of this host's ranks to its cores
/// @param program what each rank runs
/// @param graceSeconds how long the others have when a rank has failed
/// @param continues whether the others are left alone then
/// @param isUsers whether the program is a user's: then each line of output says which rank wrote
///   it, and it is said which backend runs, and why, as far as that is known here
record Launch(
    int ranks,
    Optional<Cluster> cluster,
    Map<String, String> settings,
    Binding binding,
    Program program,
    double graceSeconds,
    boolean continues,
    boolean isUsers) {
  static final double USUAL_GRACE = 3;

  /// Why the others are ended when a rank has failed, and what to do who does not want that.
  static final String STOPS = "(--on-failure stop; ranks that shrink() need --on-failure continue)";

  private static final double MOST_GRACE = 1e9;

  Launch {
    settings = Map.copyOf(settings);
    if (ranks < 1) {
      throw new IllegalArgumentException(
          "-n: " + ranks + " (expected: 1 or more ranks; at most a few per core make sense)");
    }
    if (!(graceSeconds >= 0 && graceSeconds <= MOST_GRACE)) {
      throw new IllegalArgumentException(
          "--grace: %s (expected: 0 or more seconds, at most %.0f; or --on-failure continue)"
              .formatted(graceSeconds, MOST_GRACE));
    }
  }

  /// A launch of a command of our own.
  static Launch of(int ranks, Map<String, String> settings, Binding binding, Program program) {
    return new Launch(
        ranks, Optional.empty(), settings, binding, program, USUAL_GRACE, false, false);
  }

  long graceNs() {
    return Math.round(graceSeconds * 1e9);
  }

  /// Runs all ranks to their ends.
  ///
  /// @return [ExitCode#FINE] or [ExitCode#RANK_FAILED]
  int run(PrintStream out, PrintStream err) throws InterruptedException {
    LaunchFolder.sweep();
    CommConfig config = config();
    SessionFiles.sweep(config);
    Backends.removeRemains(config); // of a launch that was killed with its launcher
    boolean ofThreads = Backends.rankKind(config).equals(Optional.of(RankKind.THREADS));
    if (ofThreads && cluster.isPresent()) {
      throw new IllegalArgumentException(
          "--nnodes: not for backend %s (expected: a backend that connects processes)"
              .formatted(config.backend()));
    }
    if (ofThreads && !binding.isNone()) {
      throw new IllegalArgumentException(
          "--bind-to: core, for backend %s (expected: none, or a backend whose ranks are processes)"
              .formatted(config.backend()));
    }
    Optional<RankLauncher> launcher = Backends.launcher(ranks, config);
    boolean oneByOne = !ofThreads && launcher.isEmpty();
    Optional<Backends.Selection> selection = selection(config, oneByOne);
    if (program instanceof Program.MainClass) {
      config.tuning().ifPresent(Tuning::read); // else each rank says what is wrong with it
    }
    if (!ofThreads) {
      HostedSession.checkPorts(config); // before anything is said
    }
    warnOfBroken(config, err);
    if (isUsers && (cluster.isEmpty() || !config.backend().equals(CommConfig.AUTO))) {
      selection.ifPresent(chosen -> {
        String why = ofThreads ? "asked for; its ranks are threads of this JVM" : chosen.why();
        err.println("comm-cli: backend " + chosen.backend() + " (" + why + ")");
      });
    }
    var sharedOut = new SharedStream(out);
    var sharedErr = new SharedStream(err);
    if (!ofThreads) {
      SerializedObjects.refuse(); // users' programs are elsewhere
    }
    if (launcher.isPresent()) {
      return new LauncherLaunch(this, launcher.get(), sharedOut, sharedErr).run();
    }
    return ofThreads
        ? new ThreadLaunch(this, sharedOut, sharedErr).run()
        : new ProcessLaunch(this, sharedOut, sharedErr).run();
  }

  /// The backend that ranks on this host alone will take. Empty where only they can know: a jar and
  /// a command have a class path of their own, on which there may be other backends.
  ///
  /// @param oneByOne whether each rank is a process that `comm-cli` starts
  Optional<Backends.Selection> selection(CommConfig config, boolean oneByOne) {
    if (config.backend().equals(CommConfig.AUTO) && !(program instanceof Program.MainClass)) {
      return Optional.empty();
    }
    return Optional.of(Backends.select(oneByOne ? configOfFirstRank() : config));
  }

  /// As rank 0 reads it, except for where the ranks meet.
  CommConfig configOfFirstRank() {
    Map<String, String> variables = variables();
    variables.put("COMM_RANK", "0");
    variables.put("COMM_WORLD_SIZE", Integer.toString(ranks));
    return CommConfig.fromEnvironment(variables);
  }

  /// Of all ranks, without what is each one's own.
  CommConfig config() {
    return CommConfig.fromEnvironment(variables());
  }

  private Map<String, String> variables() {
    Map<String, String> variables = new HashMap<>(Environment.withoutLaunch());
    variables.putAll(settings);
    return variables;
  }

  /// The ranks take another backend and say nothing.
  private static void warnOfBroken(CommConfig config, PrintStream err) {
    for (BackendInfo each : Backends.brokenBackends(config)) {
      err.printf(
          "comm-cli: backend %s is broken: %s; %s%n",
          each.name(), each.reason().orElse(""), each.remedy().orElse(""));
    }
  }

  /// What all ranks get in their environment.
  Map<String, String> environment() {
    Map<String, String> variables = variables();
    variables.putIfAbsent("COMM_BACKEND", CommConfig.AUTO);
    if (isUsers && Terminal.isInteractive()) {
      variables.put(Terminal.VARIABLE, "1");
    }
    return variables;
  }
}
