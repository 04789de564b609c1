package org.comm4j.cli;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/// What the kernel tells this user of a process; of other users' processes, of those that have
/// ended, and on systems that do not tell, nothing.
final class ProcessFacts {
  private static final Path PROCESSES = Path.of("/proc");

  private final Path folder;

  private ProcessFacts(Path folder) {
    this.folder = folder;
  }

  /// Whether the system tells.
  static boolean areKnown() {
    return Files.exists(PROCESSES);
  }

  static ProcessFacts of(ProcessHandle process) {
    return new ProcessFacts(PROCESSES.resolve(Long.toString(process.pid())));
  }

  /// Whether it has ended, and nobody has asked how: as where the first process of a container
  /// looks after nobody.
  boolean isZombie() {
    String text = text("stat"); // the name may have any letters, brackets too
    return text.startsWith(" Z", text.lastIndexOf(')') + 1);
  }

  /// Whether it was started with a variable in its environment.
  boolean hasVariable(String name) {
    return environment().contains("\0" + name + "=");
  }

  boolean hasVariable(String name, String value) {
    return environment().contains("\0" + name + "=" + value + "\0");
  }

  private String environment() {
    return "\0" + text("environ");
  }

  private String text(String file) {
    try {
      return Files.readString(folder.resolve(file), StandardCharsets.ISO_8859_1);
    } catch (IOException _) {
      return "";
    }
  }
}
