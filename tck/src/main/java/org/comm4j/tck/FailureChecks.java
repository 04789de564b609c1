package org.comm4j.tck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.Shrunk;

/// What happens when something goes wrong.
final class FailureChecks {
  private FailureChecks() {}

  /// Calls until the communicator is broken, and says by what. With little data and with much:
  /// which of them comes first, and so most probably fails, differs from rule to rule.
  private static <T extends CommException> T untilBroken(
      LiveRank r, String rule, Class<T> type, Communicator comm) {
    List<FailingInput> inputs =
        List.of(FailingInput.of(r, FailingInput.FEW), FailingInput.of(r, FailingInput.MANY));
    T reason =
        Expect.thrown(
            rule,
            type,
            "calling until the communicator is broken",
            () -> callSoon(comm, inputs, rule.hashCode() & 1));
    inputs.forEach(FailingInput::isUntouched);
    Mismatches.staysBroken(comm, reason);
    return reason;
  }

  private static void callSoon(Communicator comm, List<FailingInput> inputs, int first) {
    long start = System.nanoTime();
    for (int call = first; System.nanoTime() - start < Expect.SOON.toNanos(); call++) {
      FailingInput input = inputs.get(call & 1);
      comm.allReduce(input.data(), input.output(), ReduceOp.SUM);
    }
  }

  @Rule({"F6", "F1", "F2"})
  static void abort_anyRank_breaksAll(LiveRank r) {
    Communicator comm = r.comm();
    int by = r.size() - 1;
    if (r.rank() == by) {
      comm.abort("enough of this");
    }
    AbortedException reason = untilBroken(r, "F6", AbortedException.class, comm);
    Expect.equal("F6", "who aborted", reason.rank(), by);
    Expect.says("F6", reason, "rank " + by, "enough of this");
  }

  @Rule({"F6", "F10"})
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void abort_othersWait_endsTheirCalls(LiveRank r) {
    Communicator comm = r.comm();
    if (r.rank() == 0) {
      int[] got = new int[1];
      for (int rank = 1; rank < r.size(); rank++) {
        comm.receive(CommData.of(got), Communicator.ANY_SOURCE, 1);
      }
      comm.abort("while you wait");
      Expect.equal(
          "F6",
          "failure()",
          comm.failure().map(Object::getClass).orElse(null),
          AbortedException.class);
    } else {
      comm.start(new PointToPoint.Send(CommData.of(1), 0, 1)); // its end and the abort may cross
      AbortedException reason =
          Expect.thrown(
              "F6",
              AbortedException.class,
              "a call in progress",
              () -> comm.receive(CommData.of(new int[1]), 0, 2));
      Expect.equal("F6", "who aborted", reason.rank(), 0);
      Mismatches.staysBroken(comm, reason);
    }
  }

  @Rule("F6")
  @Needs(ranks = 3, death = true, capabilities = Capability.FAILURE_DETECTION)
  static void abort_anotherRankDiesOfIt_isTheReasonForTheOthers(LiveRank r) {
    Communicator comm = r.comm();
    LiveRank.works("F6", comm);
    r.meet("before the abort");
    if (r.rank() == 1) {
      comm.abort("enough of this");
    }
    if (r.rank() == 0) {
      untilBroken(r, "F6", AbortedException.class, comm);
      throw r.die();
    }
    r.meetsDeath(); // so that it hears of both at once
    AbortedException reason = untilBroken(r, "F6", AbortedException.class, comm);
    Expect.equal("F6", "who aborted", reason.rank(), 1);
  }

  @Rule({"T14", "F1", "F2", "G9"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.USER_DEFINED_OPERATORS, Capability.SPLIT})
  static void userDefined_throws_failsOnAllRanks(LiveRank r) {
    for (Throws kind : Throws.values()) {
      for (boolean isStarted : new boolean[] {false, true}) {
        tryOperator(r, kind, isStarted);
        LiveRank.works("G9", r.comm());
      }
    }
  }

