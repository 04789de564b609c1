package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.AbortedException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Communicators that are closed while calls are in flight. On the model of the driver.
@Timeout(120)
class CudaClosingTest extends ModelGroups {
  /// Another thread frees memory, which waits for all kernels, and lets none be launched.
  @Test
  void close_launchIsHeldBack_endsIt() {
    CommConfig config = CONFIG.toBuilder().timeout(Duration.ofSeconds(5)).build();
    var closed = new CountDownLatch(1);
    List<Throwable> failures =
        failures(
            2,
            config,
            world -> {
              Communicator comm = world.duplicate();
              try (CommBuffer buffer = world.allocate(DataType.FLOAT32, 4);
                  CudaDevice device = CudaDriver.load().open(world.rank())) {
                assertSum(comm, buffer);
                var call = new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM);
                if (comm.rank() == 1) {
                  assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
                  comm.run(call);
                }
                Executor threads = task -> Thread.ofPlatform().daemon().start(task);
                long address = device.allocate(512);
                comm.start(call);
                CompletableFuture<Void> freeing =
                    CompletableFuture.runAsync(() -> device.free(address), threads);
                model.awaitWaiting(1);
                CompletableFuture<Throwable> starting =
                    CompletableFuture.supplyAsync(
                        () ->
                            catchThrowable(() -> {
                              while (true) {
                                comm.start(call);
                              }
                            }),
                        threads);
                model.awaitWaiting(2);
                comm.close();
                closed.countDown();
                freeing.get(1, TimeUnit.MINUTES);
                throw new CompletionException(starting.get(1, TimeUnit.MINUTES));
              } finally {
                comm.close();
              }
            });

