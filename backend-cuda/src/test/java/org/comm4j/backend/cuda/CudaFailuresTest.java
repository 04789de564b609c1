package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.JoinException;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.comm4j.api.TransportFailedException;
import org.comm4j.tck.LogLines;
import org.comm4j.tck.Promise;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks that differ, die or don't come. On the model of the driver.
@Timeout(120)
class CudaFailuresTest extends ModelGroups {
  private static final Patience SOON =
      new Patience(Patience.USUAL.stallEvery(), Duration.ofMillis(200));

  static Stream<Arguments> otherCalls() {
    Map<String, BiConsumer<Communicator, CommData>> others =
        Map.of(
            "allReduce(MAX, FLOAT32 × 4)", (comm, data) -> comm.allReduce(data, ReduceOp.MAX),
            "allReduce(SUM, FLOAT32 × 3)",
                (comm, data) -> comm.allReduce(data.slice(0, 3), ReduceOp.SUM),
            "broadcast(FLOAT32 × 4, root 0)", (comm, data) -> comm.broadcast(data, 0),
            "scan(SUM, FLOAT32 × 4)", (comm, data) -> comm.scan(data, data, ReduceOp.SUM));
    return others.entrySet().stream()
        .flatMap(other ->
            IntStream.of(1, 6)
                .mapToObj(before -> Arguments.of(other.getKey(), other.getValue(), before)));
  }

