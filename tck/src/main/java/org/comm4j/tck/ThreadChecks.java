package org.comm4j.tck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.jspecify.annotations.Nullable;

/// Threads.
final class ThreadChecks {
  private static final long ASLEEP_NS = 100_000_000;

  private ThreadChecks() {}

  /// Runs something on a thread of its own.
  static CompletableFuture<Void> async(Thread.Builder builder, Expect.Action action) {
    CompletableFuture<Void> end = new CompletableFuture<>();
    builder.start(() -> {
      try {
        action.run();
        end.complete(null);
      } catch (Throwable e) {
        end.completeExceptionally(e);
      }
    });
    return end;
  }

  /// Waits until it has ended, and passes on what it threw.
  static void join(String rule, CompletableFuture<?> end) throws InterruptedException {
    try {
      end.get(Expect.SOON.toSeconds(), TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      if (cause instanceof RuleViolation violation) {
        throw violation;
      }
      throw new RuleViolation(rule, "it failed: " + Expect.text(cause), cause);
    } catch (TimeoutException e) {
      throw new RuleViolation(rule, "it has not ended within " + Expect.SOON, e);
    }
  }

  /// Makes a call although another thread looks into the communicator now and then.
  static void insist(Expect.Action call) throws Exception {
    while (true) {
      try {
        call.run();
        return;
      } catch (ConcurrentUseException e) {
        Thread.onSpinWait();
      }
    }
  }

  /// Whether a thread that has something to wait for sleeps, or, since one that sleeps outside the
  /// JVM looks as if it ran, has had the time to fall asleep.
  static boolean sleeps(@Nullable Thread thread, long startNanos) {
    if (thread == null) {
      return false;
    }
    return switch (thread.getState()) {
      case WAITING, TIMED_WAITING -> true;
      default -> System.nanoTime() - startNanos > ASLEEP_NS;
    };
  }

  @Rule({"X1", "X2"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void communicator_twoThreads_refusesTheSecond(LiveRank r) throws Exception {
    Communicator comm = r.comm();
    List<SharedRegion<?>> regions =
        r.can(Capability.SHARED_MEMORY)
            ? List.of(comm.sharedMemory().createRegion(DataType.INT8, 1))
            : List.of();
    try (Communicator other = comm.duplicate()) {
      for (int victim = 0; victim < r.size(); victim++) {
        int sender = (victim + 1) % r.size();
        if (r.rank() == victim) {
          tryTwoThreads(comm, regions, other, sender);
        } else if (r.rank() == sender) {
          other.receive(CommData.of(new int[1]), victim, 0);
          comm.send(CommData.of(41), victim, 1);
        }
      }
      for (SharedRegion<?> region : regions) {
        Expect.fine("X1", "fence() after a refused one", region::fence);
        region.close();
      }
      LiveRank.works("X1", comm);
    }
  }

  /// @param regions that are not fenced
  private static void tryTwoThreads(
      Communicator comm, List<SharedRegion<?>> regions, Communicator other, int sender)
      throws Exception {
    int[] got = new int[1];
    List<SharedMemoryProvider> providers =
        comm.capabilities().supports(Capability.SHARED_MEMORY)
            ? List.of(comm.sharedMemory())
            : List.of();
    CompletableFuture<Void> first =
        async(
            Thread.ofPlatform().name("first"),
            () -> insist(() -> comm.receive(CommData.of(got), sender, 1)));
    AtomicReference<ConcurrentUseException> refused = new AtomicReference<>();
    Expect.eventually(
        "X1",
        "a ConcurrentUseException",
        () -> {
          try {
            comm.topology();
            return false;
          } catch (ConcurrentUseException e) {
            refused.set(e);
            return true;
          }
        });
    Expect.says("X1", refused.get(), "'first'", Thread.currentThread().getName());
    List<Expect.Action> calls =
        List.of(
            comm::barrier,
            comm::sync,
            () -> comm.start(new Collective.Barrier()),
            () -> comm.allReduce(1L, ReduceOp.SUM),
            comm::duplicate,
            () -> comm.allocate(DataType.INT8, 1));
    for (Expect.Action call : calls) {
      Expect.thrown("X1", ConcurrentUseException.class, "a call by a second thread", call);
    }
    for (SharedMemoryProvider provider : providers) {
      Expect.thrown(
          "X1",
          ConcurrentUseException.class,
          "a call by a second thread for memory",
          () -> provider.createRegion(DataType.INT8, 1));
    }
    for (SharedRegion<?> region : regions) {
      Expect.thrown(
          "X1", ConcurrentUseException.class, "fence() by a second thread", region::fence);
    }
    Expect.that("X1", !first.isDone(), "the first thread's call was disturbed");
    other.send(CommData.of(0), sender, 0);
    join("X1", first);
    Expect.equal("X1", "what the first thread got", got[0], 41);
  }

  @Rule("X2")
  static void communicator_handedOver_works(LiveRank r) throws Exception {
    for (int i = 0; i < 20; i++) {
      Thread.Builder builder = i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual();
      join("X2", async(builder, () -> LiveRank.works("X2", r.comm())));
    }
    LiveRank.works("X2", r.comm());
  }

  @Rule("X3")
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void request_awaitedElsewhere_endsThereAndOnlyThere(LiveRank r) throws Exception {
    Communicator comm = r.comm();
    try (Communicator other = comm.duplicate()) {
      if (r.rank() == 0) {
        int[] got = new int[1];
        Request request = comm.start(new PointToPoint.Receive(CommData.of(got), 1, 1));
        CompletableFuture<Void> waiting =
            async(Thread.ofPlatform().name("waiting"), () -> insist(request::await));
        Expect.eventually(
            "X3",
            "a ConcurrentUseException",
            () -> {
              try {
                request.await(Duration.ZERO);
              } catch (ConcurrentUseException e) {
                Expect.says("X3", e, "'waiting'");
                return true;
              } catch (TimeoutException e) {
                return false;
              }
              throw new RuleViolation("X3", "a receive ended without a message");
            });
        other.send(CommData.of(0), 1, 0); // the communicator itself may be used meanwhile
        comm.send(CommData.of(3), 1, 2);
        join("X3", waiting);
        Expect.equal("X3", "what came", got[0], 7);
        Expect.that("X3", request.isDone(), "an awaited request is not done");
      } else if (r.rank() == 1) {
        other.receive(CommData.of(new int[1]), 0, 0);
        comm.receive(CommData.of(new int[1]), 0, 2);
        comm.send(CommData.of(7), 0, 1);
      }
    }
  }

  @Rule({"X4", "T14"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.USER_DEFINED_OPERATORS, Capability.SPLIT})
  static void userDefined_callsBack_isRefused(LiveRank r) {
    try (Communicator comm = r.comm().duplicate()) {
      List<Throwable> refusals = java.util.Collections.synchronizedList(new ArrayList<>());
      ReduceOp op =
          ReduceOp.of(
              "calls back",
              (source, accumulator, type, count) -> {
                try {
                  comm.barrier();
                } catch (Throwable e) {
                  refusals.add(e);
                }
              });
      long[] data = {1};
      comm.allReduce(data, op);
      allRefused(comm, refusals);
      LiveRank.works("X4", comm);
    }
  }

  /// The thread that runs the operator is not always the one that has made the call.
  @Rule({"X4", "F10"})
  @Needs(
      ranks = 2,
      capabilities = {
        Capability.USER_DEFINED_OPERATORS,
        Capability.SPLIT,
        Capability.POINT_TO_POINT
      })
  static void userDefined_ofStartedCallCallsBack_isRefused(LiveRank r) {
    try (Communicator comm = r.comm().duplicate();
        CommBuffer buffer = comm.allocate(DataType.INT8, 8)) {
      Optional<SharedRegion<?>> region = region(r);
      Request other =
          comm.start(new PointToPoint.Receive(CommData.of(new int[1]), Communicator.ANY_SOURCE, 1));
      List<Expect.Action> calls =
          new ArrayList<>(
              List.of(
                  comm::barrier,
                  comm::sync,
                  () -> comm.start(new Collective.Barrier()),
                  () -> comm.send(CommData.of(1), 0, 2),
                  comm::duplicate,
                  other::await,
                  other::cancel,
                  () -> Request.waitAny(List.of(other)),
                  () -> Request.waitAll(List.of(other, other)),
                  comm::close,
                  buffer::close));
      region.ifPresent(each -> {
        calls.add(() -> each.populate(_ -> {}));
        calls.add(() -> each.write(0, CommData.of(new byte[1])));
        calls.add(each::close);
      });
      List<Throwable> refusals = java.util.Collections.synchronizedList(new ArrayList<>());
      ReduceOp op =
          ReduceOp.of(
              "calls back, started",
              (source, accumulator, type, count) -> {
                for (Expect.Action call : calls) {
                  refusals.add(thrown(call));
                }
              });
      CommData data = CommData.of(new long[] {1});
      comm.start(new Collective.AllReduce(data, data, op)).await();
      comm.start(new Collective.AllReduce(data, data, op)).toCompletableFuture().join();
      allRefused(comm, refusals);
      comm.send(CommData.of(7), (r.rank() + 1) % r.size(), 1);
      other.await();
      region.ifPresent(ThreadChecks::isStillUsable);
      LiveRank.works("X4", comm);
    }
  }

  private static Optional<SharedRegion<?>> region(LiveRank r) {
    return r.can(Capability.SHARED_MEMORY)
        ? Optional.of(r.comm().sharedMemory().createRegion(DataType.INT8, 1))
        : Optional.empty();
  }

  private static void isStillUsable(SharedRegion<?> region) {
    Expect.fine("X4", "fence() after refused calls", region::fence);
    Expect.fine("X4", "close() after refused calls", region::close);
  }

  /// That an operator was called on some rank, and that what called back on this one was refused.
  private static void allRefused(Communicator comm, List<Throwable> refusals) {
    long called = comm.allReduce((long) refusals.size(), ReduceOp.SUM);
    Expect.that("X4", called > 0, "the operator was not called at all");
    for (Throwable refusal : refusals) {
      Expect.that(
          "X4",
          refusal instanceof ConcurrentUseException,
          "an operator that calls back got %s (expected: ConcurrentUseException)",
          refusal);
    }
  }

  /// What a call throws; an error of the kit's if it does not.
  private static Throwable thrown(Expect.Action call) {
    try {
      call.run();
      return new RuleViolation("X4", "a call of an operator's went through");
    } catch (Throwable e) {
      return e;
    }
  }

  @Rule("X5")
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void virtualThread_anyCall_works(LiveRank r) throws Exception {
    join(
        "X5",
        async(
            Thread.ofVirtual(),
            () -> {
              Communicator comm = r.comm();
              int right = (r.rank() + 1) % r.size();
              int left = (r.rank() + r.size() - 1) % r.size();
              for (int count : new int[] {1, 1000, 100_000}) {
                long[] data = new long[count];
                java.util.Arrays.fill(data, 1);
                comm.allReduce(data, ReduceOp.SUM);
                Expect.equal("X5", "a sum", data[count - 1], (long) r.size());
                CommData view = CommData.of(data);
                Request request = comm.start(new Collective.AllReduce(view, view, ReduceOp.MAX));
                request.await();
                int[] sent = new int[count];
                int[] got = new int[count];
                sent[0] = r.rank();
                Received received =
                    comm.sendReceive(CommData.of(sent), right, CommData.of(got), left, 1);
                Expect.equal("X5", "received", received, new Received(left, 1, count));
                Expect.equal("X5", "what came", got[0], left);
                comm.barrier();
              }
              // memory of a confined arena, which nobody else may touch
              try (var arena = java.lang.foreign.Arena.ofConfined()) {
                CommData confined = CommData.of(DataType.INT64, arena.allocate(80, 8));
                comm.allReduce(confined, ReduceOp.SUM);
                comm.broadcast(confined, 0);
                CommData got = CommData.of(DataType.INT64, arena.allocate(80, 8));
                comm.sendReceive(confined, right, got, left, 2);
              }
              if (r.can(Capability.SPLIT)) {
                try (Communicator copy = comm.duplicate()) {
                  LiveRank.works("X5", copy);
                }
              }
            }));
  }

  @Rule({"X6", "F10"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void future_nobodyWaits_completes(LiveRank r) throws Exception {
    Communicator comm = r.comm();
    int right = (r.rank() + 1) % r.size();
    int left = (r.rank() + r.size() - 1) % r.size();
    int[] got = new int[5000];
    long[] sum = {r.rank()};
    CompletableFuture<Received> receive =
        comm.start(new PointToPoint.Receive(CommData.of(got), left, 1)).toCompletableFuture();
    CompletableFuture<Received> reduce =
        comm.start(new Collective.AllReduce(CommData.of(sum), CommData.of(sum), ReduceOp.SUM))
            .toCompletableFuture();
    CompletableFuture<Received> send =
        comm.start(new PointToPoint.Send(CommData.of(new int[5000]), right, 1))
            .toCompletableFuture();
    // from here on this thread does not touch the communicator
    join("X6", reduce);
    join("X6", receive);
    join("X6", send);
    Expect.equal("X6", "a receive's result", receive.get(), new Received(left, 1, 5000));
    Expect.equal("X6", "another one's result", reduce.get(), null);
    Expect.equal("X6", "a sum", sum[0], (long) r.size() * (r.size() - 1) / 2);
  }

  @Rule("X7")
  @Needs(capabilities = Capability.SPLIT)
  static void communicators_manyThreads_areIndependent(LiveRank r) throws Exception {
    int threads = 3;
    List<Communicator> comms = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      comms.add(r.comm().duplicate());
    }
    List<CompletableFuture<Void>> ends = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      Communicator comm = comms.get(i);
      int number = i;
      ends.add(
          async(
              Thread.ofPlatform(),
              () -> {
                long[] data = new long[200 * (number + 1)];
                for (int round = 0; round < 100; round++) {
                  java.util.Arrays.fill(data, round + number);
                  comm.allReduce(data, ReduceOp.SUM);
                  Expect.equal(
                      "X7", "a sum", data[data.length - 1], (long) (round + number) * r.size());
                }
              }));
    }
    for (CompletableFuture<Void> end : ends) {
      join("X7", end);
    }
    comms.forEach(Communicator::close);
  }

  /// Every rank has its communicators split and copied by threads of its own, which come in any
  /// order.
  @Rule({"X7", "G2", "G4"})
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void communicators_madeAtTheSameTime_areIndependent(LiveRank r) throws Exception {
    List<Communicator> parents = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      parents.add(r.comm().duplicate());
    }
    CyclicBarrier together = new CyclicBarrier(parents.size());
    List<CompletableFuture<Void>> ends = new ArrayList<>();
    for (int i = 0; i < parents.size(); i++) {
      Communicator parent = parents.get(i);
      long factor = i + 1L;
      ends.add(
          async(
              Thread.ofPlatform(),
              () -> {
                for (int round = 0; round < 20; round++) {
                  together.await(Expect.SOON.toSeconds(), TimeUnit.SECONDS);
                  try (Communicator child =
                      round % 2 == 0
                          ? parent.duplicate()
                          : parent.split(0, parent.size() - parent.rank()).orElseThrow()) {
                    for (int call = 0; call < 10; call++) {
                      long sum = child.allReduce(factor * (r.rank() + 1), ReduceOp.SUM);
                      Expect.equal("X7", "a sum", sum, factor * r.size() * (r.size() + 1L) / 2);
                    }
                  }
                }
              }));
    }
    for (CompletableFuture<Void> end : ends) {
      join("X7", end);
    }
    parents.forEach(Communicator::close);
  }

  @Rule({"X8", "F3"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void waitAny_oneEnds_isItsIndex(LiveRank r) throws Exception {
    Communicator comm = r.comm();
    try (Communicator other = comm.duplicate()) {
      if (r.rank() == 0) {
        int[][] got = new int[4][1];
        List<Request> requests = new ArrayList<>();
        for (int i = 0; i < got.length; i++) {
          requests.add(comm.start(new PointToPoint.Receive(CommData.of(got[i]), 1, i)));
        }
        Expect.thrown(
            "F3",
            TimeoutException.class,
            "await for a while",
            () -> requests.get(0).await(Duration.ofMillis(20)));
        Expect.that("F3", comm.failure().isEmpty(), "an await that expired broke something");
        Expect.thrown(
            "X8", IllegalStateException.class, "result() too early", requests.get(0)::result);
        List<Request> open = new ArrayList<>(requests); // what came may have come during the send
        for (int next : new int[] {2, 0, 3, 1}) {
          other.send(CommData.of(next), 1, 0);
          Request ended = open.remove(Request.waitAny(open));
          Expect.equal("X8", "the index", requests.indexOf(ended), next);
          ended.await();
          Expect.equal("X8", "what came", got[next][0], 100 + next);
        }
        Request.waitAll(requests);
        Request.waitAll(List.of());
      } else if (r.rank() == 1) {
        int[] which = new int[1];
        for (int i = 0; i < 4; i++) {
          other.receive(CommData.of(which), 0, 0);
          comm.send(CommData.of(100 + which[0]), 0, which[0]);
        }
      }
    }
  }

  /// What a request says of a communicator that breaks.
  @Rule({"X6", "F6"})
  @Needs(capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void future_communicatorBreaks_completesToo(LiveRank r) throws Exception {
    try (Communicator comm = r.comm().duplicate()) {
      CompletableFuture<Received> never =
          comm.start(new PointToPoint.Receive(CommData.of(new int[1]), r.rank(), 1))
              .toCompletableFuture();
      r.comm().barrier(); // all have started theirs
      if (r.rank() == 0) {
        comm.abort("on purpose");
      }
      try {
        never.get(Expect.SOON.toSeconds(), TimeUnit.SECONDS);
        throw new RuleViolation("X6", "a receive without a message ended well");
      } catch (ExecutionException e) {
        Expect.that("F6", e.getCause() instanceof CommException, "its cause is %s", e.getCause());
      } catch (TimeoutException e) {
        throw new RuleViolation("X6 F6", "the future of a broken call does not complete", e);
      }
    }
  }
}
