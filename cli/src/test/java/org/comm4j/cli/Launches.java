package org.comm4j.cli;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import java.util.stream.Stream;

/// A `comm-cli`, or a rank, as a process of its own, whose lines can be waited for.
final class Launches implements AutoCloseable {
  private static final Duration BOUND = Duration.ofSeconds(100);

  /// For comm-cli and the ranks that it starts: they live for a second or so and share few cores,
  /// and compiling well would be most of their work.
  static final String JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" + largePages();

  private static final String PICKED_UP = "NOTE: Picked up JDK_JAVA_OPTIONS: " + JVM_OPTIONS;

  /// Ranks that hear of a failure say so and end by themselves, however busy the machine is: a test
  /// whose ranks don't end asks for a shorter grace time.
  private static final List<String> LONG_GRACE = List.of("--grace", "60");

  /// What stands before a command line of ours that gets a process group of its own, as a shell
  /// gives it one, in which Ctrl-C is not ignored (as it is in a build in the background).
  static final List<String> OWN_GROUP = List.of("setsid", "env", "--default-signal=INT");

  private final Process process;
  private final List<String> out = new ArrayList<>();
  private final List<String> err = new ArrayList<>();
  private final List<Thread> reading;
  private final List<ProcessHandle> left = new ArrayList<>();

  private Launches(Process process) {
    this.process = process;
    this.reading =
        List.of(read(process.getInputStream(), out), read(process.getErrorStream(), err));
  }

  /// Starts it.
  static Launches start(String... arguments) throws IOException {
    return start(Map.of(), arguments);
  }

  /// Starts it with some more in its environment.
  static Launches start(Map<String, String> environment, String... arguments) throws IOException {
    return start(List.of(), environment, arguments);
  }

  /// Starts it by another command.
  ///
  /// @param by what stands before the command line of ours
  static Launches start(List<String> by, Map<String, String> environment, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(by);
    command.addAll(java(Main.class));
    List<String> all = new ArrayList<>(List.of(arguments));
    if (all.getFirst().equals("run") && !all.contains("--grace")) {
      all.addAll(1, LONG_GRACE);
    }
    command.addAll(all);
    return startCommand(command, environment);
  }

  /// Starts a rank that nobody launches: its environment says who it is.
  ///
  /// @param by what stands before the command line of ours
  /// @param main a class of this class path
  static Launches startRank(
      List<String> by, Map<String, String> environment, Class<?> main, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(by);
    command.addAll(java(main));
    command.addAll(List.of(arguments));
    return startCommand(command, environment);
  }

  private static Launches startCommand(List<String> command, Map<String, String> environment)
      throws IOException {
    var builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(Launches::isOfTheUser);
    builder.environment().put("JDK_JAVA_OPTIONS", JVM_OPTIONS);
    builder.environment().putAll(environment);
    return new Launches(builder.start());
  }

  /// What the user has set would change what the test is about; a JVM says what it has picked up.
  private static boolean isOfTheUser(String variable) {
    return variable.startsWith("COMM_") || variable.equals("JAVA_TOOL_OPTIONS");
  }

  /// A command that runs a class of this class path.
  static List<String> java(Class<?> main) {
    return new ArrayList<>(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "@" + Path.of("..", "comm4j.args"),
            "-cp",
            String.join(
                File.pathSeparator,
                System.getProperty("jdk.module.path", ""),
                System.getProperty("java.class.path")),
            main.getName()));
  }

  /// Runs it to its end.
  static Commands.Done run(String... arguments) throws IOException, InterruptedException {
    try (var launch = start(arguments)) {
      return launch.await();
    }
  }

  private Thread read(InputStream from, List<String> to) {
    return Thread.ofPlatform()
        .daemon()
        .start(() -> {
          try (var lines =
              new BufferedReader(new InputStreamReader(from, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
              synchronized (this) {
                if (to.isEmpty() && line.equals(PICKED_UP)) {
                  continue; // comm-cli's own JVM says so; of the ranks' it must not be seen
                }
                to.add(line);
                notifyAll();
              }
            }
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        });
  }

  /// Waits for a line on standard output.
  String line(Predicate<String> wanted) throws InterruptedException {
    return line(out, wanted);
  }

  /// Waits for a line on standard error.
  String errorLine(Predicate<String> wanted) throws InterruptedException {
    return line(err, wanted);
  }

  private synchronized String line(List<String> of, Predicate<String> wanted)
      throws InterruptedException {
    long endNs = System.nanoTime() + BOUND.toNanos();
    while (true) {
      for (String line : of) {
        if (wanted.test(line)) {
          return line;
        }
      }
      long leftMs = TimeUnit.NANOSECONDS.toMillis(endNs - System.nanoTime());
      if (leftMs <= 0) {
        throw new AssertionError("no such line within " + BOUND + " in " + out + ", " + err);
      }
      wait(leftMs);
    }
  }

  /// Waits for the end.
  Commands.Done await() throws InterruptedException {
    return await(BOUND);
  }

  /// Waits so long for the end.
  Commands.Done await(Duration bound) throws InterruptedException {
    if (!process.waitFor(bound)) {
      throw new AssertionError("still running after " + bound + ": " + out + ", " + err);
    }
    for (Thread each : reading) {
      each.join(BOUND);
    }
    synchronized (this) {
      return new Commands.Done(process.exitValue(), String.join("\n", out), String.join("\n", err));
    }
  }

  /// Waits until one of some ends.
  ///
  /// @return that one
  static Launches firstToEnd(List<Launches> all) throws Exception {
    Stream<CompletableFuture<Launches>> ends =
        all.stream().map(each -> each.process.onExit().thenApply(_ -> each));
    var first = CompletableFuture.anyOf(ends.toArray(CompletableFuture<?>[]::new));
    return (Launches) first.get(BOUND.toSeconds(), TimeUnit.SECONDS);
  }

  /// Ends its standard input.
  void endInput() throws IOException {
    process.getOutputStream().close();
  }

  /// Ends it by a signal, of which it hears; what it says then is read.
  void terminate() {
    process.toHandle().destroy();
  }

  /// Signals all of its process group, as a terminal does; it was started with [#OWN_GROUP].
  ///
  /// @param signal for example `INT`
  void signalGroup(String signal) throws IOException, InterruptedException {
    var kill = new ProcessBuilder("kill", "-" + signal, "--", "-" + process.pid()).inheritIO();
    if (kill.start().waitFor() != 0) {
      throw new AssertionError("process group " + process.pid() + " could not be signalled");
    }
  }

  /// Ends it as the kernel would; its ranks live on until [#close].
  void kill() {
    left.addAll(process.descendants().toList());
    process.destroyForcibly();
  }

  /// Ends it, and its ranks, if it has not ended.
  @Override
  public void close() {
    left.addAll(process.descendants().toList());
    process.destroyForcibly();
    left.forEach(ProcessHandle::destroy); // in order, so that they leave nothing
    for (ProcessHandle each : left) {
      try {
        each.onExit().get(5, TimeUnit.SECONDS);
      } catch (InterruptedException | ExecutionException | TimeoutException e) {
        each.destroyForcibly();
      }
    }
  }

  /// A page that is touched first takes 14 µs on some virtual machines, and a JVM's start touches
  /// 16,000. One that may not have large ones says so on standard output.
  private static String largePages() {
    try {
      String allowed = Files.readString(Path.of("/sys/kernel/mm/transparent_hugepage/enabled"));
      return allowed.contains("[never]") ? "" : " -XX:+UseTransparentHugePages";
    } catch (IOException _) {
      return "";
    }
  }
}