  /// What an operator throws.
  private enum Throws {
    EXCEPTION,
    ERROR,
    OF_THE_LIBRARY
  }

  private static void tryOperator(LiveRank r, Throws kind, boolean isStarted) {
    FailingInput input =
        FailingInput.of(r, kind == Throws.EXCEPTION ? FailingInput.MANY : FailingInput.FEW);
    try (Communicator comm = r.comm().duplicate()) {
      List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
      ReduceOp op =
          ReduceOp.of(
              "throws",
              (source, accumulator, type, count) -> {
                switch (kind) {
                  case EXCEPTION -> throw noted(thrown, new ArithmeticException("by the operator"));
                  case ERROR -> throw noted(thrown, new StackOverflowError("by the operator"));
                  case OF_THE_LIBRARY ->
                      throw noted(thrown, new ConcurrentUseException("by the operator"));
                }
              });
      AbortedException reason =
          Expect.thrown(
              "T14",
              AbortedException.class,
              "a call whose operator throws",
              () -> {
                if (isStarted) {
                  join(comm.start(new Collective.AllReduce(input.data(), input.output(), op)));
                } else {
                  comm.allReduce(input.data(), input.output(), op);
                }
                Mismatches.callSoon(comm);
              });
      input.isUntouched();
      Expect.says("T14", reason, "rank " + reason.rank(), "by the operator", "throws");
      if (reason.rank() == r.rank()) {
        Expect.that(
            "T14", thrown.contains(reason.getCause()), "the cause is %s", reason.getCause());
      }
      Mismatches.staysBroken(comm, reason);
    }
  }

  private static <T extends Throwable> T noted(List<Throwable> all, T thrown) {
    all.add(thrown);
    return thrown;
  }

  /// Waits in a future.
  private static void join(Request request) throws Exception {
    try {
      request.toCompletableFuture().get(Expect.SOON.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception cause ? cause : e;
    }
  }

  @Rule({"F4", "F1", "F2", "F10"})
  @Needs(ranks = 2, setting = Needs.Setting.SHORT_TIMEOUT)
  static void collective_lateRank_isNamedAtTheDeadline(LiveRank r) {
    Communicator comm = r.comm();
    int late = 1;
    long deadline = r.config().timeout().toNanos();
    long start = System.nanoTime(); // before anybody's next call, however slow this rank is
    LiveRank.works("F4", comm);
    if (r.rank() >= late) { // others than that one come in time, though late
      long until = r.rank() == late ? deadline + Expect.SOON.toNanos() : deadline / 8;
      while (comm.failure().isEmpty() && System.nanoTime() - start < until) {
        LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(200)); // the others need processors
      }
    }
    CollectiveTimeoutException reason =
        untilBroken(r, "F4", CollectiveTimeoutException.class, comm);
    Expect.equal("F4", "who is missing", reason.missing(), List.of(late));
    isAtTheDeadline(r, start);
    Expect.says("F4", reason, "allReduce", Integer.toString(late));
  }

  @Rule({"F4", "F10"})
  @Needs(ranks = 2, setting = Needs.Setting.SHORT_TIMEOUT, capabilities = Capability.POINT_TO_POINT)
  static void receive_nobodySends_endsAtTheDeadline(LiveRank r) {
    Communicator comm = r.comm();
    CollectiveTimeoutException reason;
    if (r.rank() == 0) {
      reason =
          Expect.thrown(
              "F4",
              CollectiveTimeoutException.class,
              "a receive that nobody sends to",
              () -> comm.receive(CommData.of(new int[1]), 1, 9));
    } else {
      Expect.eventually("F4", "the others hear of it", () -> comm.failure().isPresent());
      reason = (CollectiveTimeoutException) comm.failure().orElseThrow();
    }
    Expect.equal("F4", "who is missing", reason.missing(), List.of(1));
  }

