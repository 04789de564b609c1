package org.comm4j.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.ThreadRanks;
import org.comm4j.core.session.OwnFolder;
import org.jspecify.annotations.Nullable;

/// Ranks as threads of this JVM. comm4j, the backends and what they need are one copy; each rank
/// has its own copy of the program's classes, so its static fields are its own as in a process. The
/// rest of the JVM is shared: properties, `System.exit`, native libraries, and standard output,
/// whose lines say which rank wrote them.
///
/// A rank ends as a JVM does: when the last of its threads has that is no daemon. So the launch
/// waits as long as they work; once a rank has failed, for no more than the grace time.
final class ThreadLaunch {
  private final Launch launch;
  private final SharedStream err;
  private final LabelledStream ranksOut;
  private final LabelledStream ranksErr;
  private final LinkedBlockingQueue<News> news = new LinkedBlockingQueue<>();
  private final SortedMap<Integer, Throwable> failed = new ConcurrentSkipListMap<>();
  private final Set<Integer> reported = new TreeSet<>(); // guarded by this
  private volatile boolean isFailure; // what the JVM ends as
  private final SortedMap<Integer, ThreadGroup> running = new ConcurrentSkipListMap<>();

  ThreadLaunch(Launch launch, SharedStream out, SharedStream err) {
    this.launch = launch;
    this.err = err;
    this.ranksOut = new LabelledStream(out);
    this.ranksErr = new LabelledStream(err);
  }

  /// What becomes of a rank.
  private sealed interface News {
    /// It has failed; some of its threads may still work.
    record Failed(int rank) implements News {}

    /// None of its threads works any more.
    record Ended() implements News {}
  }

  int run() throws InterruptedException {
    Program.MainClass program = mainClass(launch.program());
    PrintStream oldOut = System.out;
    PrintStream oldErr = System.err;
    InputStream oldIn = System.in;
    Thread onExit = new Thread(this::exiting, "exit of a rank");
    Runtime.getRuntime().addShutdownHook(onExit);
    try (var _ = new ExitCalls(this::exits);
        var group = LocalGroup.open(launch.ranks(), launch.config());
        var ranks = ThreadRanks.begin(group.communicators())) {
      System.setIn(new RankInput(oldIn));
      if (launch.isUsers()) {
        System.setOut(ranksOut.stream());
        System.setErr(ranksErr.stream());
      }
      ranks.onAbort(this::abort);
      for (int rank = 0; rank < launch.ranks(); rank++) {
        start(program, group, ranks, rank);
      }
      return await();
    } finally {
      ProcessLaunch.forget(onExit);
      flush();
      System.setOut(oldOut);
      System.setErr(oldErr);
      System.setIn(oldIn);
    }
  }

  private static Program.MainClass mainClass(Program program) {
    return switch (program) {
      case Program.MainClass main -> main;
      case Program.Jar jar ->
          new Program.MainClass(mainClass(jar.file()), List.of(jar.file()), jar.arguments());
      case Program.Command command ->
          throw new IllegalArgumentException(
              "command '%s' on a backend whose ranks are threads (expected: a .java file or a jar; for a command use a backend of processes, for example --backend shm)"
                  .formatted(command.command().getFirst()));
    };
  }

  private static String mainClass(Path jar) {
    try (var file = new JarFile(jar.toFile())) {
      var manifest = file.getManifest();
      String name = manifest == null ? null : manifest.getMainAttributes().getValue("Main-Class");
      if (name == null) {
        throw new IllegalArgumentException(jar + ": no Main-Class in its manifest");
      }
      return name;
    } catch (IOException e) {
      throw new UncheckedIOException(jar + ": " + e.getMessage(), e);
    }
  }

  private void start(
      Program.MainClass program, LocalGroup group, ThreadRanks.Launch ranks, int rank) {
    var loader = loader(program.classPath()); // nobody closes it: shutdown hooks may load classes
    ranks.identify(rank, loader);
    var threads = new ThreadGroup("rank " + rank);
    running.put(rank, threads);
    Thread thread =
        Thread.ofPlatform()
            .group(threads)
            .name("rank " + rank)
            .daemon(false) // and so are those that it starts, unless it says otherwise
            .unstarted(() -> call(program, group, ranks, rank, loader));
    thread.setContextClassLoader(loader);
    thread.start();
    Thread.ofPlatform()
        .daemon()
        .name("end of rank " + rank)
        .start(() -> awaitEnd(group, rank, threads));
  }

  /// Of classes on a path and on our own.
  static URLClassLoader loader(List<Path> classPath) {
    List<URL> urls = new ArrayList<>();
    for (Path entry : classPath) {
      try {
        urls.add(entry.toUri().toURL());
      } catch (MalformedURLException e) {
        throw new IllegalArgumentException("class path entry " + entry + ": " + e.getMessage(), e);
      }
    }
    return new URLClassLoader(urls.toArray(URL[]::new), ThreadLaunch.class.getClassLoader());
  }

  private void call(
      Program.MainClass program,
      LocalGroup group,
      ThreadRanks.Launch ranks,
      int rank,
      ClassLoader loader) {
    try {
      ranks.call(
          rank,
          () -> {
            MainMethod.of(loader, program.name()).invoke(program.arguments());
            return rank;
          });
    } catch (Throwable thrown) {
      fail(group, rank, thrown);
    }
  }

  private void fail(LocalGroup group, int rank, Throwable thrown) {
    failed.putIfAbsent(rank, thrown); // first: a rank that hears of it may end the JVM
    group.fail(rank, thrown);
    news.add(new News.Failed(rank));
  }

