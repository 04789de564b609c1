package org.comm4j.tck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capability;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;

/// Closing.
final class LifeCycleChecks {
  private static final long PATIENCE_NS = 200_000_000; // less than any backend's with what it tries
  private static final int MOST_ATTEMPTS = 10;

  private LifeCycleChecks() {}

  private static void closes(Communicator comm) {
    long start = System.nanoTime();
    Expect.fine("L1", "close()", comm::close);
    Promise.CLOSED.keep("L1", "close()", start);
  }

  @Rule({"L1", "L2", "L5"})
  @Needs(capabilities = Capability.SPLIT)
  static void close_calledTwice_refusesEveryCall(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    Communicator child = comm.duplicate();
    Expect.that("L2", !comm.isClosed(), "isClosed() before close()");
    LiveRank.works("L2", comm);
    closes(comm);
    closes(comm);
    Expect.that("L2", comm.isClosed(), "not isClosed() after close()");
    List<Expect.Action> calls =
        List.of(
            comm::barrier,
            comm::sync,
            comm::topology,
            comm::duplicate,
            comm::splitLocal,
            comm::sharedMemory,
            () -> comm.split(0, 0),
            () -> comm.allocate(DataType.INT8, 1),
            () -> comm.allReduce(1L, ReduceOp.SUM),
            () -> comm.start(new Collective.Barrier()),
            () -> comm.prepare(new Collective.Barrier()));
    for (Expect.Action call : calls) {
      Expect.thrown("L2", ClosedException.class, "a call after close()", call);
    }
    Expect.equal("L2", "rank()", comm.rank(), r.rank());
    LiveRank.works("L5", child);
    closes(child);
    LiveRank.works("L5", r.comm());
  }

