package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;

/// A [SessionRank] from the outside.
final class RankProcess implements SessionContract.Victim {
  private final Process process;
  private final BufferedReader out;
  private final Writer in;

  private RankProcess(Process process) {
    this.process = process;
    this.out = process.inputReader(UTF_8);
    this.in = process.outputWriter(UTF_8);
  }

  /// Starts a rank, which goes on to join.
  static RankProcess start(CommConfig config) {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"));
    command.addAll(List.of("-cp", classPath(), SessionRank.class.getName()));
    var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().keySet().removeIf(name -> name.startsWith("COMM_"));
    builder.environment().putAll(Configs.environment(config));
    try {
      return new RankProcess(builder.start());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String classPath() {
    URI own = URI.create(String.valueOf(SessionRank.class.getResource("SessionRank.class")));
    String root = own.getPath().replace("org/comm4j/tck/SessionRank.class", "");
    return Stream.of(
            root,
            System.getProperty("java.class.path", ""),
            System.getProperty("jdk.module.path", ""))
        .filter(path -> !path.isEmpty())
        .collect(Collectors.joining(File.pathSeparator));
  }

  /// What it prints next: after the start whether it has joined.
  String line() {
    try {
      return String.valueOf(out.readLine());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  String command(String line) {
    try {
      in.write(line + "\n");
      in.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return line();
  }

  /// Waits for its exit code.
  int awaitExit() throws InterruptedException {
    if (!process.waitFor(20, java.util.concurrent.TimeUnit.SECONDS)) {
      throw new AssertionError("process " + process.pid() + " does not end");
    }
    return process.exitValue();
  }

  long pid() {
    return process.pid();
  }

  @Override
  public void exchange(String key, byte[] bytes) {
    done(command("exchange %s %s".formatted(key, HexFormat.of().formatHex(bytes))));
  }

  @Override
  public void agree(String key, List<Integer> members, byte[] bytes) {
    String list = members.stream().map(String::valueOf).collect(Collectors.joining(","));
    done(command("agree %s %s %s".formatted(key, HexFormat.of().formatHex(bytes), list)));
  }

  private static void done(String answer) {
    if (!answer.equals("done")) {
      throw new AssertionError("the rank said: " + answer);
    }
  }

  @Override
  public void kill() {
    process.destroyForcibly();
  }

  @Override
  public boolean canStop() {
    return true;
  }

  @Override
  public void stop() {
    signal("STOP");
  }

  @Override
  public void resume() {
    signal("CONT");
  }

  private void signal(String name) {
    try {
      int code =
          new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start().waitFor();
      if (code != 0) {
        throw new AssertionError("kill -" + name + " failed");
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public String awaitEvicted() {
    return command("evicted");
  }

  @Override
  public void close() {
    process.destroyForcibly();
    try {
      process.waitFor();
      out.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
