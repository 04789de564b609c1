package org.comm4j.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/// Runs one command as a user would.
final class Commands {
  /// What a command did.
  ///
  /// @param code its exit code
  record Done(int code, String out, String err) {}

  private Commands() {}

  static Done run(Object command, String... arguments) {
    var out = new StringWriter();
    var err = new StringWriter();
    int code =
        new CommandLine(command)
            .setCaseInsensitiveEnumValuesAllowed(true)
            .setOut(new PrintWriter(out))
            .setErr(new PrintWriter(err))
            .execute(arguments);
    return new Done(code, out.toString(), err.toString());
  }
}
