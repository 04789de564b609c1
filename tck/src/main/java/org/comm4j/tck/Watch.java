package org.comm4j.tck;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Watches over a check that runs on the calling thread: says which one it is when it takes long,
/// and where its thread is when it has not ended in time.
final class Watch implements AutoCloseable {
  private static final Duration LONG = Duration.ofSeconds(30);

  private final LiveCheck check;
  private final Thread guarded = Thread.currentThread();
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile @Nullable RuleViolation violation;

  /// @param bound how long the check may take
  /// @param log gets what there is to say
  /// @param out gets the thread out of the check, if it can
  Watch(LiveCheck check, Duration bound, PrintWriter log, Runnable out) {
    this.check = check;
    Thread.ofPlatform().daemon().name("tck-watch").start(() -> watch(bound, log, out));
  }

  private void watch(Duration bound, PrintWriter log, Runnable out) {
    long end = System.nanoTime() + bound.toNanos();
    if (endsWithin(Math.min(LONG.toNanos(), bound.toNanos()))) {
      return;
    }
    log.println("%s has not ended yet; it may take %s".formatted(check, bound));
    log.flush();
    if (endsWithin(end - System.nanoTime())) {
      return;
    }
    RuleViolation late = RankThreads.hang(check, List.of(guarded), bound);
    violation = late;
    log.println(late.getMessage());
    log.flush();
    out.run();
  }

  private boolean endsWithin(long nanos) {
    try {
      return ended.await(nanos, TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      return true; // nobody does that but who ends the program
    }
  }

  /// That the check has not ended in time, if so.
  @Nullable RuleViolation violation() {
    return violation;
  }

  @Override
  public void close() {
    ended.countDown();
  }
}
