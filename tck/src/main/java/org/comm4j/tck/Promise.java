package org.comm4j.tck;

import java.time.Duration;
import java.util.List;

/// The bounds in time that docs/contract.md promises: the only ones that checks, and tests of
/// backends, hold a clock against. To each comes what a busy machine may add, which is less than
/// what breaking it would take.
public enum Promise {
  /// L1. A second and a half are all that its parts may take together, so that half a second more
  /// of it is for the machine too.
  CLOSED(Duration.ofSeconds(2), Duration.ofMillis(900)),
  /// F5. Without it a death would become known by silence, after 10 s.
  DEATH_KNOWN(Duration.ofMillis(500), Duration.ofMillis(2500)),
  /// F1 and F11 have no number; *at once* is no later than a death is known.
  AT_ONCE(Duration.ofMillis(500), Duration.ofMillis(1500)),
  /// A rank that can't join hears why, as do those that wait for one with which they can't form a
  /// group; and one that all others wait for is in. Without it they would wait for the join
  /// deadline, or for a stranger's 5 s.
  JOIN_ANSWERED(Duration.ofSeconds(1), Duration.ofMillis(1500)),
  /// A transport that finds no space for what it needs. Without it whoever waits for the other side
  /// would do so for the deadline of the call, or for 10 s of a library's.
  NO_SPACE(Duration.ofSeconds(1), Duration.ofSeconds(2));

  /// How much slower than promised the usual case may be on a busy machine.
  private static final int BUSY_FACTOR = 2;

  private final Duration promised;
  private final Duration busy;

  Promise(Duration promised, Duration busy) {
    this.promised = promised;
    this.busy = busy;
  }

  /// {@return what a check allows}
  public Duration allowed() {
    return promised.plus(busy);
  }

  /// That what began then, and has just ended, took no longer.
  ///
  /// @param rule in docs/contract.md, or what else promises it
  /// @param what took so long, for the message
  /// @param startNanos by [System#nanoTime()]
  /// @throws AssertionError if it took longer
  public void keep(String rule, String what, long startNanos) {
    keep(rule, what, Duration.ofNanos(System.nanoTime() - startNanos));
  }

  /// That something took no longer.
  ///
  /// @param rule in docs/contract.md, or what else promises it
  /// @param what took so long, for the message
  /// @param took how long
  /// @throws AssertionError if that is longer
  public void keep(String rule, String what, Duration took) {
    Expect.that(
        rule,
        took.compareTo(allowed()) < 0,
        "%s took %d ms (expected: %d ms, and at most %d more where the machine is busy)",
        what,
        took.toMillis(),
        promised.toMillis(),
        busy.toMillis());
  }

  /// That none of several times is longer, and the usual one, their median, at most twice what is
  /// promised: a machine that is busy now and then delays few of them.
  ///
  /// @param rule in docs/contract.md, or what else promises it
  /// @param what took so long each time, for the message
  /// @param took how long, one or more
  /// @throws AssertionError if they were longer
  public void keepUsually(String rule, String what, List<Duration> took) {
    took.forEach(each -> keep(rule, what, each));
    Duration median = took.stream().sorted().toList().get(took.size() / 2);
    Expect.that(
        rule,
        median.compareTo(promised.multipliedBy(BUSY_FACTOR)) <= 0,
        "%s took %s, in the median %d ms (expected: %d ms, and twice as long where the machine is busy)",
        what,
        took,
        median.toMillis(),
        promised.toMillis());
  }
}
