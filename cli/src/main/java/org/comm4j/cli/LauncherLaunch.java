package org.comm4j.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.Backends;
import org.comm4j.api.spi.RankLauncher;
import org.jspecify.annotations.Nullable;

/// Ranks that a program of the backend's starts, such as `mpirun`: one process of ours for all of
/// them.
///
/// That program ends the others when a rank fails. If it has not after the grace time, they get
/// SIGTERM, and a second later SIGKILL; once they have ended it does, and else gets the same 10 s
/// later. So too when `comm-cli` is ended by a signal, but for SIGKILL, which comes after the grace
/// time.
final class LauncherLaunch {
  private static final long TERM_NS = TimeUnit.SECONDS.toNanos(1);

  /// How long the launcher may take to end after its ranks: more than the 3 s that Open MPI's has
  /// taken on a busy host, and than the 5 s in which a second signal makes it leave all behind.
  private static final long TIDY_NS = TimeUnit.SECONDS.toNanos(10);

  private static final long POLL_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private final Launch launch;
  private final RankLauncher launcher;
  private final SharedStream out;
  private final SharedStream err;
  private final Object starting = new Object();
  private volatile @Nullable Process process;
  private boolean isEnding; // guarded by starting
  private boolean isFirstToEnd; // the launcher, which its ranks do not survive

  LauncherLaunch(Launch launch, RankLauncher launcher, SharedStream out, SharedStream err) {
    this.launch = launch;
    this.launcher = launcher;
    this.out = out;
    this.err = err;
  }

  int run() throws InterruptedException {
    if (launch.cluster().isPresent()) {
      throw new IllegalArgumentException(
          "--nnodes: not for backend %s (expected: ranks of one host; for several run %s yourself, it may start comm4j's ranks anywhere)"
              .formatted(launch.config().backend(), name()));
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
      String loss =
          isFirstToEnd ? " before any rank" : session.loss().map(LauncherLaunch::text).orElse("");
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
    var isOver = new CountDownLatch(1);
    Thread onSignal = new Thread(() -> endOnSignal(session, isOver), "end ranks");
    Runtime.getRuntime().addShutdownHook(onSignal);
    try (RankPipes pipes = RankPipes.make(launch.ranks(), err)) {
      return await(start(session, pipes), session);
    } finally {
      terminate(session);
      isOver.countDown();
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
    pipes.copy(out, launch.isUsers());
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
    CompletableFuture.anyOf(started.onExit(), session.firstLoss(), out.broken()).join();
    if (out.broken().isDone()) {
      err.println(ProcessLaunch.UNWRITTEN_OUTPUT);
      terminate(session);
    }
    isFirstToEnd =
        !session.firstLoss().isDone()
            && session.members().stream().anyMatch(ProcessHandle::isAlive);
    if (!started.waitFor(launch.graceNs(), TimeUnit.NANOSECONDS)) {
      terminate(session);
    }
    int code = started.waitFor();
    terminate(session); // whom it has left behind: they hold our pipes
    RankOutput.await(List.of(said, warned), err);
    return code;
  }

  /// A signal ends this JVM. The launcher that is just being started is waited for: once it is
  /// there it is known.
  ///
  /// @param isOver when all output has been passed on, by the thread that runs the launch
  private void endOnSignal(HostedSession session, CountDownLatch isOver) {
    synchronized (starting) {
      isEnding = true;
    }
    terminate(session, Math.max(TERM_NS, launch.graceNs()));
    ProcessLaunch.awaitOutput(isOver);
  }

  /// Ends what still runs, and removes what is left where the launcher has failed, which may not
  /// have come to it.
  private void terminate(HostedSession session) {
    terminate(session, TERM_NS);
  }

  /// @param patienceNs how long ranks may take to end by themselves
  private synchronized void terminate(HostedSession session, long patienceNs) {
    Process running = process;
    if (running != null) {
      end(running, session, patienceNs);
      if (running.isAlive() || running.exitValue() != 0) {
        Backends.removeRemains(launch.config());
      }
    }
  }

  /// Ends what still runs: the ranks, after which the launcher removes what they have left and ends
  /// by itself.
  ///
  /// The launcher gets no signal as long as it may be at that. A terminal's Ctrl-C has reached it
  /// already, and upon a second signal soon after Open MPI's ends at once, and leaves the ranks and
  /// their shared memory behind.
  private void end(Process running, HostedSession session, long patienceNs) {
    Set<ProcessHandle> ranks = new HashSet<>();
    if (haveEnded(running, session, ranks, ProcessHandle::destroy, patienceNs)) {
      return;
    }
    if (running.isAlive()) {
      err.println(
          "comm-cli: waiting for %s to remove what its ranks have left, %d s at most; Ctrl-C again ends it at once"
              .formatted(name(), TimeUnit.NANOSECONDS.toSeconds(TIDY_NS)));
    }
    if (haveEnded(running, session, ranks, ProcessHandle::destroyForcibly, TIDY_NS)) {
      return;
    }
    running.destroy();
    if (!haveEnded(running, session, ranks, ProcessHandle::destroyForcibly, TERM_NS)) {
      running.descendants().forEach(ProcessHandle::destroyForcibly);
      running.destroyForcibly();
      haveEnded(running, session, ranks, ProcessHandle::destroyForcibly, TERM_NS);
    }
  }

  /// Signals ranks and what they have started, also those that come meanwhile, and waits for all to
  /// end.
  ///
  /// @param ranks those that were found, to which is added
  /// @return whether they and the launcher have ended in time
  private boolean haveEnded(
      Process running,
      HostedSession session,
      Set<ProcessHandle> ranks,
      Consumer<ProcessHandle> signal,
      long patienceNs) {
    ranks.forEach(signal);
    long endNs = System.nanoTime() + patienceNs;
    while (true) {
      boolean isAlive = running.isAlive(); // before its ranks are looked for: it starts no more
      Stream.concat(running.descendants(), session.members().stream())
          .filter(each -> !ranks.contains(each) && isOfRank(each))
          .toList()
          .forEach(each -> {
            ranks.add(each);
            signal.accept(each);
          });
      if (!isAlive && ranks.stream().noneMatch(ProcessHandle::isAlive)) {
        return true;
      }
      if (System.nanoTime() - endNs >= 0) {
        return false;
      }
      LockSupport.parkNanos(POLL_NS); // only children can be waited for
    }
  }

  /// Whether a process is a rank or was started by one, and not by the launcher for itself: that
  /// one is not to be ended before it. Where the system does not tell, it is.
  private boolean isOfRank(ProcessHandle process) {
    return !ProcessFacts.areKnown()
        || ProcessFacts.of(process).hasVariable(launcher.rankVariable());
  }
}
