package org.comm4j.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The command of a rank that is a process.
final class RankCommand {
  /// Of the file that users give their own `java`, too.
  private static final List<String> JVM_FLAGS = flags("/comm4j.args");

  private RankCommand() {}

  /// The command that runs a program.
  ///
  /// @param environment of the rank, to which is added what the program can't be given otherwise
  static List<String> of(Program program, Map<String, String> environment) {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    List<String> command = new ArrayList<>();
    switch (program) {
      case Program.MainClass main -> {
        command.add(java);
        command.addAll(JVM_FLAGS);
        if (main.isOurs()) {
          command.add(SerializedObjects.REFUSED);
        }
        command.add("-cp");
        command.add(
            Stream.concat(main.classPath().stream(), ownClassPath().stream())
                .map(RankCommand::entry)
                .collect(Collectors.joining(File.pathSeparator)));
        command.add(main.name());
        command.addAll(main.arguments());
      }
      case Program.Jar jar -> {
        environment.merge(
            "JDK_JAVA_OPTIONS", String.join(" ", JVM_FLAGS), (given, ours) -> given + " " + ours);
        command.addAll(List.of(java, "-jar", jar.file().toString()));
        command.addAll(jar.arguments());
      }
      case Program.Command given -> command.addAll(given.command());
    }
    return command;
  }

  private static String entry(Path place) {
    String text = place.toString();
    if (text.contains(File.pathSeparator)) {
      throw new IllegalArgumentException(
          "'%s' can't be on a class path (expected: a path without '%s'); move the program"
              .formatted(text, File.pathSeparator));
    }
    return text;
  }

  /// The class path that this JVM runs on.
  static List<Path> ownClassPath() {
    return Stream.of(ManagementFactory.getRuntimeMXBean().getClassPath().split(File.pathSeparator))
        .filter(entry -> !entry.isEmpty())
        .map(Path::of)
        .toList();
  }

  private static List<String> flags(String argumentFile) {
    try (InputStream file = RankCommand.class.getResourceAsStream(argumentFile)) {
      return new String(Objects.requireNonNull(file, argumentFile).readAllBytes(), UTF_8)
          .lines()
          .filter(line -> !line.isBlank() && !line.startsWith("#"))
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
