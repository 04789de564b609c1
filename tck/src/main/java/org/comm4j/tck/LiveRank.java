package org.comm4j.tck;

import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.jspecify.annotations.Nullable;

/// A rank that runs checks: its communicator, which every check has for itself, and what all ranks
/// know alike.
final class LiveRank {
  private final Communicator communicator;
  private final CommConfig config;
  private final long seed;
  private final @Nullable Consumer<Throwable> death;
  private final Map<String, Object> shared;

  /// @param communicator of all ranks; the check may break or close it
  /// @param seed the same on all ranks
  /// @param death tells the others that this rank has died; null where ranks can't
  /// @param shared by ranks that are threads; else this rank's own
  LiveRank(
      Communicator communicator,
      CommConfig config,
      long seed,
      @Nullable Consumer<Throwable> death,
      @Nullable Map<String, Object> shared) {
    this.communicator = communicator;
    this.config = config;
    this.seed = seed;
    this.death = death;
    this.shared = shared == null ? new ConcurrentHashMap<>() : shared;
  }

  /// How a rank's body ends when it dies.
  static final class Death extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Death(int rank) {
      super("rank " + rank + " was told to die", null, false, false);
    }
  }

  Communicator comm() {
    return communicator;
  }

  int rank() {
    return communicator.rank();
  }

  int size() {
    return communicator.size();
  }

  CommConfig config() {
    return config;
  }

  Reduction reduction() {
    return config.reduction();
  }

  long seed() {
    return seed;
  }

  boolean can(Capability capability) {
    return communicator.capabilities().supports(capability);
  }

  /// Randomness that all ranks have alike.
  SplittableRandom random() {
    return new SplittableRandom(seed);
  }

  /// Returns when all ranks are here, without a call to the library. For checks with a death, whose
  /// ranks are threads.
  void meet(String where) {
    var here =
        (java.util.concurrent.atomic.AtomicInteger)
            shared.computeIfAbsent(where, _ -> new java.util.concurrent.atomic.AtomicInteger());
    here.incrementAndGet();
    Expect.eventually("F10", "all ranks " + where, () -> here.get() >= size());
  }

  /// Ends this rank as if it had crashed, as far as the session knows: its transport stays open
  /// until the group is closed, so no peer sees a connection end
  /// (`TransportContract.kill_onePeer_isNoFailureOfTheOthers` is about that). Never returns.
  Death die() {
    Death dying = new Death(rank());
    shared.put("died", System.nanoTime());
    java.util.Objects.requireNonNull(death).accept(dying);
    shared.put("dead", true);
    throw dying;
  }

  /// Waits until a rank has died and its group has been told, without looking at communicators.
  void meetsDeath() {
    Expect.eventually("F5", "a rank dies", () -> shared.containsKey("dead"));
  }

  /// When a rank has died, where ranks share memory.
  Optional<Long> diedNanos() {
    return Optional.ofNullable((Long) shared.get("died"));
  }

  /// Remembers that a rank has closed its last communicator.
  void hasLeft() {
    shared.put("left", System.nanoTime());
  }

  /// When that was, where ranks share memory.
  Optional<Long> leftNanos() {
    return Optional.ofNullable((Long) shared.get("left"));
  }

  /// That a communicator works.
  static void works(String rule, Communicator comm) {
    Expect.fine(
        rule,
        "a call on " + comm,
        () -> {
          long sum = comm.allReduce(comm.rank() + 1L, ReduceOp.SUM);
          Expect.equal(rule, "a sum on " + comm, sum, comm.size() * (comm.size() + 1L) / 2);
        });
  }
}
