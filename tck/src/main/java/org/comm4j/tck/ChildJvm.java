package org.comm4j.tck;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.Charset;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.spi.Session;
import org.comm4j.core.transport.Transport;

/// JVMs that run a class of a backend's tests, in class-path mode, for tests of what only other
/// processes show: a small place, a death, a JVM with other options. Immutable.
public final class ChildJvm {
  private static final Duration BOUND = Duration.ofSeconds(60);

  /// How long output of what was killed is awaited.
  private static final Duration GRACE = Duration.ofSeconds(5);

  private final List<Class<?>> needed;

  /// Such JVMs.
  ///
  /// @param needed by what they run: a class of each folder or jar, besides that of the class with
  ///   `main`, the API, core and this kit
  public ChildJvm(Class<?>... needed) {
    this.needed = List.of(needed);
  }

  /// The command line of one, with assertions and native access.
  ///
  /// @param options of the JVM; one may have several words
  /// @param main the class that it runs
  /// @param arguments of that
  /// @return modifiable
  public List<String> command(List<String> options, Class<?> main, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow()); // the java of this JVM
    command.addAll(List.of("-ea", "--enable-native-access=ALL-UNNAMED"));
    options.forEach(each -> command.addAll(List.of(each.split(" "))));
    command.addAll(List.of("-cp", classPath(main), main.getName()));
    command.addAll(List.of(arguments));
    return command;
  }

  /// Runs a command to its end.
  ///
  /// @return the exit code, a colon, and all output; or, if it does not end within a minute, that
  ///   and the output so far. It is killed then, with the processes that it has started
  /// @throws IOException if it can't be started
  public static String run(List<String> command) throws IOException, InterruptedException {
    return run(command, BOUND);
  }

  static String run(List<String> command, Duration bound) throws IOException, InterruptedException {
    long end = System.nanoTime() + bound.toNanos();
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try {
      var output = new ByteArrayOutputStream();
      Thread reading = reading(process, output);
      boolean isOver = process.waitFor(bound.toNanos(), TimeUnit.NANOSECONDS);
      if (!isOver) {
        kill(process);
      }
      // processes that it has left may still write
      reading.join(Duration.ofNanos(Math.max(GRACE.toNanos(), end - System.nanoTime())));
      String text = output.toString(Charset.defaultCharset());
      return isOver ? process.exitValue() + ": " + text : "does not end: " + text;
    } finally {
      kill(process);
    }
  }

  /// Reads all output until nobody can write any more.
  private static Thread reading(Process process, ByteArrayOutputStream output) {
    return Thread.ofPlatform()
        .daemon()
        .name("tck-output")
        .start(() -> {
          try (InputStream from = process.getInputStream()) {
            from.transferTo(output);
          } catch (IOException e) {
            // it was killed
          }
        });
  }

  private static void kill(Process process) {
    process.descendants().toList().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly();
  }

  /// Where all of it was loaded from here, be it class path or modules.
  private String classPath(Class<?> main) {
    return Stream.concat(
            Stream.of(main, ChildJvm.class, Transport.class, Session.class), needed.stream())
        .map(ChildJvm::placeOf)
        .distinct()
        .collect(Collectors.joining(File.pathSeparator));
  }

  private static String placeOf(Class<?> type) {
    String name = "/" + type.getName().replace('.', '/') + ".class";
    String url = String.valueOf(type.getResource(name));
    String place = url.substring(0, url.length() - name.length());
    boolean isJar = place.startsWith("jar:");
    return Path.of(
            URI.create(isJar ? place.substring("jar:".length(), place.length() - 1) : place + "/"))
        .toString();
  }
}