  /// Not only in the first calls, whose data is moved as if it were much: little goes by lines.
  @ParameterizedTest(name = "{0} after {2}")
  @MethodSource("otherCalls")
  void rank_callsSomethingElse_allHearWho(
      String text, BiConsumer<Communicator, CommData> other, int callsBefore) {
    List<Throwable> failures =
        failures(
            3,
            CONFIG,
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                for (int call = 0; call < callsBefore; call++) {
                  assertSum(comm, buffer);
                }
                if (comm.rank() == 1) {
                  other.accept(comm, buffer.data());
                } else {
                  comm.allReduce(buffer.data(), ReduceOp.SUM);
                }
              }
            });

    assertThat(failures)
        .hasSize(3)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOf(MismatchedCallException.class)
                .hasMessageContainingAll(
                    "rank 1 started collective #%d, %s".formatted(callsBefore + 1, text),
                    "allReduce(SUM, FLOAT32 × 4)"));
  }

  /// Its process may pause, and its kernel may have told the peers before.
  @Test
  void rank_callsSomethingElseAndSaysSoLate_allHearWhat() {
    List<Throwable> failures =
        besideASilentRank((_, call, goesOn) -> {
          assertThat(call.isDone()).isFalse(); // looks at what the kernel says
          goesOn.countDown();
          call.await();
        });

    assertThat(failures)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOf(MismatchedCallException.class)
                .hasMessageContainingAll(
                    "allReduce(MAX, FLOAT32 × 4)", "allReduce(SUM, FLOAT32 × 4)"));
  }

  /// Also beside a thread that waits for the call.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void rank_callsSomethingElseAndSaysNothing_closeDoesNotWait(boolean isAwaited) {
    List<Throwable> failures =
        besideASilentRank((comm, call, goesOn) -> {
          FutureTask<Throwable> awaiting = new FutureTask<>(() -> catchThrowable(call::await));
          if (isAwaited) {
            Thread waiting = Thread.ofPlatform().daemon().start(awaiting);
            while (waiting.isAlive() && waiting.getState() != Thread.State.TIMED_WAITING) {
              Thread.onSpinWait();
            }
          }
          long startNs = System.nanoTime();
          comm.close();
          Promise.CLOSED.keep("L1", "close()", startNs);
          if (isAwaited) {
            Throwable failure = awaiting.get();
            Promise.CLOSED.keep("L4", "a wait that another thread's close ends", startNs);
            assertThat(failure).isInstanceOf(ClosedException.class);
          }
          goesOn.countDown();
          throw new CompletionException("closed", null);
        });

    assertThat(failures.get(0)).hasMessage("closed");
    assertThat(failures.get(1)).isInstanceOf(CommException.class);
  }

  @FunctionalInterface
  private interface BesideASilentRank {
    /// Does what ends with a failure.
    ///
    /// @param call what rank 0 has started, which its kernel has left
    /// @param goesOn lets rank 1 say what it has started instead
    void run(Communicator comm, Request call, CountDownLatch goesOn) throws Exception;
  }

  /// {@return how two ranks fail that call different things} What looks at rank 1's calls is kept
  /// by what depends on another one's future.
  private List<Throwable> besideASilentRank(BesideASilentRank body) {
    var hasMet = new CountDownLatch(1);
    var isKept = new CountDownLatch(1);
    var goesOn = new CountDownLatch(1);
    return failures(
        2,
        CONFIG,
        world -> {
          try (Communicator comm = world.duplicate();
              CommBuffer buffer = world.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, buffer);
            assertSum(world, buffer);
            CommData data = buffer.data();
            var sum = new Collective.AllReduce(data, data, ReduceOp.SUM);
            if (comm.rank() == 0) {
              assertThat(hasMet.await(1, TimeUnit.MINUTES)).isTrue();
              world.run(sum);
              Request call = comm.start(sum);
              awaitOnDevice(comm);
              body.run(comm, call, goesOn);
              return;
            }
            var _ =
                world
                    .start(sum)
                    .toCompletableFuture()
                    .thenRun(() -> {
                      isKept.countDown();
                      assertThat(catchThrowable(goesOn::await)).isNull();
                    });
            hasMet.countDown();
            assertThat(isKept.await(1, TimeUnit.MINUTES)).isTrue();
            Request other = comm.start(new Collective.AllReduce(data, data, ReduceOp.MAX));
            assertThat(goesOn.await(1, TimeUnit.MINUTES)).isTrue();
            other.await();
          } finally {
            goesOn.countDown();
          }
        });
  }

  /// Where no kernels meet either: also if one would be done when the other is not.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 16_384})
  void naive_rankCallsSomethingElse_allHearWho(int count) {
    List<Throwable> failures =
        failures(
            3,
            options(Map.of("COMM_CUDA_CHUNK", "65536", "COMM_CUDA_PATH", "naive")),
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 32_768)) {
                CommData data = comm.rank() == 1 ? buffer.data() : buffer.data().slice(0, count);
                comm.broadcast(data, 0);
              }
            });

    assertThat(failures)
        .hasSize(3)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOf(MismatchedCallException.class)
                .hasMessageContainingAll(
                    "rank 1 started collective #1, broadcast(FLOAT32 × 32768, root 0)",
                    "broadcast(FLOAT32 × %d, root 0)".formatted(count)));
  }

  /// By other algorithms, or by the same on other numbers of blocks.
  @ParameterizedTest
  @ValueSource(strings = {"two-stage", "one-stage blocks=1"})
  void tuning_differsBetweenRanks_allHearOfIt(String line) throws IOException {
    Path ofOne = Files.writeString(root.resolve("one"), "cuda: allReduce one-stage blocks=2");
    Path ofOther = Files.writeString(root.resolve("other"), "cuda: allReduce " + line);
    CudaProvider provider = provider(true);
    try (LocalGroup group =
        ThreadGroups.open(
            2,
            session ->
                provider.open(
                    session,
                    CONFIG.toBuilder().tuning(session.rank() == 0 ? ofOne : ofOther).build()))) {
      List<Throwable> failures =
          failures(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 16_384)) {
                  comm.allReduce(buffer.data(), ReduceOp.SUM);
                }
              });
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure).isInstanceOf(MismatchedCallException.class));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"auto", "naive"})
  void rank_doesNotCome_isNamedAtTheDeadline(String path) {
    CommConfig config =
        options(Map.of("COMM_CUDA_PATH", path)).toBuilder().timeout(Duration.ofSeconds(2)).build();
    var over = new CountDownLatch(1);
    List<Throwable> failures = failures(3, config, comm -> missRankOne(comm, over));

    assertThat(failures)
        .allSatisfy(failure -> assertThat(failure).isInstanceOf(CollectiveTimeoutException.class));
    assertThat(failures.getFirst())
        .hasMessageContainingAll("allReduce(SUM, FLOAT32 × 4)", "[1]", "COMM_TIMEOUT");
  }

  /// Rank 1 does not come to the others' second all-reduce, and waits for nothing with a deadline
  /// of its own.
  ///
  /// @param over when one of them has waited in vain
  private static void missRankOne(Communicator comm, CountDownLatch over)
      throws InterruptedException {
    try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
      assertSum(comm, buffer);
      if (comm.rank() == 1) {
        assertThat(over.await(1, TimeUnit.MINUTES)).isTrue();
        comm.barrier(); // hears why
      } else {
        comm.allReduce(buffer.data(), ReduceOp.SUM);
      }
    } finally {
      over.countDown();
    }
  }

  /// Its kernel may wait in a queue of the device's behind another one.
  @Test
  void rank_doesNotComeAndStreamsShareQueues_messageSaysSo() {
    CommConfig config =
        CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).option("COMM_CUDA_DEVICE", "0").build();
    var over = new CountDownLatch(1);
    List<Throwable> failures =
        failures(
            2,
            config,
            comm -> {
              List<Communicator> others = Stream.generate(comm::duplicate).limit(31).toList();
              try {
                missRankOne(comm, over);
              } finally {
                others.forEach(Communicator::close);
              }
            });

    assertThat(failures.getFirst())
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContainingAll(
            "streams share ", Libcuda.queues() + " queues of device 0", "in the same order");
  }

  /// Who has started the call looks at nothing meanwhile.
  @Test
  void rank_comesWhenAnothersKernelHasLeft_bothHearWhoWasLate() {
    CommConfig config = CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).build();
    var hasLeft = new CountDownLatch(1);
    var over = new CountDownLatch(1);
    List<Throwable> failures =
        failures(
            2,
            config,
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4096)) {
                assertSum(comm, buffer);
                var call = new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM);
                if (comm.rank() == 1) {
                  Request reducing = comm.start(call);
                  awaitOnDevice(comm);
                  hasLeft.countDown();
                  assertThat(over.await(1, TimeUnit.MINUTES)).isTrue();
                  reducing.await();
                } else {
                  assertThat(hasLeft.await(1, TimeUnit.MINUTES)).isTrue();
                  try {
                    comm.run(call);
                  } finally {
                    over.countDown();
                  }
                }
              }
            });

    assertThat(failures)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOfSatisfying(
                    CollectiveTimeoutException.class,
                    it -> assertThat(it.missing()).containsExactly(0)));
  }

  static Stream<Arguments> stalls() {
    return Stream.of(
        Arguments.of("auto", 1, "allReduce(SUM, FLOAT32 × 4)", "rank(s) [1]"), // by lines
        Arguments.of("auto", 2, "allReduce(SUM, FLOAT32 × 4)", "rank(s) [1]"),
        Arguments.of("auto", 1, "allReduce(SUM, FLOAT32 × 16384)", "rank(s) [1]"), // by signals
        Arguments.of("auto", 1, "scan(SUM, FLOAT32 × 4)", "rank(s) [1]"), // meets in a kernel
        Arguments.of("naive", 1, "allReduce(SUM, FLOAT32 × 4)", "other ranks"));
  }

  /// @param started how many such calls, of which the last one is awaited
  @ParameterizedTest
  @MethodSource("stalls")
  void rank_doesNotComeForLong_warningsSayWhoWaitsForWhom(
      String path, int started, String text, String whom) {
    boolean isScan = text.startsWith("scan");
    int count = text.contains("16384") ? 16_384 : 4;
    CudaProvider provider =
        provider(true, new Patience(Duration.ofMillis(100), Patience.USUAL.grace()));
    CommConfig config = options(Map.of("COMM_CUDA_PATH", path));
    try (var log = new LogLines("org.comm4j.backend.cuda");
        LocalGroup group = ThreadGroups.open(provider, 3, config)) {
      var over =
          start(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, count)) {
                  for (int call = 1; call < 6; call++) { // the first ones don't go by lines
                    assertSum(comm, buffer);
                  }
                  if (comm.rank() == 1) {
                    for (int waiting : new int[] {0, 2}) {
                      log.await(
                          "rank %d has waited \\d+ s in \\Qcollective #%d, %s of 'world' for %s\\E"
                              .formatted(waiting, 5 + started, text, whom),
                          Duration.ofSeconds(20));
                    }
                  }
                  CommData data = buffer.data();
                  Collective call =
                      isScan
                          ? new Collective.Scan(data, data, ReduceOp.SUM)
                          : new Collective.AllReduce(data, data, ReduceOp.SUM);
                  for (int before = 1; before < started; before++) {
                    comm.start(call);
                  }
                  comm.run(call);
                }
              });
      for (Future<Communicator> rank : over) {
        assertThatCode(rank::get).doesNotThrowAnyException();
      }
    }
  }

  @Test
  void rank_dies_othersHearOfItInsideAKernelAndGoOn() {
    var inside = new CountDownLatch(2);
    try (LocalGroup group = open(3, CONFIG, true)) {
      List<Throwable> failures =
          failures(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                  assertSum(comm, buffer);
                  if (comm.rank() == 2) {
                    assertThat(inside.await(1, TimeUnit.MINUTES)).isTrue();
                    throw new IllegalStateException("killed");
                  }
                  Request reducing =
                      comm.start(
                          new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
                  inside.countDown();
                  Throwable failure = catchThrowable(reducing::await);
                  try (Communicator rest = comm.shrink().communicator();
                      CommBuffer again = rest.allocate(DataType.FLOAT32, 4)) {
                    assertThat(rest.size()).isEqualTo(2);
                    assertSum(rest, again);
                  }
                  throw (RuntimeException) failure;
                }
              });

      assertThat(failures.subList(0, 2))
          .allSatisfy(failure ->
              assertThat(failure)
                  .isInstanceOfSatisfying(
                      PeerFailedException.class, it -> assertThat(it.ranks()).containsExactly(2)));
    }
  }

  @Test
  void wait_interrupted_breaksTheCommunicator() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                assertSum(comm, buffer);
                if (comm.rank() == 0) {
                  Thread.currentThread().interrupt();
                  Throwable failure =
                      catchThrowable(() -> comm.allReduce(buffer.data(), ReduceOp.SUM));
                  assertThat(Thread.interrupted()).isTrue();
                  throw (RuntimeException) failure;
                }
                comm.receive(CommData.of(new int[1]), 0, 1);
              }
            });

    assertThat(failures.get(0))
        .isInstanceOf(InterruptedCallException.class)
        .hasMessageContaining("allReduce(SUM, FLOAT32 × 4)");
    assertThat(failures.get(1)).isInstanceOf(AbortedException.class);
  }

  /// The event comes when the first call was given up and nobody has looked at the second one,
  /// whose kernel then ends at once.
  @Test
  void calls_behindAnEventThatComesTooLate_allFail() {
    CommConfig impatient = CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).build();
    var isGivenUp = new CountDownLatch(1);
    CudaProvider provider = provider(true, SOON);
    try (LocalGroup impatientGroup = ThreadGroups.open(provider, 2, impatient)) {
      onRanks(
          2,
          CONFIG,
          slow -> {
            Communicator comm = impatientGroup.communicators().get(slow.rank());
            CommBuffer data = comm.allocate(DataType.FLOAT32, 4);
            try (CommBuffer other = slow.allocate(DataType.FLOAT32, 4)) {
              assertSum(slow, other);
              assertSum(comm, data);
              var late = new Collective.AllReduce(other.data(), other.data(), ReduceOp.SUM);
              if (slow.rank() == 0) {
                giveUpBehind(slow, late, comm, data, isGivenUp);
              } else {
                assertThat(isGivenUp.await(1, TimeUnit.MINUTES)).isTrue();
                slow.run(late);
              }
            }
          });
    }
  }

  /// A kernel has said who is late, and others of its call, whose waits began later, may go on.
  @Test
  void rank_doesNotComeAndTheCallGoesOnOnTheDevice_isNamed() {
    CommConfig config = CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).build();
    var over = new CountDownLatch(1);
    try (LocalGroup group = ThreadGroups.open(provider(true, SOON), 2, config)) {
      List<Throwable> failures =
          failures(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                  assertSum(comm, buffer);
                  comm.barrier();
                  if (comm.rank() == 1) {
                    assertThat(over.await(1, TimeUnit.MINUTES)).isTrue();
                    comm.barrier(); // hears why
                  } else {
                    model.holdEvents(true);
                    comm.allReduce(buffer.data(), ReduceOp.SUM);
                  }
                } finally {
                  model.holdEvents(false);
                  over.countDown();
                }
              });
      assertThat(failures)
          .allSatisfy(failure ->
              assertThat(failure)
                  .isInstanceOfSatisfying(
                      CollectiveTimeoutException.class,
                      it -> assertThat(it.missing()).containsExactly(1)));
    }
  }

  /// The other rank comes to each of them late, but long before its kernel's deadline, whose clock
  /// goes on while the JVM pauses; to the last one after the deadline that the first one had.
  @Test
  void calls_behindLateOnes_haveTheirOwnDeadline() {
    Duration lateness = Duration.ofMillis(200);
    CommConfig config = CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).build();
    var late = Stream.generate(() -> new CountDownLatch(1)).limit(12).toList();
    try (LocalGroup group = ThreadGroups.open(provider(true, SOON), 2, config)) {
      for (Future<Communicator> rank :
          start(
              group,
              comm -> {
                try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4096)) {
                  assertSum(comm, data);
                  var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
                  Request last = null;
                  for (int each = 0; comm.rank() == 0 && each < late.size(); each++) {
                    last = comm.start(call);
                  }
                  for (CountDownLatch each : late) {
                    if (last == null) {
                      assertThat(each.await(1, TimeUnit.MINUTES)).isTrue();
                      comm.run(call);
                    } else {
                      Request waiting = last;
                      assertThatThrownBy(() -> waiting.await(lateness))
                          .isInstanceOf(TimeoutException.class);
                      each.countDown();
                    }
                  }
                  if (last != null) {
                    last.await();
                  }
                } finally {
                  late.forEach(CountDownLatch::countDown);
                }
              })) {
        assertThatCode(rank::get).doesNotThrowAnyException();
      }
    }
  }

  private static void giveUpBehind(
      Communicator slow,
      Collective late,
      Communicator comm,
      CommBuffer data,
      CountDownLatch isGivenUp) {
    StreamSync sync = comm.streamSync().orElseThrow();
    try (StreamSync.Event event = sync.createEvent();
        StreamSync.Event behind = sync.createEvent();
        CudaDevice device = CudaDriver.load().open(0)) {
      Request running = slow.start(late);
      slow.streamSync().orElseThrow().recordOnCommunicator(event);
      sync.communicatorWait(event);
      var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
      Request first = comm.start(call);
      Request second = comm.start(call);
      sync.recordOnCommunicator(behind);
      assertThatThrownBy(first::await)
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining("has not come to the end of collective #2");

      isGivenUp.countDown();
      running.await();
      CudaDevice.Stream stream = device.createStream();
      sync.streamWait(stream.handle(), behind);
      device.await(stream);
      device.destroy(stream);
      assertThatThrownBy(second::await)
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining("has not come to the end of collective #2");
    }
  }

  @Test
  void chunks_differBetweenRanks_namesBoth() {
    AtomicInteger next = new AtomicInteger();
    Supplier<CommConfig> config =
        () -> options(Map.of("COMM_CUDA_CHUNK", next.getAndIncrement() == 0 ? "65536" : "131072"));
    CudaProvider provider = provider(true);
    try (LocalGroup group = ThreadGroups.open(2, session -> provider.open(session, config.get()))) {
      List<Throwable> failures =
          failures(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                  comm.allReduce(buffer.data(), ReduceOp.SUM);
                }
              });
      assertThat(failures)
          .anySatisfy(failure ->
              assertThat(failure)
                  .isInstanceOf(JoinException.class)
                  .hasMessageContainingAll("COMM_CUDA_CHUNK", "65536", "131072", "rank 1"));
    }
  }

  /// Loading a kernel waits for those that run, and each of these waits for a rank that would load.
  @Test
  void start_firstCallsOfTwoTypesInOppositeOrder_end() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (Communicator other = comm.duplicate();
              CommBuffer data = comm.allocate(DataType.FLOAT32, 4);
              CommBuffer ints = comm.allocate(DataType.INT32, 4);
              CommBuffer longs = other.allocate(DataType.INT64, 4)) {
            assertSum(comm, data);
            assertSum(other, data);
            var ofInts = new Collective.AllReduce(ints.data(), ints.data(), ReduceOp.SUM);
            var ofLongs = new Collective.AllReduce(longs.data(), longs.data(), ReduceOp.SUM);
            Request first = comm.rank() == 0 ? comm.start(ofInts) : other.start(ofLongs);
            Request second = comm.rank() == 0 ? other.start(ofLongs) : comm.start(ofInts);
            first.await();
            second.await();
          }
        });
  }
}
