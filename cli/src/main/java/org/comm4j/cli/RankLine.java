package org.comm4j.cli;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/// What one rank writes to one stream, passed on line by line, so that lines of different ranks
/// don't mix. A line that stays unfinished for a while, such as a question, is shown as far as it
/// is, and so is one that becomes very long. One that ends with a carriage return (a progress bar)
/// is passed on as such. Thread-safe.
final class RankLine {
  /// What the JVM itself says because of the flags that we gave it.
  private static final Set<String> JVM_NOTES =
      Set.of("WARNING: Using incubator modules: jdk.incubator.vector");

  private static final String PICKED_UP = "NOTE: Picked up JDK_JAVA_OPTIONS:";

  /// Nobody reads a longer line; all ranks together may have many.
  static final int LONGEST = 1 << 18;

  /// Long, for a program that puts a line together from pieces, and short for who waits for a
  /// question.
  private static final long QUIET_NS = TimeUnit.MILLISECONDS.toNanos(500);

  /// Who shows what is unfinished may wait for the reader. In the common pool, which has one thread
  /// where there are two processors, the news that a rank has ended would wait with it.
  private static final Executor LOOKING =
      look -> Thread.ofPlatform().daemon().name("unfinished line").start(look);

  private final SharedStream to;
  private final String label;
  private final ByteArrayOutputStream line = new ByteArrayOutputStream();
  private boolean isBegun; // what came before is shown
  private boolean isWatched;
  private long lastNs; // when something came

  RankLine(SharedStream to, String label) {
    this.to = to;
    this.label = label;
  }

  synchronized void add(byte[] bytes, int from, int count) {
    for (int i = from; i < from + count; i++) {
      byte b = bytes[i];
      line.write(b);
      if (b == '\n' || b == '\r') {
        show();
        isBegun = false;
      } else if (line.size() >= LONGEST) {
        show();
      }
    }
    if (line.size() > 0) {
      lastNs = System.nanoTime();
      watch(QUIET_NS);
    }
  }

  /// Nothing more comes.
  synchronized void end() {
    if (line.size() > 0) {
      show();
    }
    to.finish(this);
    isBegun = false;
  }

  /// The bytes as they came: what they mean only the rank and the reader know.
  private void show() {
    if (isBegun || !isNote()) {
      to.write(this, label, line.toByteArray());
      isBegun = true;
    }
    line.reset();
  }

  private boolean isNote() {
    String text = text();
    return JVM_NOTES.contains(text) || text.startsWith(PICKED_UP);
  }

  private boolean mayBecomeNote() {
    String text = text();
    return text.startsWith(PICKED_UP)
        || PICKED_UP.startsWith(text)
        || JVM_NOTES.stream().anyMatch(note -> note.startsWith(text));
  }

  private String text() {
    return line.toString(StandardCharsets.UTF_8).stripTrailing();
  }

  private void watch(long delayNs) {
    if (!isWatched) {
      isWatched = true;
      CompletableFuture.delayedExecutor(delayNs, TimeUnit.NANOSECONDS, LOOKING).execute(this::look);
    }
  }

  private synchronized void look() {
    isWatched = false;
    long quietNs = System.nanoTime() - lastNs;
    if (line.size() > 0 && quietNs < QUIET_NS) {
      watch(QUIET_NS - quietNs);
    } else if (line.size() > 0 && (isBegun || !mayBecomeNote())) {
      show();
    }
  }
}
