package org.comm4j.cli;

/// What `comm-cli` tells the shell.
final class ExitCode {
  static final int FINE = 0;
  static final int CHECK_FAILED = 1;
  static final int USAGE = 2;
  static final int UNAVAILABLE = 3;
  static final int RANK_FAILED = 4;

  private ExitCode() {}
}
