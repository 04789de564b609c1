package org.comm4j.cli;

import java.io.PrintStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
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
/// @param cleanUp what to do before this JVM is halted, which runs no shutdown hooks
record Launch(
    int ranks,
    String backend,
    Program program,
    Duration grace,
    boolean continues,
    boolean labels,
    boolean announces,
    Runnable cleanUp) {
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
    return new Launch(ranks, backend, program, USUAL_GRACE, false, false, false, () -> {});
  }

  /// Runs all ranks to their ends.
  ///
  /// @return [ExitCode#FINE] or [ExitCode#RANK_FAILED]
  int run(PrintStream out, PrintStream err) throws InterruptedException {
    CommConfig config = Environment.config().toBuilder().backend(backend).build();
    if (isOfThreads(config)) {
      announce(err, backend, "asked for; its ranks are threads of this JVM");
      return new ThreadLaunch(this, out, err).run();
    }
    Backends.Selection selection =
        Backends.select(config.toBuilder().rank(0).worldSize(ranks).build());
    announce(err, selection.backend(), selection.why());
    return new ProcessLaunch(this, out, err).run();
  }

  private void announce(PrintStream err, String chosen, String why) {
    if (announces) {
      err.println("comm-cli: backend " + chosen + " (" + why + ")");
    }
  }

  private boolean isOfThreads(CommConfig config) {
    return Backends.availableBackends(config).stream()
        .anyMatch(info ->
            info.name().equals(backend) && info.kind().equals(Optional.of(RankKind.THREADS)));
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
