package org.comm4j.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.guice.CommLifecycle;
import org.comm4j.tck.LiveReport;
import org.comm4j.tck.LiveReport.Status;
import org.comm4j.tck.LiveVerification;

/// What each rank of [Verify] runs: rank 0 prints.
final class VerifyProgram {
  /// What rank 0 writes into the result when a rule failed.
  static final String FAILED = "failed";

  private VerifyProgram() {}

  /// Joins, checks and prints.
  ///
  /// @param arguments the seed, the format, the file for the result, then settings
  /// @throws IOException if the result can't be written
  public static void main(String[] arguments) throws IOException {
    Sentences.forUncaught();
    long[] seed = {Long.parseLong(arguments[0])};
    var format = Listing.Format.valueOf(arguments[1]);
    var log = new PrintWriter(System.err, true, StandardCharsets.UTF_8);
    CommConfig config = Environment.config(arguments, 3);
    try (CommLifecycle lifecycle = Wiring.lifecycle(config)) {
      Communicator communicator = lifecycle.communicator();
      communicator.broadcast(seed, 0); // each may have chosen its own
      LiveReport report = LiveVerification.run(communicator, config, seed[0], log);
      if (communicator.rank() == 0) {
        var out = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
        print(report, communicator, format, out, log);
        Files.writeString(Path.of(arguments[2]), report.passed() ? "passed" : FAILED);
      }
    }
  }

  /// Rows go to `out`, and so does the summary of a table; elsewhere it would be in the way.
  static void print(
      LiveReport report,
      Communicator communicator,
      Listing.Format format,
      PrintWriter out,
      PrintWriter log) {
    Listing listing = new Listing("rule", "status", "detail");
    for (LiveReport.Row row : report.rows()) {
      listing.row(row.rule(), text(row.status()), row.detail());
    }
    listing.print(format, out);
    String summary =
        "%s on %d ranks, seed %d: %d rules passed, %d failed, %d declared, %d not run"
            .formatted(
                communicator.backend(),
                communicator.size(),
                report.seed(),
                report.count(Status.PASSED),
                report.count(Status.FAILED),
                report.count(Status.DECLARED),
                report.count(Status.NOT_RUN));
    if (format == Listing.Format.TABLE) {
      out.println();
      out.println(summary);
    } else {
      log.println("comm-cli: " + summary);
    }
  }

  private static String text(Status status) {
    return status.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
