package org.comm4j.cli;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;

/// Copies a rank's output line by line, so that lines of different ranks never mix, and says whose
/// it is. A line that ends with a carriage return (a progress bar) is passed on as such.
final class RankOutput {
  /// What the JVM itself says because of the flags that we gave it.
  private static final Set<String> JVM_NOTES =
      Set.of("WARNING: Using incubator modules: jdk.incubator.vector");

  private static final String PICKED_UP = "NOTE: Picked up JDK_JAVA_OPTIONS:";

  private RankOutput() {}

  /// Where output comes from; opening it may take until somebody writes.
  private interface Source {
    InputStream open() throws IOException;
  }

  /// Starts copying, on a thread of its own that ends with the stream.
  static Thread copy(InputStream from, PrintStream to, String label) {
    return start(() -> from, to, label);
  }

  /// Starts copying what is written to a named pipe, until all who write have closed it.
  static Thread copy(File pipe, PrintStream to, String label) {
    return start(() -> new FileInputStream(pipe), to, label);
  }

  private static Thread start(Source from, PrintStream to, String label) {
    return Thread.ofPlatform().daemon().name("output " + label).start(() -> pump(from, to, label));
  }

  private static void pump(Source from, PrintStream to, String label) {
    try (var reader =
        new BufferedReader(new InputStreamReader(from.open(), StandardCharsets.UTF_8))) {
      StringBuilder line = new StringBuilder();
      for (int c = reader.read(); c >= 0; c = reader.read()) {
        if (c == '\n' || c == '\r') {
          write(to, label, line, (char) c);
          line.setLength(0);
        } else {
          line.append((char) c);
        }
      }
      if (!line.isEmpty()) {
        write(to, label, line, '\n');
      }
    } catch (IOException _) {
      // the rank was killed while it wrote
    }
  }

  private static void write(PrintStream to, String label, StringBuilder line, char end) {
    String text = line.toString();
    if (JVM_NOTES.contains(text) || text.startsWith(PICKED_UP)) {
      return;
    }
    to.print(label + text + end);
    to.flush();
  }
}
