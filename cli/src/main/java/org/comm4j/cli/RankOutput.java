package org.comm4j.cli;

import java.io.File;
import java.io.FileInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Copies a rank's output, as a [RankLine] passes it on.
final class RankOutput {
  private static final int CHUNK_BYTES = 8192;
  private static final Duration TURN = Duration.ofMillis(20);

  /// A second, of which the copying threads have theirs: in one in which this process was paused,
  /// or had no processor, they read nothing either.
  private static final int SILENT_TURNS = 50;

  private static final long NOT_READING = Long.MAX_VALUE;

  /// What ranks that have ended wrote is in their pipes, which hold less.
  private static final long MOST_LATE_BYTES = 1 << 20;

  /// How long it may wait in all for more of ranks that have ended.
  private static final long MOST_LATE_NS = TimeUnit.SECONDS.toNanos(5);

  private final RankLine line;
  private final Thread thread;
  private volatile long readingSinceNs = NOT_READING; // for how long it waits for more
  private volatile boolean haveEnded; // the ranks
  private volatile boolean isCut; // though somebody still writes

  // of whoever awaits it
  private long lastSinceNs = NOT_READING;
  private int silentTurns;

  private RankOutput(Source from, SharedStream to, String label) {
    this.line = new RankLine(to, label);
    this.thread = Thread.ofPlatform().daemon().name("output " + label).unstarted(() -> pump(from));
  }

  /// Where output comes from; opening it may take until somebody writes.
  private interface Source {
    InputStream open() throws IOException;
  }

  /// Starts copying, on a thread of its own that ends with the stream.
  static RankOutput copy(InputStream from, SharedStream to, String label) {
    return start(() -> from, to, label);
  }

  /// Starts copying what is written to a named pipe, until all who write have closed it.
  static RankOutput copy(File pipe, SharedStream to, String label) {
    return start(() -> new FileInputStream(pipe), to, label);
  }

  private static RankOutput start(Source from, SharedStream to, String label) {
    var output = new RankOutput(from, to, label);
    output.thread.start();
    return output;
  }

  /// Waits until everything is copied that was written by ranks that have ended. Grandchildren may
  /// keep their pipes open: then until nothing has come for a second; or, if they go on writing,
  /// until what comes is theirs alone, or they had five.
  ///
  /// @param err where it says that some was left out
  static void await(Collection<RankOutput> outputs, SharedStream err) throws InterruptedException {
    outputs.forEach(each -> each.haveEnded = true);
    List<RankOutput> left = new ArrayList<>(outputs);
    while (!left.isEmpty()) {
      if (!left.getFirst().thread.join(TURN)) {
        left.forEach(RankOutput::turn); // of all, or each would have its second
      }
      left.removeIf(each -> !each.thread.isAlive() || each.silentTurns >= SILENT_TURNS);
    }
    if (outputs.stream().anyMatch(each -> each.isCut)) {
      err.println(
          "comm-cli: processes that ranks have started go on writing after these have ended; the rest is left out");
    }
  }

  private void turn() {
    long sinceNs = readingSinceNs;
    silentTurns = sinceNs != NOT_READING && sinceNs == lastSinceNs ? silentTurns + 1 : 0;
    lastSinceNs = sinceNs;
  }

  /// Notes when it waits for more, and not for whoever reads what it has copied; and what comes
  /// when the ranks have ended.
  private final class Noted extends FilterInputStream {
    private long lateBytes;
    private long lateNs;

    Noted(InputStream in) {
      super(in);
    }

    @Override
    public int read(byte[] bytes, int from, int length) throws IOException {
      if (isCut) {
        return -1;
      }
      boolean isLate = haveEnded;
      long startNs = System.nanoTime();
      readingSinceNs = startNs;
      int count;
      try {
        count = super.read(bytes, from, length);
      } finally {
        readingSinceNs = NOT_READING;
      }
      if (isLate) {
        lateBytes += count;
        lateNs += System.nanoTime() - startNs;
        boolean isTooLate = lateNs > MOST_LATE_NS && available() == 0; // the rest is not the ranks'
        isCut = count >= 0 && (lateBytes > MOST_LATE_BYTES || isTooLate);
      }
      return count;
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
    try (InputStream in = open(from)) {
      byte[] chunk = new byte[CHUNK_BYTES];
      for (int count = in.read(chunk); count >= 0; count = in.read(chunk)) {
        line.add(chunk, 0, count);
      }
    } catch (IOException _) {
      // the rank was killed while it wrote
    }
    line.end();
  }
}