  /// All of it at the same time, on communicators of its own, so that one deadline is waited for.
  @Rule({"F4", "F10"})
  @Needs(
      ranks = 2,
      setting = Needs.Setting.SHORT_TIMEOUT,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void rank_doesNotCome_endsEveryKindOfCallAtTheDeadline(LiveRank r) throws Exception {
    long start = System.nanoTime(); // before anybody's call, however late its thread begins here
    List<CompletableFuture<Void>> ends = new ArrayList<>();
    List<Communicator> comms = new ArrayList<>();
    for (Late _ : Late.values()) {
      comms.add(r.comm().duplicate());
    }
    for (Late call : Late.values()) {
      Communicator comm = comms.get(call.ordinal());
      ends.add(ThreadChecks.async(Thread.ofPlatform(), () -> isLate(r, call, comm, start)));
    }
    for (CompletableFuture<Void> end : ends) {
      ThreadChecks.join("F4", end);
    }
    comms.forEach(Communicator::close);
  }

  /// A call that needs rank 1.
  private enum Late {
    DUPLICATE,
    SPLIT,
    LONG_SEND,
    FUTURE_OF_A_RECEIVE,
    FUTURE_OF_A_COLLECTIVE;

    void call(Communicator comm) throws Exception {
      switch (this) {
        case DUPLICATE -> comm.duplicate().close();
        case SPLIT -> comm.split(0, 0).orElseThrow().close();
        case LONG_SEND -> comm.send(CommData.of(new long[2_000_000]), 1, 1);
        case FUTURE_OF_A_RECEIVE ->
            join(comm.start(new PointToPoint.Receive(CommData.of(new int[1]), 1, 1)));
        case FUTURE_OF_A_COLLECTIVE -> join(comm.start(new Collective.Barrier()));
      }
    }
  }

  private static void isLate(LiveRank r, Late call, Communicator comm, long startNanos) {
    if (r.rank() == 1) {
      Expect.eventually("F4", "it hears of it", () -> comm.failure().isPresent());
    } else {
      CollectiveTimeoutException reason =
          Expect.thrown(
              "F4",
              CollectiveTimeoutException.class,
              "a call that needs a rank that does not come: " + call,
              () -> call.call(comm));
      Expect.equal("F4", "who is missing: " + call, reason.missing(), List.of(1));
    }
    isAtTheDeadline(r, startNanos);
  }

  private static void isAtTheDeadline(LiveRank r, long startNanos) {
    long deadline = r.config().timeout().toNanos();
    long took = System.nanoTime() - startNanos;
    Expect.that(
        "F4",
        took > deadline * 9 / 10 && took < deadline + 10_000_000_000L,
        "it took %d ms (expected: about %d)",
        took / 1_000_000,
        deadline / 1_000_000);
  }

  /// Nobody waits for itself, nor for a rank that has left.
  @Rule({"F4", "F11"})
  @Needs(
      ranks = 3,
      death = true,
      setting = Needs.Setting.SHORT_TIMEOUT,
      capabilities = {Capability.FAILURE_DETECTION, Capability.POINT_TO_POINT})
  static void anySource_nobodySends_namesTheOthersWhoAreThere(LiveRank r) {
    Communicator comm = r.comm();
    int leaver = r.size() - 1;
    if (r.rank() == leaver) {
      comm.close();
    }
    r.meet("after one has left");
    List<Integer> others = IntStream.range(1, leaver).boxed().toList();
    if (r.rank() == 0) {
      CollectiveTimeoutException reason =
          Expect.thrown(
              "F4",
              CollectiveTimeoutException.class,
              "a receive that nobody sends to",
              () -> comm.receive(CommData.of(new int[1]), Communicator.ANY_SOURCE, 9));
      Expect.equal("F4", "who is missing", reason.missing(), others);
    } else if (r.rank() == 1 && r.can(Capability.SHRINK)) { // at the same time
      CollectiveTimeoutException reason =
          Expect.thrown(
              "F4",
              CollectiveTimeoutException.class,
              "shrink() to which others don't come",
              comm::shrink);
      List<Integer> rest = IntStream.range(0, leaver).filter(rank -> rank != 1).boxed().toList();
      Expect.equal("F4", "who is missing in shrink()", reason.missing(), rest);
    }
    r.meet("after the deadline");
  }

  @Rule({"F5", "F1", "F2", "F10"})
  @Needs(ranks = 2, death = true, capabilities = Capability.FAILURE_DETECTION)
  static void rank_diesInACall_isNamedOnAll(LiveRank r) {
    death(r, 1);
  }

  @Rule({"F5", "F1"})
  @Needs(ranks = 2, death = true, capabilities = Capability.FAILURE_DETECTION)
  static void rankZero_dies_isNamedOnAll(LiveRank r) {
    death(r, 0);
  }

  private static void death(LiveRank r, int victim) {
    Communicator comm = r.comm();
    LiveRank.works("F5", comm);
    r.meet("before the death");
    if (r.rank() == victim) {
      throw r.die();
    }
    PeerFailedException reason = untilBroken(r, "F5", PeerFailedException.class, comm);
    Expect.equal("F5", "who failed", reason.ranks(), List.of(victim));
    Expect.equal("F5", "who failed, in the launch", reason.worldRanks(), List.of(victim));
    Expect.that("F5", !reason.evidence().isBlank(), "there is no evidence");
    Expect.says("F5", reason, Integer.toString(victim));
    r.diedNanos().ifPresent(died -> Promise.DEATH_KNOWN.keep("F5", "to hear of the death", died));
  }

  @Rule("F5")
  @Needs(
      ranks = 2,
      death = true,
      capabilities = {Capability.FAILURE_DETECTION, Capability.POINT_TO_POINT})
  static void rank_diesWhileAwaited_endsEveryKindOfCall(LiveRank r) {
    Communicator comm = r.comm();
    int victim = r.size() - 1;
    LiveRank.works("F5", comm);
    r.meet("before the death");
    if (r.rank() == victim) {
      throw r.die();
    }
    Expect.Action call =
        switch (r.rank() % 3) {
          case 0 -> () -> comm.receive(CommData.of(new int[1]), victim, 1);
          case 1 -> comm::barrier;
          default -> () -> comm.start(new PointToPoint.Probe(victim, 1)).await();
        };
    PeerFailedException reason =
        Expect.thrown("F5", PeerFailedException.class, "a call in progress", call);
    Expect.equal("F5", "who failed", reason.ranks(), List.of(victim));
  }

  @Rule({"F11", "F1", "F10"})
  @Needs(ranks = 2, death = true, capabilities = Capability.FAILURE_DETECTION)
  static void rank_leavesWhileOthersAreInACollective_isNamedAtOnce(LiveRank r) {
    Communicator comm = r.comm();
    int leaver = r.size() - 1;
    LiveRank.works("F11", comm);
    r.meet("before one leaves");
    if (r.rank() == leaver) {
      comm.close();
      r.hasLeft();
      return;
    }
    PeerFailedException reason =
        Expect.thrown("F11", PeerFailedException.class, "a barrier without one", comm::barrier);
    r.leftNanos() // else it leaves yet
        .ifPresent(left -> Promise.AT_ONCE.keep("F11", "to hear of the leave", left));
    Expect.equal("F11", "who left", reason.ranks(), List.of(leaver));
    Expect.equal("F11", "who left, in the launch", reason.worldRanks(), List.of(leaver));
    Expect.says("F11", reason, Integer.toString(leaver), "left");
    Mismatches.staysBroken(comm, reason);
  }

  @Rule({"F11", "P4", "P8"})
  @Needs(
      ranks = 3,
      death = true,
      capabilities = {Capability.FAILURE_DETECTION, Capability.POINT_TO_POINT})
  static void anySource_someLeave_waitsForTheOthers(LiveRank r) {
    Communicator comm = r.comm();
    int last = r.size() - 1;
    if (r.rank() != 0) {
      comm.send(CommData.of(r.rank()), 0, 1);
      r.meet("before some leave");
      if (r.rank() == last) {
        r.meet("when some have left");
        r.meet("before the last one leaves");
        comm.send(CommData.of(r.rank()), 0, 2);
      }
      comm.close();
      if (r.rank() != last) {
        r.meet("when some have left");
        r.meet("before the last one leaves");
      }
      return;
    }
    r.meet("before some leave");
    int[] got = new int[1];
    for (int i = 1; i <= last; i++) {
      Received received = comm.receive(CommData.of(got), Communicator.ANY_SOURCE, 1);
      Expect.equal("P4", "what the sender says", got[0], received.source());
    }
    r.meet("when some have left");
    Request receive =
        comm.start(new PointToPoint.Receive(CommData.of(got), Communicator.ANY_SOURCE, 2));
    Expect.thrown(
        "F11",
        TimeoutException.class,
        "a receive that one rank may yet end",
        () -> receive.await(Duration.ofMillis(300)));
    r.meet("before the last one leaves");
    Expect.fine("F11", "a receive that one rank ends", receive::await);
    Expect.equal("F11", "what it got", got[0], last);
    PeerFailedException reason =
        Expect.thrown(
            "F11",
            PeerFailedException.class,
            "a probe that nobody can end",
            () -> comm.start(new PointToPoint.Probe(Communicator.ANY_SOURCE, 3)).await());
    Expect.equal("F11", "how many left", reason.ranks().size(), last);
    Expect.says("F11", reason, "probe", "left");
  }

  @Rule({"F8", "F5", "G9"})
  @Needs(
      ranks = 3,
      death = true,
      capabilities = {Capability.FAILURE_DETECTION, Capability.SPLIT})
  static void rank_dies_breaksOnlyItsOwnGroups(LiveRank r) {
    Communicator comm = r.comm();
    int victim = r.size() - 1;
    boolean withVictim = r.rank() >= r.size() - 2;
    // in the part the numbers are others than in the launch
    Communicator part = comm.split(withVictim ? 1 : 0, -r.rank()).orElseThrow();
    LiveRank.works("F8", part);
    comm.barrier();
    r.meet("before the death");
    if (r.rank() == victim) {
      throw r.die();
    }
    untilBroken(r, "F8", PeerFailedException.class, comm);
    if (withVictim) {
      PeerFailedException reason = untilBroken(r, "F8", PeerFailedException.class, part);
      Expect.equal("F5", "who failed, in the part", reason.ranks(), List.of(0));
      Expect.equal("F5", "who failed, in the launch", reason.worldRanks(), List.of(victim));
    } else {
      LiveRank.works("F8", part);
    }
    part.close();
  }

  @Rule({"F7", "F5"})
  @Needs(
      ranks = 3,
      death = true,
      capabilities = {Capability.FAILURE_DETECTION, Capability.SHRINK})
  static void shrink_afterDeaths_worksForTheSurvivors(LiveRank r) {
    Communicator comm = r.comm();
    LiveRank.works("F7", comm);
    r.meet("before the death");
    if (r.rank() == 1) {
      throw r.die();
    }
    CommException failure = untilBroken(r, "F7", PeerFailedException.class, comm);
    Shrunk shrunk = comm.shrink();
    List<Integer> survivors =
        IntStream.range(0, r.size()).filter(rank -> rank != 1).boxed().toList();
    Expect.equal("F7", "the old ranks", shrunk.oldRanks(), survivors);
    Expect.equal("F7", "the epoch", shrunk.epoch(), 1);
    Communicator rest = shrunk.communicator();
    Expect.equal("F7", "size", rest.size(), r.size() - 1);
    Expect.equal("F7", "rank", rest.rank(), survivors.indexOf(r.rank()));
    LiveRank.works("F7", rest);
    Expect.that(
        "F7", comm.failure().orElse(null) == failure, "the broken communicator has changed");
    comm.close();
    LiveRank.works("L5", rest);
    Shrunk again = rest.shrink();
    Expect.equal("F7", "the epoch", again.epoch(), 2);
    LiveRank.works("F7", again.communicator());
    again.communicator().close();
    rest.close();
  }

  @Rule({"F7", "F5", "F10"})
  @Needs(
      ranks = 4,
      death = true,
      capabilities = {Capability.FAILURE_DETECTION, Capability.SHRINK})
  static void shrink_afterTwoDeathsAtOnce_worksForTheSurvivors(LiveRank r) {
    shrinkAfter(r, Set.of(1, r.size() - 1));
  }

  @Rule({"F7", "F5", "F10"})
  @Needs(
      ranks = 4,
      death = true,
      capabilities = {Capability.FAILURE_DETECTION, Capability.SHRINK})
  static void shrink_afterDeathsOfAllOthersAtOnce_worksForTheSurvivor(LiveRank r) {
    int survivor = 2;
    shrinkAfter(
        r,
        IntStream.range(0, r.size())
            .filter(rank -> rank != survivor)
            .boxed()
            .collect(Collectors.toSet()));
  }

  /// Ranks die as soon as all are about to call. Each survivor hears of one of them first, of
  /// others too as the case may be, and all agree on who is left.
  private static void shrinkAfter(LiveRank r, Set<Integer> victims) {
    Communicator comm = r.comm();
    LiveRank.works("F7", comm);
    r.meet("before the deaths");
    if (victims.contains(r.rank())) {
      throw r.die();
    }
    PeerFailedException reason = untilBroken(r, "F5", PeerFailedException.class, comm);
    Expect.that(
        "F5",
        !reason.ranks().isEmpty() && victims.containsAll(reason.ranks()),
        "who failed is %s (expected: some of %s)",
        reason.ranks(),
        victims);
    Shrunk shrunk = comm.shrink();
    List<Integer> survivors =
        IntStream.range(0, r.size()).filter(rank -> !victims.contains(rank)).boxed().toList();
    Expect.equal("F7", "the old ranks", shrunk.oldRanks(), survivors);
    try (Communicator rest = shrunk.communicator()) {
      Expect.equal("F7", "rank", rest.rank(), survivors.indexOf(r.rank()));
      LiveRank.works("F7", rest);
    }
  }

  /// Who has left it may call it again, and goes on where it was.
  @Rule({"F4", "F7", "F9"})
  @Needs(
      ranks = 2,
      death = true,
      setting = Needs.Setting.SHORT_TIMEOUT,
      capabilities = Capability.SHRINK)
  static void shrink_rankDoesNotCome_endsAtTheDeadlineAndMayBeCalledAgain(LiveRank r) {
    Communicator comm = r.comm();
    r.meet("before shrink()"); // which counts its own time on each rank
    if (r.rank() != 1) {
      CollectiveTimeoutException reason =
          Expect.thrown(
              "F4",
              CollectiveTimeoutException.class,
              "shrink() to which a rank does not come",
              comm::shrink);
      Expect.equal("F4", "who is missing", reason.missing(), List.of(1));
      Expect.says("F4", reason, "shrink()", comm.name(), "rank(s) [1]");
      if (r.rank() == 0) {
        Thread.currentThread().interrupt();
        Expect.thrown(
            "F9", InterruptedCallException.class, "an interrupted shrink()", comm::shrink);
        Expect.that("F9", Thread.interrupted(), "the interrupt flag is not set");
      }
    }
    r.meet("after the deadline");
    try (Communicator all = comm.shrink().communicator()) {
      Expect.equal("F7", "ranks of those who have come again and late", all.size(), r.size());
      LiveRank.works("F7", all);
    }
  }

  @Rule("F7")
  @Needs(capabilities = Capability.SHRINK)
  static void shrink_nobodyDied_hasAllRanks(LiveRank r) {
    Shrunk shrunk = r.comm().shrink();
    try (Communicator all = shrunk.communicator()) {
      Expect.equal(
          "F7", "the old ranks", shrunk.oldRanks(), IntStream.range(0, r.size()).boxed().toList());
      Expect.that("F7", shrunk.epoch() >= 1, "the epoch is %d", shrunk.epoch());
      LiveRank.works("F7", all);
      LiveRank.works("F7", r.comm());
    }
  }

  @Rule({"F9", "F1"})
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void interrupt_duringAWait_breaksTheCommunicator(LiveRank r) throws Exception {
    Communicator comm = r.comm();
    if (r.rank() == 1) {
      Thread.currentThread().interrupt();
      InterruptedCallException reason =
          Expect.thrown(
              "F9",
              InterruptedCallException.class,
              "a wait",
              () -> comm.receive(CommData.of(new int[1]), 0, 5));
      Expect.that("F9", Thread.interrupted(), "the interrupt flag is not set");
      Mismatches.staysBroken(comm, reason);
    } else {
      AbortedException reason = untilBroken(r, "F9", AbortedException.class, comm);
      Expect.equal("F9", "who was interrupted", reason.rank(), 1);
    }
  }

  @Rule("F9")
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void interrupt_virtualThread_breaksTheCommunicator(LiveRank r) throws Exception {
    try (Communicator comm = r.comm().duplicate()) {
      if (r.rank() != 1) {
        AbortedException reason = untilBroken(r, "F9", AbortedException.class, comm);
        Expect.equal("F9", "who was interrupted", reason.rank(), 1);
        return;
      }
      Thread[] waiting = new Thread[1];
      CompletableFuture<Void> end =
          ThreadChecks.async(
              Thread.ofVirtual(),
              () -> {
                waiting[0] = Thread.currentThread();
                Expect.thrown(
                    "F9",
                    InterruptedCallException.class,
                    "a wait",
                    () -> {
                      Thread.currentThread().interrupt();
                      comm.receive(CommData.of(new int[1]), 0, 5);
                    });
                Expect.that("F9", Thread.interrupted(), "the interrupt flag is not set");
              });
      ThreadChecks.join("F9", end);
    }
  }

  @Rule({"F9", "F1", "F10"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void interrupt_threadThatSleeps_endsItsWaitAtOnce(LiveRank r) throws Exception {
    for (Wait wait : Wait.values()) {
      try (Communicator comm = r.comm().duplicate()) {
        if (r.rank() == 1) {
          InterruptedCallException reason =
              endedAsleep("F9", InterruptedCallException.class, comm, wait, Thread::interrupt);
          Mismatches.staysBroken(comm, reason);
        } else {
          hears("F9", comm);
        }
      }
    }
  }

  @Rule({"F6", "F1", "F10", "G9"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void abort_ownThreadSleeps_endsItsWaitAtOnce(LiveRank r) throws Exception {
    for (Wait wait : Wait.values()) {
      try (Communicator comm = r.comm().duplicate()) {
        if (r.rank() == 1) {
          AbortedException reason =
              endedAsleep(
                  "F6", AbortedException.class, comm, wait, _ -> comm.abort("by another thread"));
          Expect.equal("F6", "who aborted", reason.rank(), 1);
          Expect.says("F6", reason, "by another thread");
          Mismatches.staysBroken(comm, reason);
        } else {
          hears("F6", comm);
        }
      }
    }
  }

  /// What a thread waits in for ever, since no other rank takes part.
  private enum Wait {
    RECEIVE,
    RECEIVE_OF_A_VIRTUAL_THREAD,
    BARRIER,
    REQUEST,
    DUPLICATE,
    SPLIT;

    Thread.Builder thread() {
      return this == RECEIVE_OF_A_VIRTUAL_THREAD ? Thread.ofVirtual() : Thread.ofPlatform();
    }

    void in(Communicator comm) {
      PointToPoint.Receive receive = new PointToPoint.Receive(CommData.of(new int[1]), 0, 5);
      switch (this) {
        case RECEIVE, RECEIVE_OF_A_VIRTUAL_THREAD -> comm.run(receive);
        case BARRIER -> comm.barrier();
        case REQUEST -> comm.start(receive).await();
        case DUPLICATE -> comm.duplicate().close();
        case SPLIT -> comm.split(0, 0).orElseThrow().close();
      }
    }
  }

  /// Has a thread of its own wait, and ends that where it most probably sleeps by then.
  ///
  /// @return what the wait has thrown, at once
  private static <T extends CommException> T endedAsleep(
      String rule, Class<T> type, Communicator comm, Wait wait, Consumer<Thread> ending)
      throws Exception {
    AtomicReference<Thread> waiting = new AtomicReference<>();
    AtomicReference<T> thrown = new AtomicReference<>();
    CompletableFuture<Void> end =
        ThreadChecks.async(
            wait.thread(),
            () -> {
              waiting.set(Thread.currentThread());
              thrown.set(Expect.thrown(rule, type, "a wait: " + wait, () -> wait.in(comm)));
              Expect.equal(
                  rule,
                  "the interrupt flag",
                  Thread.interrupted(),
                  type == InterruptedCallException.class);
            });
    long start = System.nanoTime();
    Expect.eventually(rule, "it sleeps", () -> ThreadChecks.sleeps(waiting.get(), start));
    long endingNanos = System.nanoTime();
    ending.accept(waiting.get());
    ThreadChecks.join(rule, end);
    Promise.AT_ONCE.keep(rule, "the end of a wait: " + wait, endingNanos);
    return thrown.get();
  }

  /// That this rank, which does not call, hears that rank 1 broke it.
  private static void hears(String rule, Communicator comm) {
    Expect.eventually(rule, "the others hear of it", () -> comm.failure().isPresent());
    AbortedException reason =
        Expect.thrown(rule, AbortedException.class, "a later call", comm::barrier);
    Expect.equal(rule, "who broke it", reason.rank(), 1);
  }

  /// Whatever fails, requests that are in flight end too.
  @Rule({"F10", "F1", "F2", "F6"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void requests_communicatorBreaks_allEnd(LiveRank r) {
    Communicator comm = r.comm();
    List<FailingInput> inputs = new ArrayList<>();
    List<Request> receives = new ArrayList<>();
    List<Request> sums = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      FailingInput input = FailingInput.of(r, i == 3 ? FailingInput.FEW : FailingInput.MANY);
      inputs.add(input);
      receives.add(
          comm.start(new PointToPoint.Receive(CommData.of(new int[10]), r.rank(), 100 + i)));
      sums.add(comm.start(new Collective.AllReduce(input.data(), input.output(), ReduceOp.SUM)));
    }
    if (r.rank() == 0) {
      int[] got = new int[1];
      for (int rank = 1; rank < r.size(); rank++) {
        comm.receive(CommData.of(got), Communicator.ANY_SOURCE, 1);
      }
      comm.abort("with calls in flight");
    } else {
      comm.start(new PointToPoint.Send(CommData.of(1), 0, 1));
    }
    CommException reason = untilBroken(r, "F6", AbortedException.class, comm);
    for (Request receive : receives) {
      CommException end =
          Expect.thrown(
              "F10", CommException.class, "a receive that nothing has matched", receive::await);
      Expect.that("F1", end == reason, "a request ended with %s (expected: %s)", end, reason);
    }
    sums.forEach(sum -> endsWellOrWith(reason, sum));
    inputs.forEach(FailingInput::isUntouched);
  }

  private static void endsWellOrWith(CommException reason, Request request) {
    try {
      request.await();
    } catch (CommException e) {
      Expect.that("F1", e == reason, "a request ended with %s (expected: %s)", e, reason);
    }
    Expect.that("F10", request.isDone(), "a request is still in flight");
  }
}
