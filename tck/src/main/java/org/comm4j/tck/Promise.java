package org.comm4j.tck;

import java.time.Duration;

/// The bounds in time that docs/contract.md promises: the only ones that checks hold a clock
/// against. To each comes what a busy machine may add, which is less than what breaking it would
/// take.
enum Promise {
  /// L1. A second and a half are all that its parts may take together, so that half a second more
  /// of it is for the machine too.
  CLOSED(Duration.ofSeconds(2), Duration.ofMillis(900)),
  /// F5. Without it a death would become known by silence, after 10 s.
  DEATH_KNOWN(Duration.ofMillis(500), Duration.ofMillis(2500)),
  /// F1 and F11 have no number; *at once* is no later than a death is known.
  AT_ONCE(Duration.ofMillis(500), Duration.ofMillis(1500));

  private final Duration promised;
  private final Duration busy;

  Promise(Duration promised, Duration busy) {
    this.promised = promised;
    this.busy = busy;
  }

  /// What a check allows.
  Duration allowed() {
    return promised.plus(busy);
  }

  /// That what began then, and has just ended, took no longer.
  ///
  /// @param startNanos by [System#nanoTime()]
  void keep(String rule, String what, long startNanos) {
    Duration took = Duration.ofNanos(System.nanoTime() - startNanos);
    Expect.that(
        rule,
        took.compareTo(allowed()) < 0,
        "%s took %d ms (expected: %d ms, and at most %d more where the machine is busy)",
        what,
        took.toMillis(),
        promised.toMillis(),
        busy.toMillis());
  }
}
