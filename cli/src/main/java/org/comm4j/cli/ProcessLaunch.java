package org.comm4j.cli;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.comm4j.api.Backends;
import org.jspecify.annotations.Nullable;

/// Ranks as processes of this host, each started by itself.
///
/// When a rank fails the others have a grace time to notice, then they get SIGTERM and a second
/// later SIGKILL. When `comm-cli` itself is ended by a signal they get SIGTERM at once, and SIGKILL
/// after the grace time.
final class ProcessLaunch {
  private static final long TERM_NS = TimeUnit.SECONDS.toNanos(1);
  private static final long POLL_NS = TimeUnit.MILLISECONDS.toNanos(5);

  /// More than [RankOutput#await] takes, unless nobody reads what it passes on.
  private static final long LAST_OUTPUT_NS = TimeUnit.SECONDS.toNanos(10);

  private static final int ELSEWHERE = -1; // among those that have ended: on another host
  private static final int UNWRITTEN = -2; // among them: the ranks' output can't be passed on
  private static final int SIGNAL_BASE = 128; // as Java and shells tell of a signal, but others too

  private static final int MOST_SIGNAL = 64;

  /// What no process is ended by: of children, of urgent data, of windows, what stops and continues
  /// it, and what the C library keeps for itself.
  private static final Set<Integer> HARMLESS_SIGNALS =
      Set.of(17, 18, 19, 20, 21, 22, 23, 28, 32, 33);

  /// Those that this class sends.
  private static final Set<Integer> ENDING_SIGNALS = Set.of(15, 9);

  static final String UNWRITTEN_OUTPUT =
      "comm-cli: what ranks print can't be written: nobody reads it any more, or the disk is full; they are ended";

  /// The place where ranks meet is one launch's, as long as that lives; a host may be two nodes.
  private static final Set<String> MARKS =
      Set.of("COMM_MASTER_PORT", "COMM_SESSION", "COMM_NODE_RANK");

  private final Launch launch;
  private final SharedStream out;
  private final SharedStream err;
  private final List<Process> ranks = new CopyOnWriteArrayList<>(); // of this host
  private final Set<ProcessHandle> signalled = ConcurrentHashMap.newKeySet();
  private final List<RankOutput> outputs = new CopyOnWriteArrayList<>();
  private final CountDownLatch copied = new CountDownLatch(1); // what ranks have written
  private final LinkedBlockingQueue<Integer> ended = new LinkedBlockingQueue<>();
  private volatile String elsewhere = "";
  private volatile Map<String, String> marks = Map.of(); // what no other launch's ranks have
  private boolean isEnding; // guarded by ranks
  private boolean saysElsewhere; // it has said what happened on another host
  private int firstRank;

  ProcessLaunch(Launch launch, SharedStream out, SharedStream err) {
    this.launch = launch;
    this.out = out;
    this.err = err;
  }

  int run() throws InterruptedException {
    Thread onSignal = new Thread(this::endOnSignal, "end ranks");
    try (Nodes nodes = meet()) {
      Runtime.getRuntime().addShutdownHook(onSignal);
      var _ = out.broken().thenRun(() -> ended.add(UNWRITTEN));
      start(nodes);
      boolean fine = await(nodes);
      boolean allFine = nodes.finish(fine);
      if (!allFine && !saysElsewhere) {
        reportElsewhere(nodes, fine);
      }
      return allFine ? ExitCode.FINE : ExitCode.RANK_FAILED;
    } finally {
      end(TERM_NS);
      copied.countDown();
      forget(onSignal);
    }
  }

  private Nodes meet() {
    if (launch.cluster().isEmpty()) {
      return Nodes.alone(launch.ranks(), launch.config());
    }
    Nodes nodes =
        Nodes.meet(
            launch.cluster().get(),
            launch.ranks(),
            launch.config(),
            notice -> err.println("comm-cli: " + notice));
    firstRank = nodes.firstRank();
    err.println(
        "comm-cli: node %d of %d, with ranks %d to %d of %d"
            .formatted(
                nodes.node(),
                nodes.count(),
                firstRank,
                firstRank + launch.ranks() - 1,
                nodes.worldSize()));
    var _ =
        nodes
            .failureElsewhere()
            .thenAccept(what -> {
              elsewhere = what;
              ended.add(ELSEWHERE);
            });
    return nodes;
  }

