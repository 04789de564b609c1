package org.comm4j.cli;

import java.nio.file.Path;
import java.util.List;

/// What every rank runs.
sealed interface Program {
  /// A class with a `main` method, on our class path and some more.
  ///
  /// @param classPath what comes on top of our own, in order
  /// @param arguments what it gets as `args`
  record MainClass(String name, List<Path> classPath, List<String> arguments) implements Program {
    public MainClass {
      classPath = List.copyOf(classPath);
      arguments = List.copyOf(arguments);
    }

    /// Whether it is a part of comm-cli.
    boolean isOurs() {
      return name.startsWith(Program.class.getPackageName() + ".");
    }
  }

  /// An executable jar, which brings its own comm4j.
  record Jar(Path file, List<String> arguments) implements Program {
    public Jar {
      arguments = List.copyOf(arguments);
    }
  }

  /// Any command.
  record Command(List<String> command) implements Program {
    public Command {
      command = List.copyOf(command);
    }
  }
}