  /// Waits outside of the rank's main thread, for whose end its others may wait.
  private void awaitEnd(LocalGroup group, int rank, ThreadGroup threads) {
    try {
      for (var left = working(threads); left.isPresent(); left = working(threads)) {
        left.get().join();
      }
      if (!failed.containsKey(rank)) {
        group.communicator(rank).close(); // daemons or not: others may wait for this rank
        group.leave(rank); // in what it has not closed, too
      }
    } catch (Throwable thrown) {
      fail(group, rank, thrown);
    } finally {
      running.remove(rank);
      news.add(new News.Ended());
    }
  }

  /// A thread for which a JVM would wait.
  private static Optional<Thread> working(ThreadGroup threads) {
    Thread[] found;
    int count;
    do {
      found = new Thread[threads.activeCount() + 10];
      count = threads.enumerate(found);
    } while (count == found.length); // there may be more
    return Arrays.stream(found, 0, count).filter(thread -> !thread.isDaemon()).findFirst();
  }

  private int await() throws InterruptedException {
    boolean isFine = true;
    long endNs = Long.MAX_VALUE;
    int open = launch.ranks();
    while (open > 0) {
      switch (poll(endNs)) {
        case null -> {
          err.println(
              "comm-cli: ranks %s still run %s s after the failure; their JVM ends now %s"
                  .formatted(
                      running.keySet(),
                      BigDecimal.valueOf(launch.graceSeconds())
                          .stripTrailingZeros()
                          .toPlainString(),
                      Launch.STOPS));
          halt();
        }
        case News.Failed(int rank) -> {
          report(rank);
          if (isFine && !launch.continues()) {
            endNs = System.nanoTime() + launch.graceNs();
          }
          isFine = false;
        }
        case News.Ended() -> open--;
      }
    }
    return isFine ? ExitCode.FINE : ExitCode.RANK_FAILED;
  }

  private @Nullable News poll(long endNs) throws InterruptedException {
    return endNs == Long.MAX_VALUE
        ? news.take()
        : news.poll(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
  }

  /// A rank calls System.exit. If the job has failed with that, or before, the JVM ends with the
  /// code that says so, after its shutdown hooks.
  private void exits(int code) {
    if (isFailure || isOfSignal(Thread.currentThread().getStackTrace())) {
      return;
    }
    if (code != ExitCode.FINE) {
      sayEnded(code);
    }
    if (code != ExitCode.FINE || !failed.isEmpty()) {
      isFailure = true;
      System.exit(ExitCode.RANK_FAILED);
    }
  }

  /// The JVM is ending while ranks run. A signal has an exit code of its own. A rank that calls
  /// System.exit ends the others with it: whatever its code was, the job has failed. So it has if
  /// one of them had failed before.
  private void exiting() {
    Optional<Map.Entry<Thread, StackTraceElement[]>> caller =
        Thread.getAllStackTraces().entrySet().stream()
            .filter(each -> isIn(each.getValue(), "java.lang.ApplicationShutdownHooks"))
            .findFirst();
    if (caller.isPresent() && isOfSignal(caller.get().getValue())) {
      return;
    }
    failed.keySet().forEach(this::report);
    flush();
    Optional<Integer> rank = caller.flatMap(each -> rank(each.getKey()));
    Set<Integer> others = new TreeSet<>(running.keySet());
    if (rank.map(others::remove).orElse(others.size() > 1) && !others.isEmpty()) {
      err.println(
          "comm-cli: %s called System.exit, which ends all ranks, while %s still ran; return from main instead"
              .formatted(rank.map(each -> "rank " + each).orElse("a rank"), others));
      halt();
    }
    if (!failed.isEmpty() && !isFailure) {
      halt();
    }
  }

  /// The rank that a thread belongs to; a virtual one is in no rank's group.
  private Optional<Integer> rank(Thread thread) {
    return running.entrySet().stream()
        .filter(each -> each.getValue().parentOf(thread.getThreadGroup()))
        .map(Map.Entry::getKey)
        .findFirst();
  }

  private static boolean isOfSignal(StackTraceElement[] stack) {
    return isIn(stack, "java.lang.Terminator");
  }

  private static boolean isIn(StackTraceElement[] stack, String className) {
    return Arrays.stream(stack).anyMatch(frame -> frame.getClassName().startsWith(className));
  }

  private void abort(int code) {
    sayEnded(code);
    halt();
  }

  private void sayEnded(int code) {
    String rank = ThreadRanks.current().map(each -> "rank " + each.rank()).orElse("a rank");
    err.println("comm-cli: %s ended with exit code %d".formatted(rank, code));
  }

  private void flush() {
    System.out.flush();
    System.err.flush();
    ranksOut.end();
    ranksErr.end();
  }

  private void halt() {
    flush();
    OwnFolder.removeAll(); // halting runs no shutdown hooks
    Runtime.getRuntime().halt(ExitCode.RANK_FAILED);
  }

  /// Says once how a rank has failed.
  private synchronized void report(int rank) {
    if (!reported.add(rank)) {
      return;
    }
    Throwable failure = Objects.requireNonNull(failed.get(rank));
    if (launch.isUsers()) { // as a JVM of its own would end
      var trace = new StringWriter();
      failure.printStackTrace(new PrintWriter(trace));
      trace.toString().lines().forEach(line -> err.println("[" + rank + "] " + line));
    } else {
      err.println(failure);
      for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
        err.println("  caused by: " + cause);
      }
    }
    err.println("comm-cli: rank " + rank + " ended with an exception");
  }
}