    assertThat(failures.get(0)).hasCauseInstanceOf(ClosedException.class);
    assertThat(failures.get(1))
        .isInstanceOf(AbortedException.class)
        .isNotInstanceOf(CollectiveTimeoutException.class);
  }

  /// The thread's launch waits for another communicator's kernel, and that for a rank that comes
  /// after the close. It is of another process, as the driver holds launches on its device too.
  @Test
  void close_launchIsHeldBackAndACallIsQueued_endsBoth() {
    var closed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        false,
        world -> {
          Communicator comm = world.duplicate();
          try (Communicator other = world.duplicate();
              CommBuffer busy = world.allocate(DataType.FLOAT32, 4);
              CommBuffer data = world.allocate(DataType.FLOAT32, 4);
              CudaDevice device = CudaDriver.load().open(world.rank())) {
            assertSum(other, busy);
            var before = new Collective.AllReduce(busy.data(), busy.data(), ReduceOp.SUM);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            if (world.rank() == 0) {
              long address = device.allocate(512);
              Request running = other.start(before);
              CompletableFuture<Void> freeing =
                  CompletableFuture.runAsync(
                      () -> device.free(address), task -> Thread.ofPlatform().daemon().start(task));
              model.awaitWaiting(1);
              comm.start(call);
              Request queued = comm.start(call);
              model.awaitWaiting(2);
              comm.close();
              closed.countDown();
              running.await();
              freeing.get(1, TimeUnit.MINUTES);
              assertThatThrownBy(queued::await).isInstanceOf(ClosedException.class);
            } else {
              Request failing = comm.start(call);
              assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
              other.run(before);
              assertThatThrownBy(failing::await)
                  .isInstanceOfSatisfying(
                      AbortedException.class, it -> assertThat(it.rank()).isZero());
              comm.close();
            }
          } finally {
            closed.countDown();
          }
        });
  }

  /// No collective of its own is in flight.
  @Test
  void close_aSendWaitsForAnEvent_endsIt() {
    var closed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        world -> {
          Communicator comm = world.duplicate();
          try (Communicator other = world.duplicate();
              CommBuffer busy = world.allocate(DataType.FLOAT32, 4);
              CommBuffer data = world.allocate(DataType.FLOAT32, 4)) {
            assertSum(other, busy);
            var before = new Collective.AllReduce(busy.data(), busy.data(), ReduceOp.SUM);
            if (world.rank() == 0) {
              Request running = other.start(before);
              StreamSync sync = comm.streamSync().orElseThrow();
              try (StreamSync.Event event = other.streamSync().orElseThrow().createEvent()) {
                other.streamSync().orElseThrow().recordOnCommunicator(event);
                sync.communicatorWait(event);
                var sending =
                    new FutureTask<>(() -> catchThrowable(() -> comm.send(data.data(), 1, 3)));
                Thread sender = Thread.ofPlatform().daemon().start(sending);
                while (sender.getState() != Thread.State.TIMED_WAITING && !sending.isDone()) {
                  Thread.onSpinWait();
                }
                comm.close();
                assertThat(sending.get(30, TimeUnit.SECONDS)).isInstanceOf(ClosedException.class);
              }
              closed.countDown();
              running.await();
            } else {
              assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
              other.run(before);
            }
          } finally {
            closed.countDown();
            comm.close();
          }
        });
  }

  @Test
  void close_duringACollective_endsItForTheOthers() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4);
              assertSum(comm, buffer);
              if (comm.rank() == 0) {
                comm.start(new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
                comm.close();
                buffer.close();
                throw new IllegalStateException("closed");
              }
              comm.receive(CommData.of(new int[1]), 0, 1);
            });

    assertThat(failures.get(0)).hasMessage("closed");
    assertThat(failures.get(1))
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("rank 0 closed 'world' during");
  }

  /// Nobody has asked for the collective since it has ended, and nothing has matched the receive.
  @Test
  void close_otherThreadReceivesBehindACollectiveThatIsDone_concernsNobody() {
    var closed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        world -> {
          Communicator comm = world.duplicate();
          try (CommBuffer buffer = world.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, buffer);
            comm.sync(); // its thread has nothing to do any more
            Request reducing =
                comm.start(new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
            if (world.rank() == 1) {
              reducing.await();
              assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
              assertThat(comm.failure()).isEmpty();
            } else {
              awaitOnDevice(comm);
              CompletableFuture<Throwable> receiving =
                  inCall(comm, () -> comm.receive(CommData.of(new int[1]), 1, 1));
              comm.close();
              closed.countDown();
              assertThat(receiving.get(1, TimeUnit.MINUTES)).isInstanceOf(ClosedException.class);
            }
            world.barrier();
            comm.close();
          }
        });
  }

  /// {@return what a call throws on a thread of its own, which is in it by now}
  private static CompletableFuture<Throwable> inCall(Communicator comm, ThrowingCallable call) {
    var thrown = new CompletableFuture<Throwable>();
    Thread.ofPlatform()
        .daemon()
        .start(() -> {
          Throwable failure = catchThrowable(call);
          while (failure instanceof ConcurrentUseException) { // with whoever looks below
            failure = catchThrowable(call);
          }
          thrown.complete(failure);
        });
    long endNs = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    while (catchThrowable(comm::topology) == null) { // thrown while somebody is in a call
      assertThat(System.nanoTime() - endNs).isNegative();
      Thread.onSpinWait();
    }
    return thrown;
  }

  /// Its call waits in the stream for one of another communicator.
  @Test
  void close_deviceIsBusy_returnsAndGivesBackLater() {
    var begun = new CountDownLatch(1);
    var closed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (Communicator other = comm.duplicate();
              CommBuffer data = other.allocate(DataType.FLOAT32, 4)) {
            CommBuffer last = comm.allocate(DataType.FLOAT32, 4); // closed with its communicator
            assertSum(comm, last);
            assertSum(other, data);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            var never = new Collective.AllReduce(last.data(), last.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              StreamSync sync = other.streamSync().orElseThrow();
              try (StreamSync.Event reduced = sync.createEvent()) {
                Request busy = other.start(call);
                sync.recordOnCommunicator(reduced);
                comm.streamSync().orElseThrow().communicatorWait(reduced);
                comm.start(never);
                assertThat(begun.await(1, TimeUnit.MINUTES)).isTrue();
                comm.close();
                last.close(); // again
                closed.countDown();
                busy.await();
              }
            } else {
              Request failing = comm.start(never);
              begun.countDown();
              assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
              other.run(call);
              assertThatThrownBy(failing::await).isInstanceOf(AbortedException.class);
            }
          }
        });
  }

  /// Rank 0 has come to the call, has left and what it lent is gone, before rank 1's kernel begins.
  @Test
  void close_memoryIsFreedBeforeThePeersKernelBegins_isNotRead() {
    var queued = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (Communicator other = comm.duplicate();
              CommBuffer data = other.allocate(DataType.FLOAT32, 4);
              CommBuffer result = other.allocate(DataType.FLOAT32, 100_000);
              CudaDevice device = CudaDriver.load().open(comm.rank())) {
            assertSum(comm, data);
            assertSum(other, data);
            long address = device.allocate(400_000);
            CommData mine =
                CommData.ofUnsafeDeviceAddress(DataType.FLOAT32, address, 100_000, comm.rank());
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            var never = new Collective.AllReduce(mine, result.data(), ReduceOp.SUM);
            if (comm.rank() == 1) {
              StreamSync sync = other.streamSync().orElseThrow();
              try (StreamSync.Event reduced = sync.createEvent()) {
                Request busy = other.start(call);
                sync.recordOnCommunicator(reduced);
                comm.streamSync().orElseThrow().communicatorWait(reduced);
                Request failing = comm.start(never);
                queued.countDown();
                busy.await();
                assertThatThrownBy(failing::await).isInstanceOf(AbortedException.class);
              }
              device.free(address);
            } else {
              comm.start(never);
              assertThat(queued.await(30, TimeUnit.SECONDS)).isTrue();
              comm.close();
              model.freeAtOnce(address);
              other.run(call);
            }
          }
        });
  }

  /// Rank 0's kernel of the first communicator waits for rank 1, which calls it last.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void close_kernelOfAnotherCommunicatorWaits_doesNotWaitForIt(boolean isOneProcess) {
    var closed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        isOneProcess,
        comm -> {
          Communicator second = comm.duplicate();
          try (Communicator first = comm.duplicate();
              CommBuffer data = comm.allocate(DataType.FLOAT32, 4);
              CommBuffer other = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(first, data);
            assertSum(second, data);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              Request waiting = first.start(call);
              assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
              second.close(); // nobody else has its memory open
              assertSum(comm, other);
              waiting.await();
            } else {
              second.close();
              closed.countDown();
              assertSum(comm, other);
              first.run(call);
            }
          }
        });
  }

  /// The driver would wait for the others' kernels, and let none be launched on their devices.
  @Test
  void close_lastOfItsDeviceWhileOthersCall_doesNotHoldThemUp() {
    model.reset(3, 8, 0, 12_000, true);
    CommConfig config = CONFIG.toBuilder().timeout(Duration.ofSeconds(5)).build();
    var started = new CountDownLatch(1);
    var closed = new CountDownLatch(1);
    onRanks(
        3,
        config,
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data); // the devices reach each other
            Optional<Communicator> pair =
                comm.split(comm.rank() == 0 ? Communicator.NO_COLOR : 0, 0);
            pair.ifPresent(both -> assertSum(both, data));
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              assertThat(started.await(1, TimeUnit.MINUTES)).isTrue();
              comm.close();
              closed.countDown();
            } else if (comm.rank() == 1) {
              Request reducing = pair.orElseThrow().start(call);
              started.countDown();
              reducing.await();
            } else {
              assertThat(closed.await(1, TimeUnit.MINUTES)).isTrue();
              pair.orElseThrow().run(call);
            }
            pair.ifPresent(Communicator::close);
          } finally {
            started.countDown();
            closed.countDown();
          }
        });
  }

  /// The thread that frees asks the others' calls whether they have ended, and calls back then.
  @Test
  void close_calledBackByWhoFrees_mayOpenTheDevice() throws Exception {
    model.reset(3, 8, 0, 12_000, true);
    CudaProvider provider = provider(true);
    CommConfig first =
        CONFIG.toBuilder()
            .joinTimeout(Duration.ofSeconds(5))
            .option("COMM_CUDA_DEVICE", "0")
            .build();
    var watcherIsBusy = new CountDownLatch(1);
    var started = new CountDownLatch(1);
    var closed = new CountDownLatch(1);
    var over = new CountDownLatch(1);
    try (LocalGroup group = ThreadGroups.open(provider, 3, CONFIG)) {
      for (Future<Communicator> rank :
          start(
              group,
              comm -> {
                try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
                  assertSum(comm, data);
                  Optional<Communicator> pair =
                      comm.split(comm.rank() == 0 ? Communicator.NO_COLOR : 0, 0);
                  pair.ifPresent(both -> assertSum(both, data));
                  var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
                  if (comm.rank() == 0) {
                    assertThat(started.await(30, TimeUnit.SECONDS)).isTrue();
                    comm.close();
                    closed.countDown();
                  } else if (comm.rank() == 1) {
                    var busy =
                        pair.orElseThrow()
                            .start(call)
                            .toCompletableFuture()
                            .thenRun(() -> {
                              watcherIsBusy.countDown();
                              assertThat(catchThrowable(() -> over.await(1, TimeUnit.MINUTES)))
                                  .isNull();
                            });
                    assertThat(watcherIsBusy.await(30, TimeUnit.SECONDS)).isTrue();
                    var opening =
                        pair.orElseThrow()
                            .start(call)
                            .toCompletableFuture()
                            .thenRun(() -> {
                              assertThat(Thread.currentThread().getName()).contains("freeing");
                              ThreadGroups.open(provider, 1, first).close();
                            });
                    started.countDown();
                    try {
                      assertThat(opening).succeedsWithin(Duration.ofSeconds(30));
                    } finally {
                      over.countDown();
                    }
                    assertThat(busy).succeedsWithin(Duration.ofSeconds(30));
                  } else {
                    pair.orElseThrow().run(call);
                    assertThat(closed.await(30, TimeUnit.SECONDS)).isTrue();
                    pair.orElseThrow().run(call);
                  }
                  pair.ifPresent(Communicator::close);
                }
              })) {
        rank.get(1, TimeUnit.MINUTES);
      }
    }
  }

  @Test
  void close_driverRefusesSome_givesTheRestBack() {
    try (LocalGroup group = open(1, CONFIG, true)) {
      for (Future<Communicator> rank :
          start(
              group,
              comm -> {
                try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
                  assertSum(comm, data);
                }
              })) {
        assertThatCode(rank::get).doesNotThrowAnyException();
      }
      model.fail("cuModuleUnload", LAUNCH_FAILED);
    }
    held++; // that module
    assertThat(model.heldSoon(held)).isEqualTo(held);
  }
}
