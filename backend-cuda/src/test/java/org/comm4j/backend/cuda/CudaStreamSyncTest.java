package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.junit.jupiter.api.Test;

/// Calls in order with a program's streams and events. On the model of the driver.
class CudaStreamSyncTest extends ModelGroups {
  private static final int CAPTURE_IMPLICIT = 906; // of a stream that waits for the legacy one

  /// The program's own work comes before the all-reduce and after it, without a wait of the host.
  @Test
  void streamSync_ordersTheCommunicatorWithAStream() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          CudaDriver driver = CudaDriver.load();
          try (CudaDevice device = driver.open(comm.rank());
              CommBuffer from = comm.allocate(DataType.INT32, 1000);
              CommBuffer data = comm.allocate(DataType.INT32, 1000);
              CommBuffer to = comm.allocate(DataType.INT32, 1000);
              StreamSync.Event ready = sync.createEvent();
              StreamSync.Event reduced = sync.createEvent()) {
            fill(from, i -> i + comm.rank());
            CudaDevice.Stream stream = device.createStream();
            long bytes = data.data().bytes();
            long at = ((DeviceData) data.data()).address();
            device.copy(((DeviceData) from.data()).address(), at, bytes, stream);
            sync.record(ready, stream.handle());
            sync.communicatorWait(ready);
            comm.start(new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM));
            sync.recordOnCommunicator(reduced);
            sync.streamWait(stream.handle(), reduced);
            device.copy(at, ((DeviceData) to.data()).address(), bytes, stream);
            device.await(stream);
            assertElements(to, i -> 2 * i + 1);
            sync.sync();
            device.destroy(stream);
          }
        });
  }

  @Test
  void event_ofAnotherDevice_isWaitedForAndNotRecorded() {
    var events = new LinkedBlockingQueue<StreamSync.Event>();
    onRanks(
        2,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          if (comm.rank() == 0) {
            events.add(sync.createEvent());
            comm.barrier();
          } else {
            try (StreamSync.Event other = events.take();
                CudaDevice device = CudaDriver.load().open(1)) {
              CudaDevice.Stream stream = device.createStream();
              for (ThrowingCallable recording :
                  List.<ThrowingCallable>of(
                      () -> sync.recordOnCommunicator(other),
                      () -> sync.record(other, stream.handle()))) {
                assertThatThrownBy(recording)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContainingAll(
                        "made for device 0", "expected: one made for device 1");
              }
              sync.communicatorWait(other);
              sync.streamWait(stream.handle(), other);
              device.destroy(stream);
            }
            comm.barrier();
          }
        });
  }

  /// Else the communicator's stream would become part of the program's graph.
  @Test
  void stream_isBeingCaptured_isRefused() {
    onRanks(
        1,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          try (StreamSync.Event event = sync.createEvent();
              CudaDevice device = CudaDriver.load().open(0)) {
            CudaDevice.Stream stream = device.createStream();
            model.capture(stream, true);
            for (ThrowingCallable using :
                List.<ThrowingCallable>of(
                    () -> sync.record(event, stream.handle()),
                    () -> sync.streamWait(stream.handle(), event))) {
              assertThatThrownBy(using)
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContainingAll(
                      "0x" + Long.toHexString(stream.handle()), "outside of the capture");
            }
            model.capture(stream, false);
            model.failHere("cuStreamIsCapturing", CAPTURE_IMPLICIT); // of the legacy stream
            assertThatThrownBy(() -> sync.streamWait(0, event))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContainingAll("0x0", "outside of the capture");
            assertThat(comm.failure()).isEmpty();
            sync.record(event, stream.handle());
            sync.streamWait(stream.handle(), event);
            device.destroy(stream);
          }
        });
  }

  /// The context is gone by then, or somebody else's.
  @Test
  void event_closedBehindItsCommunicator_isGone() {
    var events = new ConcurrentLinkedQueue<StreamSync.Event>();
    onRanks(
        2,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          events.add(sync.createEvent());
          StreamSync.Event closed = sync.createEvent();
          closed.close();
          closed.close();
          assertThatThrownBy(() -> sync.recordOnCommunicator(closed))
              .isInstanceOf(IllegalStateException.class);
        });
    assertThat(model.heldSoon(held)).isEqualTo(held);
    events.forEach(StreamSync.Event::close);
    assertThat(model.held()).isEqualTo(held);
  }

  /// What is sent is written by a stream that waits for the other rank, and the event that says so
  /// was waited for while a call was queued.
  @Test
  void send_ofWhatAnEventIsBehind_waitsForIt() {
    CommConfig naive = options(Map.of("COMM_CUDA_PATH", "naive"));
    try (LocalGroup naiveGroup = open(2, naive, true)) {
      onRanks(
          2,
          CONFIG,
          slow -> {
            Communicator comm = naiveGroup.communicators().get(slow.rank());
            try (CommBuffer data = slow.allocate(DataType.INT32, 100);
                CommBuffer other = comm.allocate(DataType.INT32, 4)) {
              slow.allReduce(data.data(), ReduceOp.SUM);
              fill(data, i -> i);
              var late = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
              var first = new Collective.AllReduce(other.data(), other.data(), ReduceOp.SUM);
              if (slow.rank() == 0) {
                StreamSync sync = comm.streamSync().orElseThrow();
                try (StreamSync.Event reduced = sync.createEvent()) {
                  Request running = slow.start(late);
                  slow.streamSync().orElseThrow().recordOnCommunicator(reduced);
                  Request queued = comm.start(first);
                  sync.communicatorWait(reduced);
                  comm.send(data.data(), 1, 3);
                  queued.await();
                  running.await();
                }
              } else {
                comm.run(first);
                try (CommBuffer got = comm.allocate(DataType.INT32, 100)) {
                  Request receive = comm.start(new PointToPoint.Receive(got.data(), 0, 3));
                  assertThatThrownBy(() -> receive.await(Duration.ofMillis(200)))
                      .as("what comes before the sum")
                      .isInstanceOf(TimeoutException.class);
                  slow.run(late);
                  receive.await();
                  assertElements(got, i -> 2 * i);
                }
              }
            }
          });
    }
  }

  /// The program's stream still reads what will be received into.
  @Test
  void receive_intoWhatAnEventIsBehind_waitsForIt() {
    var received = new CountDownLatch(1);
    try (LocalGroup group = open(2, CONFIG, true)) {
      onRanks(
          2,
          CONFIG,
          slow -> {
            Communicator comm = group.communicators().get(slow.rank());
            try (CommBuffer data = slow.allocate(DataType.INT32, 100)) {
              slow.allReduce(data.data(), ReduceOp.SUM);
              fill(data, i -> i);
              var late = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
              if (slow.rank() == 0) {
                StreamSync sync = comm.streamSync().orElseThrow();
                try (StreamSync.Event reduced = sync.createEvent()) {
                  Request running = slow.start(late);
                  slow.streamSync().orElseThrow().recordOnCommunicator(reduced);
                  sync.communicatorWait(reduced);
                  comm.receive(data.data(), 1, 3);
                  received.countDown();
                  running.await();
                  assertElements(data, i -> 7 * i);
                }
              } else {
                try (CommBuffer sent = comm.allocate(DataType.INT32, 100)) {
                  fill(sent, i -> 7 * i);
                  Request sending = comm.start(new PointToPoint.Send(sent.data(), 0, 3));
                  assertThat(received.await(200, TimeUnit.MILLISECONDS))
                      .as("whether it comes before the sum")
                      .isFalse();
                  slow.run(late);
                  sending.await();
                  assertElements(data, i -> 2 * i);
                }
              }
            }
          });
    }
  }

  /// They wait for the devices to meet, and the second one then for the other rank, which comes
  /// behind what this rank does next.
  @Test
  void recordOnCommunicator_firstCalls_waitsUntilTheyAreLaunched() {
    var started = new CountDownLatch(1);
    var recorded = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          try (CommBuffer data = comm.allocate(DataType.INT32, 100);
              StreamSync.Event event = sync.createEvent()) {
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              Request first = comm.start(call);
              Request second = comm.start(call);
              started.countDown();
              sync.recordOnCommunicator(event);
              recorded.countDown();
              first.await();
              second.await();
            } else {
              assertThat(started.await(30, TimeUnit.SECONDS)).isTrue();
              comm.run(call);
              assertThat(recorded.await(30, TimeUnit.SECONDS)).isTrue();
              comm.run(call);
            }
          }
        });
  }

  /// The thread that has done the call before runs what depends on that, for as long as it takes.
  @Test
  void recordOnCommunicator_threadHasEndedTheCallBefore_doesNotWaitForTheThread() {
    var isWatched = new CountDownLatch(1);
    var hasEnded = new CountDownLatch(1);
    var recorded = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          try (CommBuffer data = comm.allocate(DataType.INT32, 100);
              StreamSync.Event event = sync.createEvent()) {
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            var onHost = new Collective.Scan(data.data(), data.data(), ReduceOp.SUM);
            comm.run(call); // the devices have met
            if (comm.rank() == 0) {
              var over =
                  comm.start(onHost)
                      .toCompletableFuture()
                      .thenRun(() -> {
                        hasEnded.countDown();
                        assertThat(catchThrowable(recorded::await)).isNull();
                      });
              isWatched.countDown();
              assertThat(hasEnded.await(30, TimeUnit.SECONDS)).isTrue();
              Request behind = comm.start(call);
              sync.recordOnCommunicator(event);
              recorded.countDown();
              behind.await();
              over.get(30, TimeUnit.SECONDS);
            } else {
              assertThat(isWatched.await(30, TimeUnit.SECONDS)).isTrue();
              comm.run(onHost);
              assertThat(recorded.await(30, TimeUnit.SECONDS)).isTrue();
              comm.run(call);
            }
          } finally {
            recorded.countDown();
          }
        });
  }

  /// The call is launched all the same: the thread has begun that, and the driver, which frees
  /// something for the program, holds it back. The other rank is of another process, as the driver
  /// holds launches on its device too.
  @Test
  void recordOnCommunicator_interruptedWhileACallIsLaunched_throwsThat() {
    var isQueued = new CountDownLatch(1);
    var hasEnded = new CountDownLatch(1);
    var goesOn = new CountDownLatch(1);
    var isBroken = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        false,
        world -> {
          Communicator comm = world.duplicate();
          StreamSync sync = comm.streamSync().orElseThrow();
          try (StreamSync.Event event = sync.createEvent();
              CommBuffer busy = world.allocate(DataType.INT32, 100);
              CommBuffer data = world.allocate(DataType.INT32, 100);
              CudaDevice device = CudaDriver.load().open(world.rank())) {
            var before = new Collective.AllReduce(busy.data(), busy.data(), ReduceOp.SUM);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            var onHost = new Collective.Scan(data.data(), data.data(), ReduceOp.SUM);
            world.run(before); // the devices have met
            comm.run(call);
            if (world.rank() == 1) {
              assertThat(isQueued.await(30, TimeUnit.SECONDS)).isTrue();
              comm.run(onHost);
              assertThat(isBroken.await(30, TimeUnit.SECONDS)).isTrue();
              world.run(before);
              return;
            }
            var _ =
                comm.start(onHost)
                    .toCompletableFuture()
                    .thenRun(() -> {
                      hasEnded.countDown();
                      assertThat(catchThrowable(goesOn::await)).isNull();
                    });
            Request failing = comm.start(call);
            isQueued.countDown();
            assertThat(hasEnded.await(30, TimeUnit.SECONDS)).isTrue();
            var recording =
                new FutureTask<>(() -> catchThrowable(() -> sync.recordOnCommunicator(event)));
            Thread waiting = Thread.ofPlatform().daemon().start(recording);
            while (waiting.isAlive() && waiting.getState() != Thread.State.TIMED_WAITING) {
              Thread.onSpinWait();
            }
            Request running = world.start(before);
            long address = device.allocate(512);
            Thread freeing = Thread.ofPlatform().daemon().start(() -> device.free(address));
            model.awaitWaiting(1);
            goesOn.countDown();
            model.awaitWaiting(2);
            waiting.interrupt();
            while (waiting.isAlive() && comm.failure().isEmpty()) {
              Thread.onSpinWait();
            }
            isBroken.countDown();
            running.await();
            assertThat(recording.get(30, TimeUnit.SECONDS))
                .isInstanceOf(InterruptedCallException.class);
            assertThatThrownBy(failing::await).isInstanceOf(InterruptedCallException.class);
            freeing.join();
          } finally {
            goesOn.countDown();
            isBroken.countDown();
            comm.close();
          }
        });
  }

  @Test
  void recordOnCommunicator_receiveTakenBackMeanwhile_isBehindTheRest() {
    onRanks(
        1,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          try (CommBuffer data = comm.allocate(DataType.INT32, 100);
              StreamSync.Event event = sync.createEvent()) {
            Request receive = comm.start(new PointToPoint.Receive(data.data(), 0, 3));
            var recording =
                new FutureTask<>(() -> {
                  Throwable thrown;
                  do { // the other thread looks into the communicator now and then
                    thrown = catchThrowable(() -> sync.recordOnCommunicator(event));
                  } while (thrown instanceof ConcurrentUseException);
                  return thrown;
                });
            Thread.ofPlatform().start(recording);
            while (!recording.isDone()
                && !(catchThrowable(comm::streamSync) instanceof ConcurrentUseException)) {
              Thread.onSpinWait(); // until that thread is inside
            }
            assertThat(receive.cancel()).isTrue();
            assertThat(recording.get(30, TimeUnit.SECONDS)).isNull();
          }
        });
  }

  @Test
  void recordOnCommunicator_behindAReceive_isBehindWhatComes() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          StreamSync sync = comm.streamSync().orElseThrow();
          try (CudaDevice device = CudaDriver.load().open(comm.rank());
              CommBuffer data = comm.allocate(DataType.INT32, 100);
              CommBuffer to = comm.allocate(DataType.INT32, 100);
              StreamSync.Event received = sync.createEvent()) {
            if (comm.rank() == 0) {
              CudaDevice.Stream stream = device.createStream();
              Request receive = comm.start(new PointToPoint.Receive(data.data(), 1, 3));
              sync.recordOnCommunicator(received);
              sync.streamWait(stream.handle(), received);
              device.copy(
                  ((DeviceData) data.data()).address(),
                  ((DeviceData) to.data()).address(),
                  data.data().bytes(),
                  stream);
              device.await(stream);
              device.destroy(stream);
              assertElements(to, i -> 7 * i);
              receive.await();
            } else {
              fill(data, i -> 7 * i);
              comm.send(data.data(), 0, 3);
            }
          }
        });
  }
}
