package org.comm4j.tck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PeerFailedException;
import org.jspecify.annotations.Nullable;

/// Runs a check on a group whose ranks are threads: one thread per rank, with a bound for all. A
/// rank that fails is made known to the others, so that they don't wait for it.
final class RankThreads {
  /// How long the others may go on after the first failure.
  private static final Duration GRACE = Duration.ofSeconds(5);

  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(20);

  private record Failure(int rank, Throwable cause) {}

  private final LocalGroup group;
  private final ConcurrentLinkedQueue<Failure> failures = new ConcurrentLinkedQueue<>();

  private RankThreads(LocalGroup group) {
    this.group = group;
  }

  /// Runs a check and closes the group.
  ///
  /// @param bound for all ranks together
  /// @throws RuleViolation the failure that the others follow from
  static void run(LiveCheck check, LocalGroup group, CommConfig config, long seed, Duration bound) {
    Throwable failure = null;
    try {
      failure = new RankThreads(group).run(check, config, seed, bound);
    } finally {
      RuleViolation violation = closed(group, bound);
      failure = failure == null ? violation : failure;
    }
    rethrow(failure);
  }

  /// Runs a check, and closes the group only if it fails.
  ///
  /// @param bound for all ranks together
  /// @throws RuleViolation the failure that the others follow from
  static void runOpen(
      LiveCheck check, LocalGroup group, CommConfig config, long seed, Duration bound) {
    try {
      rethrow(new RankThreads(group).run(check, config, seed, bound));
    } catch (RuntimeException | Error e) {
      closed(group, bound);
      throw e;
    }
  }

  /// Closes all communicators at once, as ranks do, and then the group.
  ///
  /// @throws RuleViolation if that fails
  static void close(LocalGroup group) {
    rethrow(closed(group, LONGEST_CLOSE));
  }

  private static @Nullable RuleViolation closed(LocalGroup group, Duration bound) {
    Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
    List<Thread> closing =
        group.communicators().stream()
            .map(each -> daemon("tck-close-" + each.rank(), each::close, thrown))
            .toList();
    RuleViolation hang = endlessClose(closing, bound);
    if (hang == null) { // else the group would wait too
      hang = endlessClose(List.of(daemon("tck-close", group::close, thrown)), bound);
    }
    Throwable first = thrown.peek();
    if (hang == null && first != null) {
      return new RuleViolation("L1", "close() threw " + first, first);
    }
    return hang;
  }

  private static Thread daemon(String name, Runnable action, Queue<Throwable> thrown) {
    return Thread.ofPlatform()
        .daemon()
        .name(name)
        .start(() -> {
          try {
            action.run();
          } catch (Throwable e) {
            thrown.add(e);
          }
        });
  }

