package org.comm4j.cli;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/// Copies a rank's output line by line, so that lines of different ranks never mix, and says whose
/// it is. A line that ends with a carriage return (a progress bar) is passed on as such.
final class RankOutput {
  /// What the JVM itself says because of the flags that we gave it.
  private static final Set<String> JVM_NOTES =
      Set.of("WARNING: Using incubator modules: jdk.incubator.vector");

  private static final String PICKED_UP = "NOTE: Picked up JDK_JAVA_OPTIONS:";
  private static final long POLL_MS = 20;
  private static final long SILENT_NS = TimeUnit.SECONDS.toNanos(1);
  private static final long NOT_READING = Long.MAX_VALUE;

  private final PrintStream to;
  private final String label;
  private final Thread thread;
  private volatile long readingSinceNs = NOT_READING; // for how long it waits for more

  private RankOutput(Source from, PrintStream to, String label) {
    this.to = to;
    this.label = label;
    this.thread = Thread.ofPlatform().daemon().name("output " + label).unstarted(() -> pump(from));
  }

  /// Where output comes from; opening it may take until somebody writes.
  private interface Source {
    InputStream open() throws IOException;
  }

  /// Starts copying, on a thread of its own that ends with the stream.
  static RankOutput copy(InputStream from, PrintStream to, String label) {
    return start(() -> from, to, label);
  }

  /// Starts copying what is written to a named pipe, until all who write have closed it.
  static RankOutput copy(File pipe, PrintStream to, String label) {
    return start(() -> new FileInputStream(pipe), to, label);
  }

  private static RankOutput start(Source from, PrintStream to, String label) {
    var output = new RankOutput(from, to, label);
    output.thread.start();
    return output;
  }

  /// Waits until everything is copied that was written by a rank that has ended. A grandchild may
  /// keep its pipe open: then until nothing has come for a second.
  void await() throws InterruptedException {
    long sinceNs = System.nanoTime();
    while (!thread.join(Duration.ofMillis(POLL_MS))) {
      long idleNs = readingSinceNs;
      long now = System.nanoTime();
      if (idleNs != NOT_READING && now - idleNs >= SILENT_NS && now - sinceNs >= SILENT_NS) {
        return;
      }
    }
  }

  /// Notes when it waits for more, and not for whoever reads what it has copied.
  private final class Noted extends FilterInputStream {
    Noted(InputStream in) {
      super(in);
    }

    @Override
    public int read(byte[] bytes, int from, int length) throws IOException {
      readingSinceNs = System.nanoTime();
      try {
        return super.read(bytes, from, length);
      } finally {
        readingSinceNs = NOT_READING;
      }
    }
  }

  private InputStream open(Source from) throws IOException {
    readingSinceNs = System.nanoTime();
    try {
      return new Noted(from.open());
    } finally {
      readingSinceNs = NOT_READING;
    }
  }

  private void pump(Source from) {
    try (var in = new BufferedInputStream(open(from))) {
      var line = new ByteArrayOutputStream();
      for (int b = in.read(); b >= 0; b = in.read()) {
        line.write(b);
        if (b == '\n' || b == '\r') {
          write(line);
        }
      }
      if (line.size() > 0) {
        line.write('\n');
        write(line);
      }
    } catch (IOException _) {
      // the rank was killed while it wrote
    }
  }

  /// The bytes as they came: what they mean only the rank and the reader know.
  private void write(ByteArrayOutputStream line) {
    String text = line.toString(StandardCharsets.UTF_8).stripTrailing();
    if (!JVM_NOTES.contains(text) && !text.startsWith(PICKED_UP)) {
      var whole = new ByteArrayOutputStream(); // written at once: others write there too
      whole.writeBytes(label.getBytes(StandardCharsets.US_ASCII));
      whole.writeBytes(line.toByteArray());
      to.write(whole.toByteArray(), 0, whole.size());
      to.flush();
    }
    line.reset();
  }
}