  @Rule({"L3", "L1"})
  @Needs(capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_pendingOperations_endThem(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    Request request = comm.start(new PointToPoint.Receive(CommData.of(new int[1]), r.rank(), 1));
    CompletableFuture<?> future =
        comm.start(new PointToPoint.Probe(r.rank(), 2)).toCompletableFuture();
    comm.run(new Collective.Barrier());
    closes(comm);
    Expect.that("L3", request.isDone(), "a pending request is not done");
    Expect.thrown("L3", ClosedException.class, "await after close()", request::await);
    var ended =
        Expect.thrown(
            "L3",
            ExecutionException.class,
            "the future of a pending request",
            () -> future.get(Expect.SOON.toSeconds(), TimeUnit.SECONDS));
    Expect.that(
        "L3", ended.getCause() instanceof ClosedException, "its cause is %s", ended.getCause());
    LiveRank.works("L5", r.comm());
  }

  /// What was started and can end without further calls does, also if a thread comes interrupted,
  /// and if the machine lets all ranks close before their patience is over.
  @Rule({"L1", "O23"})
  @Needs(capabilities = Capability.SPLIT)
  static void close_startedCollectives_areTried(LiveRank r) {
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      Communicator comm = r.comm().duplicate();
      List<long[]> sums = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        long[] sum = {i};
        sums.add(sum);
        CommData view = CommData.of(sum);
        comm.start(new Collective.AllReduce(view, view, ReduceOp.SUM));
      }
      r.comm().barrier(); // all have started all
      long start = System.nanoTime();
      if (r.rank() == 0) {
        closesInterrupted(comm);
      } else {
        closes(comm);
      }
      long tookNs = r.comm().allReduce(System.nanoTime() - start, ReduceOp.MAX);
      if (tookNs < PATIENCE_NS || attempt == MOST_ATTEMPTS - 1) {
        for (int i = 0; i < sums.size(); i++) {
          Expect.equal("L1", "sum " + i, sums.get(i)[0], (long) i * r.size());
        }
        return;
      }
      long wrong =
          IntStream.range(0, 10).filter(i -> sums.get(i)[0] != (long) i * r.size()).count();
      if (r.comm().allReduce(wrong, ReduceOp.SUM) == 0) {
        return;
      }
    }
  }

  @Rule({"L4", "L1"})
  @Needs(capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_otherThreadWaits_wakesIt(LiveRank r) throws Exception {
    Communicator comm = r.comm().split(r.rank(), 0).orElseThrow();
    closesDuring(comm, () -> comm.receive(CommData.of(new int[1]), 0, 1));
    LiveRank.works("G9", r.comm());
  }

  /// The others don't come, so that nothing else ends it before the deadline.
  @Rule({"L4", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHRINK, Capability.SPLIT})
  static void close_otherThreadShrinks_wakesIt(LiveRank r) throws Exception {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      long start = System.nanoTime();
      closesDuring(comm, comm::shrink);
      Promise.CLOSED.keep("L4", "a call while another thread closes", start);
    }
    r.comm().barrier(); // that others had closed would end it too
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  /// The others have come to it and left it, so that it is decided who survives, but not more.
  @Rule({"L4", "L1", "F9"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHRINK, Capability.SPLIT})
  static void close_otherThreadShrinksWithTheInterrupted_wakesIt(LiveRank r) throws Exception {
    Communicator comm = r.comm().duplicate();
    if (r.rank() != 0) {
      Thread.currentThread().interrupt();
      Expect.thrown("F9", InterruptedCallException.class, "an interrupted shrink()", comm::shrink);
      Expect.that("F9", Thread.interrupted(), "the interrupt flag is not set");
    }
    r.comm().barrier();
    if (r.rank() == 0) {
      long start = System.nanoTime();
      closesBeside(
          comm,
          () -> {
            try { // it may need nobody any more
              ThreadChecks.insist(() -> comm.shrink().communicator().close());
            } catch (ClosedException e) {
              // else it ends so
            }
          });
      Promise.CLOSED.keep("L4", "a call while another thread closes", start);
    }
    r.comm().barrier();
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  private static void closesInterrupted(Communicator comm) {
    Thread.currentThread().interrupt();
    try {
      closes(comm);
    } finally {
      Expect.that("L1", Thread.interrupted(), "close() has taken the interrupt flag");
    }
  }

  @Rule({"F12", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_interruptedWithAReceive_concernsNobody(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      Request receive = comm.start(new PointToPoint.Receive(CommData.of(new int[1]), 1, 1));
      closesInterrupted(comm);
      Expect.that("L3", receive.isDone(), "a pending request is not done");
      r.comm().barrier();
    } else {
      r.comm().barrier();
      Expect.equal(
          "F12", "the failure after an interrupted close", comm.failure(), Optional.empty());
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  @Rule({"F12", "L4"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_otherThreadReceives_concernsNobody(LiveRank r) throws Exception {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      closesDuring(comm, () -> comm.receive(CommData.of(new int[1]), 1, 1));
      r.comm().barrier();
    } else {
      r.comm().barrier();
      Expect.equal(
          "F12", "the failure after a close during a receive", comm.failure(), Optional.empty());
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  @Rule("F12")
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void close_duringACollective_isHeardAtOnce(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      comm.start(new Collective.Barrier());
      closes(comm);
      r.comm().barrier();
    } else {
      r.comm().barrier();
      Expect.eventually("F12", "they hear of it", () -> comm.failure().isPresent());
      isNamed(
          "F12",
          () -> {
            throw comm.failure().orElseThrow();
          });
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  @Rule({"F12", "L4"})
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void close_otherThreadInCollective_breaksItForTheOthers(LiveRank r) throws Exception {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      closesDuring(comm, comm::barrier);
      r.comm().barrier();
    } else {
      r.comm().barrier();
      // one may end well: the rank that closes has perhaps done its part
      isNamed("F12", () -> Mismatches.callSoon(comm));
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  /// Closes a communicator while another thread waits in a call.
  private static void closesDuring(Communicator comm, Expect.Action call) throws Exception {
    closesBeside(
        comm,
        () ->
            Expect.thrown(
                "L4",
                ClosedException.class,
                "a call while another thread closes",
                () -> ThreadChecks.insist(call)));
  }

  /// Closes a communicator once another thread, which calls it, is in its call or through.
  private static void closesBeside(Communicator comm, Expect.Action calls) throws Exception {
    CompletableFuture<Void> waiting = ThreadChecks.async(Thread.ofPlatform(), calls);
    Expect.eventually(
        "L4",
        "the other thread is in its call",
        () -> {
          try {
            comm.topology();
            return waiting.isDone();
          } catch (ConcurrentUseException e) {
            return true;
          }
        });
    closes(comm);
    ThreadChecks.join("L4", waiting);
  }

  @Rule({"F13", "L1"})
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void close_collectiveOfTheOthers_namesIt(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    if (r.rank() != 0) {
      isNamed("F13", () -> comm.allReduce(1L, ReduceOp.SUM));
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  @Rule({"F13", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_receiveOfAnother_namesIt(LiveRank r) {
    for (PointToPoint needing :
        List.of(
            new PointToPoint.Receive(CommData.of(new int[1]), 0, 1),
            new PointToPoint.Probe(0, 1))) {
      Communicator comm = r.comm().duplicate();
      if (r.rank() == 1) {
        isNamed("F13", () -> comm.run(needing));
      }
      closes(comm);
      LiveRank.works("L5", r.comm());
    }
  }

  /// What comes before the close is received after it, and nothing else.
  @Rule({"F13", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_afterASend_endsOnlyWhatNeedsMore(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    int[] got = {0};
    Request receive = null;
    if (r.rank() == 0) {
      comm.send(CommData.of(new int[] {42}), 1, 1);
      closes(comm);
    } else if (r.rank() == 1) { // a send may wait for it
      receive = comm.start(new PointToPoint.Receive(CommData.of(got), 0, 1));
    }
    r.comm().barrier();
    if (receive != null) {
      receive.await();
      Expect.equal("F13", "what was sent before the close", got[0], 42);
      isNamed("F13", () -> comm.receive(CommData.of(got), 0, 1));
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  /// The one that closes makes other calls, so that the others hear it.
  @Rule({"F13", "F7", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHRINK, Capability.SPLIT})
  static void close_shrinkOfTheOthers_namesIt(LiveRank r) {
    for (boolean isBroken : new boolean[] {false, true}) {
      Communicator comm = brokenOrNot(r, isBroken);
      if (r.rank() == 0) {
        closes(comm);
      }
      r.comm().barrier();
      if (r.rank() != 0) {
        isNamed("F13", comm::shrink);
        isNamed("F13", comm::shrink); // as after a deadline
      }
      closes(comm);
      LiveRank.works("L5", r.comm());
    }
  }

  /// Where the machine lets them the others have asked before the one closes.
  @Rule({"F13", "F7", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHRINK, Capability.SPLIT, Capability.POINT_TO_POINT})
  static void close_duringTheShrinkOfTheOthers_namesIt(LiveRank r) {
    for (boolean isBroken : new boolean[] {false, true}) {
      Communicator comm = brokenOrNot(r, isBroken);
      if (r.rank() == 0) {
        Request nothing = r.comm().start(new PointToPoint.Receive(CommData.of(new int[1]), 0, 1));
        Expect.thrown(
            "F3",
            TimeoutException.class,
            "a receive of nothing",
            () -> nothing.await(Duration.ofMillis(200)));
        Expect.that("P14", nothing.cancel(), "it can't be cancelled");
      } else {
        isNamed("F13", comm::shrink);
      }
      closes(comm);
      LiveRank.works("L5", r.comm());
    }
  }

  private static Communicator brokenOrNot(LiveRank r, boolean isBroken) {
    Communicator comm = r.comm().duplicate();
    if (isBroken) {
      if (r.rank() == 0) {
        comm.abort("to be shrunk");
      }
      Expect.eventually("F6", "a failure on every rank", () -> comm.failure().isPresent());
    }
    return comm;
  }

  private static void isNamed(String rule, Expect.Action call) {
    isNamed(
        rule,
        Expect.thrown(
            rule, AbortedException.class, "a call that needs a rank that has closed", call));
  }

  private static void isNamed(String rule, AbortedException reason) {
    Expect.equal(rule, "who closed", reason.rank(), 0);
    Expect.says(rule, reason, "rank 0", "closed");
  }

  /// Ranks close at different times; who is still there hears of it instead of waiting.
  @Rule({"L1", "F10"})
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void close_earlierThanOthers_waitsForNobody(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    LiveRank.works("L1", comm);
    if (r.rank() == 0) {
      closes(comm);
    }
    r.comm().barrier();
    if (r.rank() != 0) {
      closes(comm);
    }
    LiveRank.works("L5", r.comm());
  }

  @Rule({"L1", "F1"})
  @Needs(capabilities = Capability.SPLIT)
  static void close_brokenCommunicator_throwsNothing(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      comm.abort("to be closed");
    }
    Expect.eventually("F6", "a failure on every rank", () -> comm.failure().isPresent());
    var reason = comm.failure();
    closes(comm);
    Expect.equal("F1", "failure() after close()", comm.failure(), reason);
    Expect.thrown("L2", ClosedException.class, "a call after close()", comm::barrier);
    LiveRank.works("G9", r.comm());
  }

  @Rule({"F12", "L1"})
  @Needs(
      ranks = 2,
      death = true,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_unmatchedReceive_concernsNobody(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    long[] sum = {0};
    Collective.Reduce reduce =
        new Collective.Reduce(CommData.of(1L), CommData.of(sum), ReduceOp.SUM, 0);
    if (r.rank() == 0) { // it has begun, and does not go on before the others have closed
      Request request = comm.start(reduce);
      r.meet("when the root has begun");
      r.meet("after the close");
      Expect.fine("F12", "a collective in which all others have done their part", request::await);
      Expect.equal("F12", "the sum", sum[0], (long) r.size());
    } else {
      r.meet("when the root has begun");
      Request receive = comm.start(new PointToPoint.Receive(CommData.of(new int[1]), 0, 1));
      comm.run(reduce);
      closes(comm);
      Expect.that("L3", receive.isDone(), "a pending request is not done");
      r.meet("after the close");
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  @Rule({"F12", "L1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_duringASend_breaksItForTheOthers(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    CommData data = CommData.of(new long[2_000_000]);
    if (r.rank() == 1) {
      comm.start(new PointToPoint.Send(data, 0, 1));
      closes(comm);
      r.comm().barrier();
    } else {
      r.comm().barrier();
      AbortedException reason =
          Expect.thrown(
              "F12",
              AbortedException.class,
              "a receive from a rank that closed while it sent",
              () -> comm.receive(data, 1, 1));
      Expect.equal("F12", "who closed", reason.rank(), 1);
      Expect.says("F12", reason, "rank 1", "closed", "send");
      closes(comm);
    }
    LiveRank.works("L5", r.comm());
  }

  @Rule({"F12", "L1"})
  @Needs(
      ranks = 2,
      death = true,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void close_duringAMatchedReceive_breaksItForTheOthers(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    long[] numbers = new long[2_000_000];
    CommData data = CommData.of(numbers);
    int last = numbers.length - 1;
    int[] whole = {0};
    if (r.rank() == 0) {
      comm.probe(1, 1); // a part of it is here
    } else if (r.rank() == 1) {
      numbers[last] = 1;
      comm.start(new PointToPoint.Send(data, 0, 1));
    }
    r.comm().barrier();
    if (r.rank() == 0) {
      Request receive = comm.start(new PointToPoint.Receive(data, 1, 1));
      closes(comm);
      whole[0] = (int) numbers[last]; // it may need nothing more of the sender
      Expect.that("L3", whole[0] == 1 || !endedWell(receive), "a part was received well");
    }
    r.meet("after the close"); // until then the sender sends no more
    r.comm().broadcast(CommData.of(whole), 0);
    if (r.rank() != 0 && whole[0] == 0) {
      Expect.eventually("F12", "they hear of it", () -> comm.failure().isPresent());
      Expect.says("F12", comm.failure().orElseThrow(), "rank 0", "closed", "receive");
    }
    closes(comm);
    LiveRank.works("L5", r.comm());
  }

  private static boolean endedWell(Request request) {
    try {
      request.await();
      return true;
    } catch (ClosedException e) {
      return false;
    }
  }

  @Rule({"L1", "F5"})
  @Needs(ranks = 2, death = true, capabilities = Capability.FAILURE_DETECTION)
  static void close_peerDied_throwsNothing(LiveRank r) {
    LiveRank.works("L1", r.comm());
    r.meet("before the death");
    if (r.rank() == 0) {
      throw r.die();
    }
    closes(r.comm());
  }

  @Rule("L9")
  static void deviations_declared_areAllowed(LiveRank r) {
    r.comm()
        .capabilities()
        .deviations()
        .forEach((rule, reason) -> {
          Expect.that(
              "L9",
              LiveVerification.DECLARABLE.contains(rule),
              "the backend declares %s, which is not on the list of docs/contract.md",
              rule);
          Expect.that("L9", !reason.isBlank(), "no reason for declaring %s", rule);
        });
  }

  @Rule("L8")
  @Needs(capabilities = Capability.SPLIT)
  static void communicators_manyOneAfterTheOther_work(LiveRank r) {
    for (int i = 0; i < 200; i++) {
      try (Communicator comm = i % 2 == 0 ? r.comm().duplicate() : r.comm().splitLocal()) {
        comm.allReduce((long) i, ReduceOp.MAX);
        if (i % 10 == 0) {
          comm.allocate(DataType.INT8, 10_000).close();
        }
      }
    }
    LiveRank.works("L8", r.comm());
  }
}
