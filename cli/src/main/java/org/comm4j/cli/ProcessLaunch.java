package org.comm4j.cli;

import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.SessionServer;
import org.jspecify.annotations.Nullable;

/// Ranks as processes of this host. The launcher hosts their session, so that no rank is special.
///
/// When a rank fails the others have a grace time to notice, then they get SIGTERM and a second
/// later SIGKILL. They also get it when the launcher itself is ended by a signal.
final class ProcessLaunch {
  private static final List<String> JVM_FLAGS =
      List.of("--enable-native-access=ALL-UNNAMED", "--add-modules=jdk.incubator.vector");
  private static final long TERM_NS = TimeUnit.SECONDS.toNanos(1);
  private static final int NONE = -1;
  private static final int SIGNAL_BASE = 128; // how Java gives the signal that ended a process

  private final Launch launch;
  private final PrintStream out;
  private final PrintStream err;
  private final List<Process> ranks = new ArrayList<>();
  private final List<Thread> outputs = new ArrayList<>();
  private final LinkedBlockingQueue<Integer> ended = new LinkedBlockingQueue<>();

  /// The first rank that ended without a goodbye: the others fail because of it, whatever its own
  /// exit code is.
  private final AtomicInteger firstLost = new AtomicInteger(NONE);

  ProcessLaunch(Launch launch, PrintStream out, PrintStream err) {
    this.launch = launch;
    this.out = out;
    this.err = err;
  }

  int run() throws InterruptedException {
    byte[] random = new byte[8];
    ThreadLocalRandom.current().nextBytes(random);
    String job = "run-" + HexFormat.of().formatHex(random);
    Thread onSignal = new Thread(this::terminate, "end ranks");
    try (var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            job,
            launch.ranks(),
            new SessionServer.Listener() {
              @Override
              public void failed(int rank, String evidence) {
                firstLost.compareAndSet(NONE, rank);
              }
            })) {
      Runtime.getRuntime().addShutdownHook(onSignal);
      start(job, server);
      return await();
    } finally {
      terminate();
      forget(onSignal);
    }
  }

  static void forget(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException _) {
      // the JVM is ending: the hook runs
    }
  }

  private void start(String job, SessionServer server) {
    Map<String, String> environment = launch.environment();
    environment.put("COMM_LOCAL_WORLD_SIZE", Integer.toString(launch.ranks()));
    environment.put("COMM_NODE_RANK", "0");
    environment.put("COMM_MASTER_ADDR", InetAddress.getLoopbackAddress().getHostAddress());
    environment.put("COMM_MASTER_PORT", Integer.toString(server.port()));
    environment.put("COMM_SESSION", job);
    environment.put(DefaultSessionFactory.HOSTED, "launcher");
    List<String> command = command(environment);
    for (int rank = 0; rank < launch.ranks(); rank++) {
      environment.put("COMM_RANK", Integer.toString(rank));
      environment.put("COMM_LOCAL_RANK", Integer.toString(rank));
      ranks.add(start(command, environment, rank, server));
    }
  }

  private Process start(
      List<String> command, Map<String, String> environment, int rank, SessionServer server) {
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().clear();
    builder.environment().putAll(environment);
    // only one rank can read the terminal
    builder.redirectInput(
        rank == 0
            ? ProcessBuilder.Redirect.INHERIT
            : ProcessBuilder.Redirect.from(new File("/dev/null")));
    Process process;
    try {
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
    String label = launch.labels() ? "[" + rank + "] " : "";
    outputs.add(RankOutput.copy(process.getInputStream(), out, label));
    outputs.add(RankOutput.copy(process.getErrorStream(), err, label));
    var _ =
        process
            .onExit()
            .thenRun(() -> {
              server.ended(rank, how(process.exitValue()));
              ended.add(rank);
            });
    return process;
  }

  private List<String> command(Map<String, String> environment) {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    List<String> command = new ArrayList<>();
    switch (launch.program()) {
      case Program.MainClass program -> {
        command.add(java);
        command.addAll(JVM_FLAGS);
        command.add("-cp");
        command.add(
            Stream.concat(program.classPath().stream(), ownClassPath().stream())
                .map(Path::toString)
                .collect(Collectors.joining(File.pathSeparator)));
        command.add(program.name());
        command.addAll(program.arguments());
      }
      case Program.Jar program -> {
        environment.merge(
            "JDK_JAVA_OPTIONS", String.join(" ", JVM_FLAGS), (given, ours) -> given + " " + ours);
        command.addAll(List.of(java, "-jar", program.file().toString()));
        command.addAll(program.arguments());
      }
      case Program.Command program -> command.addAll(program.command());
    }
    return command;
  }

  /// The class path that this JVM runs on.
  static List<Path> ownClassPath() {
    return Stream.of(ManagementFactory.getRuntimeMXBean().getClassPath().split(File.pathSeparator))
        .filter(entry -> !entry.isEmpty())
        .map(Path::of)
        .toList();
  }

  private int await() throws InterruptedException {
    long termNs = Long.MAX_VALUE;
    long killNs = Long.MAX_VALUE;
    int open = ranks.size();
    boolean failed = false;
    while (open > 0) {
      long now = System.nanoTime();
      if (now >= killNs) {
        living().forEach(Process::destroyForcibly);
        killNs = Long.MAX_VALUE;
      } else if (now >= termNs) {
        living().forEach(Process::destroy);
        termNs = Long.MAX_VALUE;
        killNs = now + TERM_NS;
      }
      @Nullable Integer rank = poll(Math.min(termNs, killNs) - now);
      if (rank == null) {
        continue;
      }
      open--;
      int code = ranks.get(rank).exitValue();
      if (code != 0) {
        report(rank, code);
        if (!failed && !launch.continues()) {
          termNs = System.nanoTime() + launch.graceNs();
        }
        failed = true;
      }
    }
    for (Thread output : outputs) {
      output.join(TimeUnit.SECONDS.toMillis(1)); // a grandchild may keep the pipe open
    }
    int lost = firstLost.get();
    if (failed && lost != NONE && ranks.get(lost).exitValue() == 0) {
      err.println(
          "comm-cli: rank %d ended with exit code 0, but without closing its communicator: the others lost it"
              .formatted(lost));
    }
    return failed ? ExitCode.RANK_FAILED : ExitCode.FINE;
  }

  private @Nullable Integer poll(long nanos) throws InterruptedException {
    return ended.poll(Math.max(0, nanos), TimeUnit.NANOSECONDS);
  }

  private void report(int rank, int code) {
    err.println("comm-cli: rank %d %s".formatted(rank, how(code)));
  }

  private static String how(int code) {
    return code > SIGNAL_BASE && code <= SIGNAL_BASE + 64
        ? "was ended by signal " + (code - SIGNAL_BASE)
        : "ended with exit code " + code;
  }

  private List<Process> living() {
    return ranks.stream().filter(Process::isAlive).toList();
  }

  /// Ends what still runs.
  private void terminate() {
    List<Process> living = living();
    living.forEach(Process::destroy);
    long endNs = System.nanoTime() + TERM_NS;
    for (Process rank : living) {
      try {
        if (!rank.waitFor(endNs - System.nanoTime(), TimeUnit.NANOSECONDS)) {
          rank.destroyForcibly();
        }
      } catch (InterruptedException _) {
        rank.destroyForcibly();
        Thread.currentThread().interrupt();
      }
    }
  }
}
