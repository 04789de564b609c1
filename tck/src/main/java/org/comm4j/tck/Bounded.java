package org.comm4j.tck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Parts of a test on daemon threads of their own, with a bound for all together. When one fails
/// the others are interrupted. What has not ended by then is a failure that says where each thread
/// is; it is interrupted, and left alone if that is of no use.
final class Bounded {
  /// How long the others may go on after the first failure.
  private static final Duration GRACE = Duration.ofSeconds(5);

  private final BlockingQueue<Optional<Throwable>> ends = new LinkedBlockingQueue<>();
  private final List<Thread> threads = new ArrayList<>();
  private int running;
  private @Nullable Throwable first;

  private Bounded() {}

  /// Runs parts at the same time.
  ///
  /// @param what they are together, for the message
  /// @throws Exception what the first that failed threw; what the others did is suppressed
  static void run(String what, Duration bound, List<? extends Callable<?>> parts) throws Exception {
    var all = new Bounded();
    for (int i = 0; i < parts.size(); i++) {
      all.start("tck-part-" + i, parts.get(i));
    }
    all.await(what, bound);
  }

  /// Runs one.
  ///
  /// @param what it is, for the message
  /// @return what it returned
  static <T> T call(String what, Duration bound, Callable<T> part) throws Exception {
    AtomicReference<T> result = new AtomicReference<>();
    var alone = new Bounded();
    alone.start(
        "tck-alone",
        () -> {
          result.set(part.call());
          return null;
        });
    alone.await(what, bound);
    return result.get();
  }

  /// Called by a part now and then, so that it ends.
  ///
  /// @param progress how far it is, for the message
  /// @throws AssertionError if the time is over, or another part has failed
  static void goOn(long endNanos, Supplier<String> progress) {
    if (Thread.currentThread().isInterrupted()) {
      throw new AssertionError("interrupted, since another part has failed: " + progress.get());
    }
    if (System.nanoTime() - endNanos > 0) {
      throw new AssertionError("waited in vain (expected: it ends): " + progress.get());
    }
  }

  private void start(String name, Callable<?> part) {
    running++;
    threads.add(
        Thread.ofPlatform()
            .daemon()
            .name(name)
            .start(() -> {
              try {
                part.call();
                ends.add(Optional.empty());
              } catch (Throwable e) {
                ends.add(Optional.of(e));
              }
            }));
  }

  private void await(String what, Duration bound) throws Exception {
    try {
      collect(bound);
      List<Thread> hanging = threads.stream().filter(Thread::isAlive).toList();
      if (running > 0) {
        note(
            new RuleViolation(
                "F10",
                "%s has not ended (expected: within %s); still there:%s"
                    .formatted(what, bound, RankThreads.stacks(hanging))));
        interrupt();
        collect(GRACE);
      }
    } finally {
      interrupt();
    }
    switch (first) {
      case null -> {}
      case Exception e -> throw e;
      case Error e -> throw e;
      default -> throw new AssertionError(first);
    }
  }

  /// Until all have ended, the time is over, or the grace after the first failure.
  private void collect(Duration within) throws InterruptedException {
    long end = System.nanoTime() + within.toNanos();
    while (running > 0) {
      Optional<Throwable> next = ends.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      if (next == null) {
        return;
      }
      running--;
      if (next.isPresent()) {
        note(next.get());
        interrupt();
        end = Math.min(end, System.nanoTime() + GRACE.toNanos());
      }
    }
  }

  private void interrupt() {
    threads.forEach(Thread::interrupt);
  }

  private void note(Throwable failure) {
    if (first == null) {
      first = failure;
    } else if (failure != first) {
      first.addSuppressed(failure);
    }
  }
}
