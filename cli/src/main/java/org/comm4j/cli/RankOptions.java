package org.comm4j.cli;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The option of every command that starts ranks of our own.
final class RankOptions {
  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description = "Its name; COMM_BACKEND unless given, else the best one here.")
  @Nullable String name;

  RankOptions() {}

  String backend() {
    String given = name;
    return given != null ? given : Environment.config().backend();
  }
}
