package org.comm4j.tck;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.MismatchedCallException;

/// What all checks of mismatches have in common.
final class Mismatches {
  private Mismatches() {}

  /// Makes a call, then barriers until the communicator is broken, since a rank may have been done
  /// with the call before anybody noticed.
  ///
  /// @return what it was broken by
  static MismatchedCallException untilBroken(String rule, Communicator comm, Expect.Action call) {
    long start = System.nanoTime();
    Throwable thrown = null;
    try {
      call.run();
      callSoon(comm);
    } catch (Throwable e) {
      thrown = e;
    }
    if (!(thrown instanceof MismatchedCallException mismatch)) {
      throw new RuleViolation(
          rule,
          "ranks disagreed, and rank %d got %s (expected: MismatchedCallException)"
              .formatted(comm.rank(), thrown == null ? "nothing" : Expect.text(thrown)),
          thrown);
    }
    Expect.that(
        rule,
        System.nanoTime() - start < Expect.SOON.toNanos(),
        "it took longer than %s",
        Expect.SOON);
    staysBroken(comm, mismatch);
    return mismatch;
  }

  /// Makes calls until one throws, at most for [Expect#SOON].
  static void callSoon(Communicator comm) {
    for (long start = System.nanoTime(); System.nanoTime() - start < Expect.SOON.toNanos(); ) {
      comm.barrier();
    }
  }

  /// That each later call throws the same at once.
  static void staysBroken(Communicator comm, CommException reason) {
    List<Expect.Action> calls = new ArrayList<>();
    calls.add(comm::barrier);
    calls.add(comm::sync);
    calls.add(() -> comm.start(new org.comm4j.api.Collective.Barrier()));
    for (Expect.Action call : calls) {
      long start = System.nanoTime();
      CommException again =
          Expect.thrown("F1", CommException.class, "a call on a broken communicator", call);
      Expect.that("F1", again == reason, "a later call threw %s (expected: %s)", again, reason);
      Promise.AT_ONCE.keep("F1", "a later call", start);
    }
    Expect.that(
        "F1",
        comm.failure().orElse(null) == reason,
        "failure() is %s (expected: %s)",
        comm.failure(),
        reason);
  }
}
