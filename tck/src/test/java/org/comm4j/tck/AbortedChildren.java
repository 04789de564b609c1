package org.comm4j.tck;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Communicator;
import org.comm4j.api.ReduceOp;

/// One rank's part of a race: communicators are made of one that is aborted meanwhile, and work on
/// all ranks or are broken on all that have them.
final class AbortedChildren {
  private AbortedChildren() {}

  /// On some ranks it is there perhaps before the abort comes, while others are still making it.
  static void run(Communicator world) throws Exception {
    for (int round = 0; round < 20; round++) {
      try (Communicator comm = world.duplicate()) {
        Optional<Communicator> child = madeDuringAnAbort(comm, round);
        long made = world.allReduce(child.isPresent() ? 1L : 0L, ReduceOp.SUM);
        boolean works = made == world.size() && works(child.orElseThrow());
        long working = world.allReduce(works ? 1L : 0L, ReduceOp.SUM);
        Expect.that("G9", working % world.size() == 0, "a child works on %d ranks", working);
        if (working == 0) {
          child.ifPresent(
              each -> Expect.eventually("G9", "it is broken", () -> each.failure().isPresent()));
        }
        child.ifPresent(Communicator::close);
      }
    }
    LiveRank.works("G9", world);
  }

  /// Rank 1 aborts the parent meanwhile, in each round a little later.
  private static Optional<Communicator> madeDuringAnAbort(Communicator comm, int round)
      throws Exception {
    if (comm.rank() != 1) {
      return madeUnlessAborted(comm, round);
    }
    CompletableFuture<Void> aborting =
        ThreadChecks.async(
            Thread.ofPlatform(),
            () -> {
              LockSupport.parkNanos(round * 20_000L);
              comm.abort("while a child is made");
            });
    try {
      return madeUnlessAborted(comm, round);
    } finally {
      ThreadChecks.join("F6", aborting);
    }
  }

  private static Optional<Communicator> madeUnlessAborted(Communicator comm, int round) {
    try {
      return Optional.of(round % 2 == 0 ? comm.duplicate() : comm.split(0, 0).orElseThrow());
    } catch (AbortedException e) {
      Expect.equal("F6", "who aborted", e.rank(), 1);
      return Optional.empty();
    }
  }

  private static boolean works(Communicator comm) {
    try {
      return comm.allReduce(1L, ReduceOp.SUM) == comm.size();
    } catch (AbortedException e) {
      return false;
    }
  }
}