  private static @Nullable RuleViolation endlessClose(List<Thread> closing, Duration bound) {
    long end = System.nanoTime() + bound.toNanos();
    boolean interrupted = false;
    for (Thread thread : closing) {
      while (thread.isAlive() && System.nanoTime() - end < 0) {
        try {
          thread.join(Duration.ofNanos(Math.max(1, end - System.nanoTime())));
        } catch (InterruptedException _) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    List<Thread> hanging = closing.stream().filter(Thread::isAlive).toList();
    return hanging.isEmpty()
        ? null
        : new RuleViolation(
            "L1 F10",
            "close() has not returned within %s; still there:%s".formatted(bound, stacks(hanging)));
  }

  private static void rethrow(@Nullable Throwable failure) {
    switch (failure) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new AssertionError(failure);
    }
  }

  private @Nullable Throwable run(LiveCheck check, CommConfig config, long seed, Duration bound) {
    Map<String, Object> shared = new ConcurrentHashMap<>();
    List<Thread> threads =
        IntStream.range(0, group.size())
            .mapToObj(rank ->
                Thread.ofPlatform()
                    .daemon()
                    .name("tck-rank-" + rank)
                    .start(() -> body(check, rank, config, seed, shared)))
            .toList();
    long end = System.nanoTime() + bound.toNanos();
    for (Thread thread : threads) {
      join(thread, end);
    }
    List<Thread> hanging = threads.stream().filter(Thread::isAlive).toList();
    if (hanging.isEmpty()) {
      return causal();
    }
    RuleViolation hang = hang(check, hanging, bound);
    Throwable before = causal();
    if (before != null) {
      before.addSuppressed(hang);
    }
    getOut(hanging);
    if (before != null) {
      return before;
    }
    failures.forEach(failure -> hang.addSuppressed(failure.cause())); // they follow from it
    return hang;
  }

  /// Ends what has not ended by itself, if it can be ended.
  private void getOut(List<Thread> hanging) {
    hanging.forEach(Thread::interrupt);
    List<Thread> aborting =
        group.communicators().stream()
            .map(comm ->
                daemon(
                    "tck-abort-" + comm.rank(),
                    () -> comm.abort("the check has run out of time"),
                    new ConcurrentLinkedQueue<>()))
            .toList();
    long end = System.nanoTime() + GRACE.toNanos();
    for (Thread thread : Stream.concat(aborting.stream(), hanging.stream()).toList()) {
      join(thread, end);
    }
  }

  /// That a check has not ended, and where it is.
  static RuleViolation hang(LiveCheck check, List<Thread> hanging, Duration bound) {
    String rules =
        check.rules().contains("F10")
            ? String.join(" ", check.rules())
            : String.join(" ", check.rules()) + " F10";
    return new RuleViolation(
        rules,
        "%s has not ended within %s; still there:%s"
            .formatted(check.name(), bound, stacks(hanging)));
  }

  /// The names of threads and where they are.
  static String stacks(List<Thread> hanging) {
    StringBuilder stacks = new StringBuilder();
    for (Thread thread : hanging) {
      stacks.append(System.lineSeparator()).append("  ").append(thread.getName()).append(':');
      Arrays.stream(thread.getStackTrace())
          .limit(12)
          .forEach(frame -> stacks.append(System.lineSeparator()).append("    at ").append(frame));
    }
    return stacks.toString();
  }

  private void join(Thread thread, long endNanos) {
    boolean interrupted = false;
    long graceEnd = 0;
    while (thread.isAlive()) {
      if (!failures.isEmpty() && graceEnd == 0) {
        graceEnd = System.nanoTime() + GRACE.toNanos();
      }
      long end = graceEnd == 0 ? endNanos : Math.min(endNanos, graceEnd);
      long left = end - System.nanoTime();
      if (left <= 0) {
        break;
      }
      try {
        thread.join(Duration.ofNanos(Math.min(left, 100_000_000L)));
      } catch (InterruptedException e) {
        interrupted = true;
        break;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void body(
      LiveCheck check, int rank, CommConfig config, long seed, Map<String, Object> shared) {
    try {
      check.run(
          new LiveRank(
              group.communicator(rank), config, seed, cause -> group.fail(rank, cause), shared));
    } catch (LiveRank.Death death) {
      // as it should
    } catch (Throwable e) {
      failures.add(new Failure(rank, e));
      group.fail(rank, e);
    }
  }

  /// The failure that is not another one's consequence.
  private @Nullable Throwable causal() {
    List<Failure> all = new ArrayList<>(failures);
    if (all.isEmpty()) {
      return null;
    }
    Failure first =
        all.stream()
            .filter(failure -> !isConsequence(failure))
            .findFirst()
            .orElseGet(all::getFirst);
    for (Failure other : all) {
      if (other != first && other.cause() != first.cause()) {
        first.cause().addSuppressed(other.cause());
      }
    }
    return first.cause();
  }

  private static boolean isConsequence(Failure failure) {
    for (Throwable e = failure.cause(); e != null; e = e.getCause()) {
      if (e instanceof PeerFailedException
          || (e instanceof AbortedException aborted && aborted.rank() != failure.rank())) {
        return true;
      }
    }
    return false;
  }
}
