package org.comm4j.cli;

import java.io.Console;
import java.util.Optional;
import picocli.CommandLine.Help.Ansi;

/// Whether people look at the output.
final class Terminal {
  /// Tells a rank's program that its output is shown on a terminal although it is a pipe.
  static final String VARIABLE = "COMM4J_TERMINAL";

  private Terminal() {}

  /// Whether standard input and output are a terminal.
  static boolean isInteractive() {
    return Optional.ofNullable(System.console()).map(Console::isTerminal).orElse(false);
  }

  /// Colours on a terminal, unless `NO_COLOR` is set.
  static Ansi ansi() {
    String noColor = System.getenv("NO_COLOR");
    boolean colors = (noColor == null || noColor.isEmpty()) && isInteractive();
    return colors ? Ansi.ON : Ansi.OFF;
  }
}
