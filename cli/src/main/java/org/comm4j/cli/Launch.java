package org.comm4j.cli;

import java.io.PrintStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.RankKind;

/// Starts ranks on this host and waits for them.
///
/// @param ranks how many, at least 1
/// @param backend its name, or `auto`
/// @param program what each rank runs
/// @param grace how long the others have when a rank has failed
/// @param continues whether the others are left alone then
/// @param labels whether each line of output says which rank wrote it
/// @param announces whether to say which backend runs, and why
record Launch(
    int ranks,
    String backend,
    Program program,
    Duration grace,
    boolean continues,
    boolean labels,
    boolean announces) {
  static final Duration USUAL_GRACE = Duration.ofSeconds(3);

  Launch {
    if (ranks < 1) {
      throw new IllegalArgumentException(
          "-n: " + ranks + " (expected: 1 or more ranks; at most a few per core make sense)");
    }
    if (grace.isNegative()) {
      throw new IllegalArgumentException("--grace: " + grace + " (expected: 0 or more)");
    }
  }

  /// A launch of a command of our own.
  static Launch of(int ranks, String backend, Program program) {
    return new Launch(ranks, backend, program, USUAL_GRACE, false, false, false);
  }

  /// Runs all ranks to their ends.
  ///
  /// @return [ExitCode#FINE] or [ExitCode#RANK_FAILED]
  int run(PrintStream out, PrintStream err) throws InterruptedException {
    CommConfig config =
        Environment.config().toBuilder().backend(backend).rank(0).worldSize(ranks).build();
    Backends.Selection selection = Backends.select(config);
    if (announces) {
      err.println("comm-cli: backend " + selection.backend() + ": " + selection.why());
    }
    return kind(selection.backend(), config) == RankKind.THREADS
        ? new ThreadLaunch(this, selection.backend(), out, err).run()
        : new ProcessLaunch(this, out, err).run();
  }

  private static RankKind kind(String backend, CommConfig config) {
    return Backends.availableBackends(config).stream()
        .filter(info -> info.name().equals(backend))
        .findFirst()
        .flatMap(BackendInfo::kind)
        .orElse(RankKind.PROCESSES);
  }

  /// What all ranks get in their environment.
  Map<String, String> environment() {
    Map<String, String> variables = new HashMap<>(Environment.withoutLaunch());
    variables.put("COMM_BACKEND", backend);
    variables.put("COMM_WORLD_SIZE", Integer.toString(ranks));
    if (labels && Terminal.isInteractive()) {
      variables.put(Terminal.VARIABLE, "1");
    }
    return variables;
  }
}
