package org.comm4j.api.spi;

import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/// A program that starts all ranks of a launch on this host, such as `mpirun`: for a backend whose
/// ranks must be started by a program of its own. A [BackendProvider] says which; `comm-cli` runs
/// it.
///
/// The ranks learn their numbers from that program, by a convention that
/// [org.comm4j.api.CommConfig#fromEnvironment] reads, and where they meet from `comm-cli`, whose
/// environment the program hands on to them. It ends when all ranks have ended, with 0 if they were
/// all fine; when a rank fails, or on SIGTERM, it ends the others. When `comm-cli` is ended it ends
/// the ranks, and the program only if it has not ended 10 s after them.
///
/// @param command starts the ranks; the command of a rank is appended to it
/// @param environment what the program gets on top of the environment of `comm-cli`, and the ranks
///   through it
/// @param rankVariable the environment variable in which each rank finds its number; processes that
///   the program starts for itself have none, which is how they are told from ranks
public record RankLauncher(
    List<String> command, Map<String, String> environment, String rankVariable) {
  private static final Pattern VARIABLE = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");

  /// Checks the command and the name of the variable.
  ///
  /// @throws IllegalArgumentException naming what is wrong
  public RankLauncher {
    command = List.copyOf(command);
    environment = Map.copyOf(environment);
    if (command.isEmpty()) {
      throw new IllegalArgumentException("command: [] (expected: a program and its arguments)");
    }
    if (!VARIABLE.matcher(rankVariable).matches()) {
      throw new IllegalArgumentException(
          "rankVariable: '%s' (expected: the name of an environment variable)"
              .formatted(rankVariable));
    }
  }
}