  static void forget(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException _) {
      // the JVM is ending: the hook runs
    }
  }

  private void start(Nodes nodes) {
    Map<String, String> environment = launch.environment();
    environment.putAll(Environment.ofBatchJob());
    environment.put("COMM_LOCAL_WORLD_SIZE", Integer.toString(launch.ranks()));
    nodes.addTo(environment);
    marks = new TreeMap<>(environment);
    marks.keySet().retainAll(MARKS);
    List<String> command = RankCommand.of(launch.program(), environment);
    for (int local = 0; local < launch.ranks(); local++) {
      environment.put("COMM_RANK", Integer.toString(firstRank + local));
      environment.put("COMM_LOCAL_RANK", Integer.toString(local));
      synchronized (ranks) {
        if (!isEnding) {
          ranks.add(start(launch.binding().command(local, command), environment, local, nodes));
        }
      }
    }
  }

  private Process start(
      List<String> command, Map<String, String> environment, int local, Nodes nodes) {
    int rank = firstRank + local;
    ProcessBuilder builder = new ProcessBuilder(command);
    replace(builder.environment(), environment);
    // only one rank can read the terminal
    builder.redirectInput(
        rank == 0
            ? ProcessBuilder.Redirect.INHERIT
            : ProcessBuilder.Redirect.from(new File("/dev/null")));
    Process process;
    try {
      if (!launch.binding().isNone()
          && launch.program() instanceof Program.Command given
          && !Binding.isProgram(given.command().getFirst(), environment.getOrDefault("PATH", ""))) {
        throw new IOException("no such program");
      }
      process = builder.start();
    } catch (IOException e) {
      if (launch.program() instanceof Program.Command given) {
        throw new IllegalArgumentException(
            "command '%s' could not be started: %s (expected: a program of PATH, or its path)"
                .formatted(given.command().getFirst(), e.getMessage()),
            e);
      }
      throw new UncheckedIOException(
          "rank %d could not be started as '%s': %s"
              .formatted(rank, String.join(" ", command), e.getMessage()),
          e);
    }
    String label = launch.isUsers() ? "[" + rank + "] " : "";
    outputs.add(RankOutput.copy(process.getInputStream(), out, label));
    outputs.add(RankOutput.copy(process.getErrorStream(), err, label));
    var _ =
        process
            .onExit()
            .thenRun(() -> {
              int code = process.exitValue();
              nodes.ended(rank, how(code), code != 0 && !launch.continues());
              ended.add(local);
            });
    return process;
  }

  /// What stays the same stays untouched: a value may have bytes that this locale has no characters
  /// for.
  static void replace(Map<String, String> old, Map<String, String> wanted) {
    old.keySet().retainAll(wanted.keySet());
    wanted.forEach((name, value) -> {
      if (!value.equals(old.get(name))) {
        old.put(name, value);
      }
    });
  }

  private boolean await(Nodes nodes) throws InterruptedException {
    long termNs = Long.MAX_VALUE;
    long killNs = Long.MAX_VALUE;
    int open = ranks.size();
    boolean failed = false;
    boolean ending = false; // by signals from here
    while (open > 0) {
      long now = System.nanoTime();
      if (now >= killNs) {
        signal(ProcessHandle::destroyForcibly);
        killNs = Long.MAX_VALUE;
      } else if (now >= termNs) {
        ending = true;
        if (launch.isUsers() && !out.broken().isDone()) {
          err.println("comm-cli: ending the others " + Launch.STOPS);
        }
        signal(ProcessHandle::destroy);
        termNs = Long.MAX_VALUE;
        killNs = now + TERM_NS;
      }
      @Nullable Integer local = poll(Math.min(termNs, killNs) - now);
      if (local == null) {
        continue;
      }
      if (local == UNWRITTEN) {
        err.println(UNWRITTEN_OUTPUT);
        termNs = System.nanoTime();
        failed = true;
        continue;
      }
      boolean isHere = local != ELSEWHERE;
      int code = isHere ? ranks.get(local).exitValue() : 1;
      open -= isHere ? 1 : 0;
      saysElsewhere |= !isHere;
      if (code != 0) {
        err.println(
            "comm-cli: "
                + (isHere ? "rank %d %s".formatted(firstRank + local, how(code)) : elsewhere)
                + (isHere && ending && ENDING_SIGNALS.contains(code - SIGNAL_BASE)
                    ? ", from comm-cli"
                    : ""));
        if (!failed && !launch.continues()) {
          termNs = System.nanoTime() + launch.graceNs();
        }
        failed = true;
      }
    }
    RankOutput.await(outputs, err);
    copied.countDown();
    failed |= out.broken().isDone();
    if (failed) {
      nodes
          .loss()
          .map(HostedSession.Loss::rank)
          .filter(rank -> rank >= firstRank && rank < firstRank + ranks.size())
          .filter(rank -> ranks.get(rank - firstRank).exitValue() == 0)
          .ifPresent(this::reportLost);
    }
    return !failed;
  }

  /// Which may be why ranks failed here too: they hear of it from each other, before this process
  /// does.
  private void reportElsewhere(Nodes nodes, boolean fine) {
    String what = nodes.failureElsewhere().getNow(fine ? "another host failed" : "");
    if (!what.isEmpty()) {
      err.println("comm-cli: " + what);
    }
  }

  private @Nullable Integer poll(long nanos) throws InterruptedException {
    return ended.poll(Math.max(0, nanos), TimeUnit.NANOSECONDS);
  }

  private void reportLost(int rank) {
    err.println(
        "comm-cli: rank %d ended with exit code 0, but without closing its communicator: the others lost it"
            .formatted(rank));
  }

  private static String how(int code) {
    int signal = code - SIGNAL_BASE;
    return signal > 0 && signal <= MOST_SIGNAL && !HARMLESS_SIGNALS.contains(signal)
        ? "was ended by signal " + signal
        : "ended with exit code " + code;
  }

  /// What ranks have started that have ended before it: it is nobody's descendant any more.
  private List<ProcessHandle> leftBehind() {
    Map<String, String> ofRanks = marks;
    return ofRanks.isEmpty()
        ? List.of()
        : ProcessHandle.allProcesses().filter(each -> hasAll(each, ofRanks)).toList();
  }

  private static boolean hasAll(ProcessHandle process, Map<String, String> variables) {
    ProcessFacts facts = ProcessFacts.of(process);
    return variables.entrySet().stream()
        .allMatch(each -> facts.hasVariable(each.getKey(), each.getValue()));
  }

  /// Signals the ranks and whatever they have started: the one that computes may be a grandchild,
  /// which nobody finds any more when its parent has ended.
  private void signal(Consumer<ProcessHandle> signal) {
    ranks.stream()
        .flatMap(rank -> Stream.concat(Stream.of(rank.toHandle()), rank.descendants()))
        .forEach(signalled::add);
    living().forEach(signal);
  }

  private List<ProcessHandle> living() {
    return Stream.concat(ranks.stream().map(Process::toHandle), signalled.stream())
        .distinct()
        .filter(each -> each.isAlive() && !ProcessFacts.of(each).isZombie())
        .toList();
  }

  /// The JVM ends when this does, and its other threads with it: the one that runs the launch is to
  /// pass on what ranks have written to the last.
  private void endOnSignal() {
    end(Math.max(TERM_NS, launch.graceNs()));
    if (!outputs.isEmpty()) {
      awaitOutput(copied);
    }
  }

  /// Waits a little until all is copied that ranks have written: who should read it may not. Says
  /// nothing, for the same reason.
  static void awaitOutput(CountDownLatch copied) {
    try {
      var _ = copied.await(LAST_OUTPUT_NS, TimeUnit.NANOSECONDS);
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    }
  }

  /// Ends what still runs, and removes what the killed have left; an interrupt is kept for later.
  ///
  /// @param patienceNs how long it may take to end by itself
  private void end(long patienceNs) {
    boolean interrupted = Thread.interrupted();
    synchronized (ranks) { // waits for one that is just being started, so that none is missed
      isEnding = true;
    }
    if (!haveAllEndedWell()) {
      signalled.addAll(leftBehind());
    }
    if (!living().isEmpty()) {
      signal(ProcessHandle::destroy);
    }
    if (!haveEnded(patienceNs)) {
      signal(ProcessHandle::destroyForcibly);
      haveEnded(TERM_NS);
    }
    if (!haveAllEndedWell()) {
      Backends.removeRemains(launch.config());
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean haveAllEndedWell() {
    return ranks.stream().allMatch(rank -> !rank.isAlive() && rank.exitValue() == 0);
  }

  /// Waits for all to end.
  private boolean haveEnded(long patienceNs) {
    long endNs = System.nanoTime() + patienceNs;
    while (!living().isEmpty()) {
      if (System.nanoTime() - endNs >= 0) {
        return false;
      }
      LockSupport.parkNanos(POLL_NS);
    }
    return true;
  }
}
