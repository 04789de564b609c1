package org.comm4j.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.spi.RankLauncher;
import org.jspecify.annotations.Nullable;

/// Ranks that a program of the backend's starts, such as `mpirun`: one process of ours for all of
/// them.
///
/// That program ends the others when a rank fails. If it has not after the grace time, it gets
/// SIGTERM; a second later its ranks get SIGKILL, and another second later it does. So too when
/// `comm-cli` is ended by a signal.
final class LauncherLaunch {
  private static final long TERM_NS = TimeUnit.SECONDS.toNanos(1);
  private static final long POLL_NS = TimeUnit.MILLISECONDS.toNanos(5);

  private final Launch launch;
  private final RankLauncher launcher;
  private final SharedStream out;
  private final SharedStream err;
  private final Object starting = new Object();
  private volatile @Nullable Process process;
  private boolean isEnding; // guarded by starting

  LauncherLaunch(Launch launch, RankLauncher launcher, SharedStream out, SharedStream err) {
    this.launch = launch;
    this.launcher = launcher;
    this.out = out;
    this.err = err;
  }

  int run() throws InterruptedException {
    if (launch.cluster().isPresent()) {
      throw new IllegalArgumentException(
          "--nnodes: not for backend %s (expected: its hosts as %s takes them; run %s yourself, it may start comm4j's ranks anywhere)"
              .formatted(launch.config().backend(), name(), name()));
    }
    if (launch.continues()) {
      throw new IllegalArgumentException(
          "--on-failure: continue (expected: stop, since %s starts the ranks, which ends all of them when one fails)"
              .formatted(name()));
    }
    try (var session = HostedSession.start(launch.ranks(), launch.config())) {
      int code = run(session);
      if (code == 0) {
        return ExitCode.FINE;
      }
      String loss = session.loss().map(LauncherLaunch::text).orElse("");
      err.println("comm-cli: %s ended with exit code %d%s".formatted(name(), code, loss));
      return ExitCode.RANK_FAILED;
    }
  }

  private String name() {
    return String.valueOf(Path.of(launcher.command().getFirst()).getFileName());
  }

  private static String text(HostedSession.Loss loss) {
    return loss.leftBefore().isEmpty()
        ? "; rank %d was lost first".formatted(loss.rank())
        : "; rank %d was lost after ranks %s had left".formatted(loss.rank(), loss.leftBefore());
  }

  /// Runs the launcher to its end, and shows what the ranks write.
  ///
  /// @return its exit code
  private int run(HostedSession session) throws InterruptedException {
    Thread onSignal = new Thread(() -> end(session), "end ranks");
    Runtime.getRuntime().addShutdownHook(onSignal);
    try (RankPipes pipes = RankPipes.make(launch.ranks())) {
      return await(start(session, pipes), session);
    } finally {
      terminate(session);
      ProcessLaunch.forget(onSignal);
    }
  }

  private Process start(HostedSession session, RankPipes pipes) throws InterruptedException {
    Map<String, String> environment = launch.environment();
    environment.putAll(session.place());
    environment.putAll(launcher.environment());
    List<String> command = new ArrayList<>(launcher.command());
    command.addAll(
        pipes.command(
            launcher.rankVariable(),
            launch
                .binding()
                .command(launcher.rankVariable(), RankCommand.of(launch.program(), environment))));
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectInput(ProcessBuilder.Redirect.INHERIT);
    ProcessLaunch.replace(builder.environment(), environment);
    pipes.copy(out, err, launch.labels());
    synchronized (starting) {
      if (isEnding) {
        throw new InterruptedException("comm-cli is being ended");
      }
      Process started = start(builder);
      process = started;
      return started;
    }
  }

  private Process start(ProcessBuilder builder) {
    try {
      return builder.start();
    } catch (IOException e) {
      throw new BackendUnavailableException(
          launch.config().backend(),
          "%s, which starts its ranks, could not be started itself: %s"
              .formatted(name(), e.getMessage()),
          "use another backend that comm-cli available-backends lists");
    }
  }

  private int await(Process started, HostedSession session) throws InterruptedException {
    // what the launcher itself says; ranks write to their pipes
    RankOutput said = RankOutput.copy(started.getInputStream(), out, "");
    RankOutput warned = RankOutput.copy(started.getErrorStream(), err, "");
    CompletableFuture.anyOf(started.onExit(), session.firstLoss()).join();
    if (!started.waitFor(launch.graceNs(), TimeUnit.NANOSECONDS)) {
      terminate(session);
    }
    int code = started.waitFor();
    terminate(session); // whom it has left behind: they hold our pipes
    said.await();
    warned.await();
    return code;
  }

  /// A signal ends this JVM. The launcher that is just being started is waited for: once it is
  /// there it is known.
  private void end(HostedSession session) {
    synchronized (starting) {
      isEnding = true;
    }
    terminate(session);
  }

  /// Ends what still runs: the launcher in order, which ends its ranks, then whoever is left.
  private void terminate(HostedSession session) {
    Process running = process;
    if (running == null) {
      return;
    }
    List<ProcessHandle> ranks =
        Stream.concat(running.descendants(), session.members().stream()).toList();
    if (running.isAlive()) {
      running.destroy();
    } else {
      ranks.forEach(ProcessHandle::destroy); // it has left them behind
    }
    if (!haveEnded(running, ranks)) {
      ranks.forEach(ProcessHandle::destroyForcibly);
      if (!haveEnded(running, ranks)) {
        running.destroyForcibly();
      }
    }
  }

  /// Waits a second for all to end.
  private static boolean haveEnded(Process launcher, List<ProcessHandle> ranks) {
    long endNs = System.nanoTime() + TERM_NS;
    while (launcher.isAlive() || ranks.stream().anyMatch(ProcessHandle::isAlive)) {
      if (System.nanoTime() - endNs >= 0) {
        return false;
      }
      LockSupport.parkNanos(POLL_NS); // only children can be waited for
    }
    return true;
  }
}
