package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What the driver refuses in a call. On its model.
@Timeout(120)
class CudaDriverFailuresTest extends ModelGroups {
  private static final int MPS_RPC_FAILURE = 806;

  /// The sender counts it as received, so all have to know.
  @Test
  void receive_cantBeStored_breaksTheCommunicatorAndEndsTheFuture() {
    var sent = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 5)) {
            if (comm.rank() == 0) {
              comm.send(buffer.data(), 1, 3);
              sent.countDown();
              assertThatThrownBy(comm::barrier).isInstanceOf(AbortedException.class);
            } else {
              assertThat(sent.await(1, TimeUnit.MINUTES)).isTrue();
              model.fail("cuMemcpyAsync", INVALID_VALUE);
              Request receive = comm.start(new PointToPoint.Receive(buffer.data(), 0, 3));
              assertThatThrownBy(() -> receive.toCompletableFuture().get(1, TimeUnit.MINUTES))
                  .hasCauseInstanceOf(AbortedException.class)
                  .hasMessageContaining("can't be stored");
              assertThatThrownBy(receive::await).isInstanceOf(AbortedException.class);
              model.fail("cuMemcpyAsync", 0);
            }
          }
        });
  }

  static Stream<Arguments> refusals() {
    return Stream.of(
        Arguments.of(
            "cuPointerGetAttribute",
            (BiConsumer<Communicator, CommData>)
                (comm, data) -> comm.allReduce(data, ReduceOp.SUM)),
        Arguments.of(
            "cuMemHostAlloc",
            (BiConsumer<Communicator, CommData>) (comm, data) -> comm.send(data, 1, 2)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("refusals")
  void driver_refusesBeforeACallBegins_failsOnAllRanks(
      String function, BiConsumer<Communicator, CommData> call) {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              try (var memory = OfProgram.allocate(DataType.INT8, 50_000, comm.rank())) {
                comm.barrier();
                if (comm.rank() == 1) {
                  comm.receive(CommData.of(new int[1]), 0, 1); // which does not come
                }
                model.fail(function, LAUNCH_FAILED);
                call.accept(comm, memory.data());
              }
            });

    assertThat(failures.get(0))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining(function + " returned 719");
    assertThat(failures.get(1)).isInstanceOf(AbortedException.class).hasMessageContaining(function);
  }

  /// Also by a server that processes share their GPUs through, which is gone for good.
  @ParameterizedTest
  @ValueSource(ints = {LAUNCH_FAILED, MPS_RPC_FAILURE})
  void devices_haveFailed_communicatorSaysSoAndCloses(int code) {
    try (LocalGroup group = open(2, CONFIG, true)) {
      List<Throwable> failures =
          failures(
              group,
              comm -> {
                CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4);
                assertSum(comm, buffer);
                comm.barrier();
                if (comm.rank() == 0) {
                  model.breakDevices(code);
                }
                comm.barrier();
                try {
                  comm.allReduce(buffer.data(), ReduceOp.SUM);
                } finally {
                  comm.close();
                }
              });
      assertThat(failures)
          .allSatisfy(each ->
              assertThat(each)
                  .isInstanceOf(CommException.class)
                  .hasMessageContaining(String.valueOf(code)));
    }
    try (Gpu _ = openWhenFreed(0);
        Gpu _ = openWhenFreed(1)) {
      held = model.held() - 2; // their contexts
    }
  }

  /// Opens a device when all is given back that can be.
  private static Gpu openWhenFreed(int ordinal) {
    return Gpu.open(CudaDriver.load(), ordinal, CudaRank.PROCESS, Duration.ofMinutes(1));
  }

  @Test
  void kernel_cantBeLaunched_failsOnAllRanks() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                assertSum(comm, buffer);
                comm.barrier();
                if (comm.rank() == 0) {
                  model.fail("cuLaunchKernel", LAUNCH_FAILED);
                } else {
                  comm.receive(CommData.of(new int[1]), 0, 1);
                }
                comm.allReduce(buffer.data(), ReduceOp.SUM);
              }
            });

    assertThat(failures.get(0))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("cuLaunchKernel returned 719");
    assertThat(failures.get(1))
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("cuLaunchKernel");
  }

  /// In each communicator's first call, which the communicator's thread launches: of the kernels
  /// that are in the stream, none, the end is seen at any time by who awaits the call.
  @Test
  void firstKernel_cantBeLaunched_failsOnAllRanksEachTime() {
    onRanks(
        2,
        CONFIG,
        world -> {
          try (CommBuffer buffer = world.allocate(DataType.FLOAT32, 4)) {
            for (int turn = 0; turn < 20; turn++) {
              try (Communicator comm = world.duplicate()) {
                if (world.rank() == 0) {
                  model.fail("cuLaunchKernel", LAUNCH_FAILED); // of whichever rank is first
                }
                world.barrier();
                Request reducing =
                    comm.start(
                        new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
                assertThatThrownBy(reducing::await)
                    .as("turn %d", turn)
                    .isInstanceOf(CommException.class)
                    .hasMessageContaining("cuLaunchKernel");
                world.barrier();
              }
            }
          }
        });
  }

  /// The driver has taken the kernel, and says no to what comes behind it.
  @Test
  void event_cantBeRecorded_callIsOverWhenItsKernelIs() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4096)) {
                assertSum(comm, buffer);
                comm.barrier();
                if (comm.rank() == 0) {
                  model.fail("cuEventRecord", INVALID_VALUE);
                } else {
                  comm.receive(CommData.of(new int[1]), 0, 1);
                }
                comm.allReduce(buffer.data(), ReduceOp.SUM);
              }
            });

    assertThat(failures.get(0))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("cuEventRecord returned 1");
    assertThat(failures.get(1))
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("cuEventRecord");
  }

  /// The driver does not say whether its kernels have ended, which they have not.
  @Test
  void call_driverRefusesToSayWhetherItHasEnded_failsAndKeepsItsMemory() {
    var failed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (Communicator other = comm.duplicate();
              CommBuffer data = other.allocate(DataType.FLOAT32, 4)) {
            CommBuffer last = other.allocate(DataType.FLOAT32, 4);
            assertSum(comm, last);
            assertSum(other, data);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            var failing = new Collective.AllReduce(last.data(), last.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              StreamSync sync = other.streamSync().orElseThrow();
              try (StreamSync.Event reduced = sync.createEvent()) {
                Request busy = other.start(call);
                sync.recordOnCommunicator(reduced);
                comm.streamSync().orElseThrow().communicatorWait(reduced);
                Request behind = comm.start(failing);
                model.failHere("cuEventQuery", CAPTURING);
                assertThatThrownBy(behind::await)
                    .isInstanceOf(BackendException.class)
                    .hasMessageContaining("cuEventQuery returned 900");
                assertThatThrownBy(last::close)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("in flight");
                failed.countDown();
                busy.await();
              }
            } else {
              assertThat(failed.await(1, TimeUnit.MINUTES)).isTrue();
              other.run(call);
            }
          } finally {
            failed.countDown();
          }
        });
  }
}
