package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Kernels of the program beside those of a communicator, on the model of the driver or on a GPU.
class CudaOverlapTest {
  @TempDir Path root;
  private int held;

  @BeforeEach
  void reset() {
    held = CudaContract.reset(true);
  }

  @AfterEach
  void nothingIsLeft() {
    CudaContract.assertHeld(held);
  }

  /// The program's kernel waits for another one, which is launched at the end: so it runs as long
  /// as the test likes.
  @Test
  void allReduce_besideAKernel_endsWhileThatRuns() throws Exception {
    try (LocalGroup group = CudaContract.open(root, true, 2, ModelGroups.CONFIG)) {
      for (var rank :
          ModelGroups.start(
              group,
              comm -> {
                try (CommBuffer beside = comm.allocate(DataType.FLOAT32, 10_000);
                    CommBuffer behind = comm.allocate(DataType.FLOAT32, 10_000)) {
                  ModelGroups.assertSum(comm, behind); // the devices have met
                  if (comm.rank() == 0) {
                    besideAndBehindAKernel(comm, beside, behind);
                  } else {
                    ModelGroups.assertSum(comm, beside);
                    comm.run(new Collective.AllReduce(behind.data(), behind.data(), ReduceOp.SUM));
                  }
                  var twice = new float[10_000];
                  behind.read(0, CommData.of(twice));
                  assertThat(twice).containsOnly(2 * (1 + 2));
                }
              })) {
        rank.get();
      }
    }
  }

  /// On one device: more streams than a driver has queues for unless it is told.
  @Test
  void calls_ofManyCommunicatorsInOppositeOrders_end() throws Exception {
    onOneDevice(world -> {
      List<Communicator> all = Stream.generate(world::duplicate).limit(5).toList();
      callInOppositeOrders(all, all.stream().map(CudaOverlapTest::use).toList());
    });
  }

  /// Their devices meet one after the other, for which there are streams that nobody has later.
  @Test
  void calls_ofManyCommunicatorsThatWereUsedAsTheyWereMade_end() throws Exception {
    onOneDevice(world -> useAsTheyAreMade(world, 9));
  }

  /// Streams are used again.
  @Test
  void calls_ofCommunicatorsThatWereMadeWhenOthersWereClosed_end() throws Exception {
    onOneDevice(world -> {
      for (int communicators : new int[] {12, 3, 9, 12}) {
        useAsTheyAreMade(world, communicators);
      }
    });
  }

  private void onOneDevice(ModelGroups.Body body) throws Exception {
    assumeTrue(
        Libcuda.queues() == Libcuda.MOST_QUEUES,
        () -> "the environment lets devices have fewer queues than streams: " + Libcuda.QUEUES);
    CommConfig one = ModelGroups.CONFIG.toBuilder().option("COMM_CUDA_DEVICE", "0").build();
    try (LocalGroup group = CudaContract.open(root, true, 2, one)) {
      for (var rank : ModelGroups.start(group, body)) {
        rank.get();
      }
    }
  }

  private static void useAsTheyAreMade(Communicator world, int communicators) {
    List<Communicator> all = new ArrayList<>();
    List<CommBuffer> buffers = new ArrayList<>();
    for (int each = 0; each < communicators; each++) {
      all.add(world.duplicate());
      buffers.add(use(all.getLast()));
    }
    callInOppositeOrders(all, buffers);
  }

  private static CommBuffer use(Communicator comm) {
    CommBuffer buffer = comm.allocate(DataType.FLOAT32, 10_000);
    ModelGroups.assertSum(comm, buffer); // the devices have met
    return buffer;
  }

  private static void callInOppositeOrders(List<Communicator> all, List<CommBuffer> buffers) {
    List<Request> requests = new ArrayList<>();
    for (int each = 0; each < all.size(); each++) {
      int at = all.getFirst().rank() == 0 ? each : all.size() - 1 - each;
      CommData data = buffers.get(at).data();
      requests.add(all.get(at).start(new Collective.AllReduce(data, data, ReduceOp.SUM)));
    }
    Request.waitAll(requests);
    var twice = new float[10_000];
    for (CommBuffer buffer : buffers) {
      buffer.read(0, CommData.of(twice));
      assertThat(twice).containsOnly(2 * (1 + 2));
      buffer.close();
    }
    all.forEach(Communicator::close);
  }

  private static Gpu open() {
    return Gpu.open(CudaDriver.load(), 0, CudaRank.PROCESS, Duration.ofMinutes(1));
  }

  /// The driver frees nothing while that runs, and nobody opens the device before that is done.
  @Test
  void close_besideAKernel_endsWhileThatRuns_andOpeningAgainHasABound() throws Exception {
    CommConfig hasty = ModelGroups.CONFIG.toBuilder().joinTimeout(Duration.ofMillis(100)).build();
    Gpu gpu = open();
    try (var program =
        new KernelGroup(gpu.device(), gpu::kernel, 2, TimeUnit.SECONDS.toNanos(10))) {
      for (int each = 0; each < 2; each++) {
        program.parameters(each).call(1, 0);
      }
      try (LocalGroup group = CudaContract.open(root, true, 1, ModelGroups.CONFIG)) {
        CommBuffer buffer = group.communicators().getFirst().allocate(DataType.FLOAT32, 4);
        buffer.close();
        program.start(0, KernelName.MEET, 1, 1);
      }
      assertThatThrownBy(() -> CudaContract.open(root, true, 1, hasty).close())
          .hasStackTraceContaining("BackendUnavailableException")
          .hasStackTraceContaining("a kernel of the program's keeps device 0");
      Thread.currentThread().interrupt();
      assertThatThrownBy(CudaOverlapTest::open).isInstanceOf(InterruptedCallException.class);
      assertThat(Thread.interrupted()).isTrue();
      program.control(0).abort();
      gpu.device().await(program.stream(0));
      assertThat(program.control(0).outcome())
          .as("why the program's kernel has ended, which ran until then")
          .isEqualTo(Control.Outcome.ABORTED);
      CudaContract.open(root, true, 1, ModelGroups.CONFIG).close();
    } finally {
      gpu.close();
    }
  }

  /// As long as a kernel of the program's keeps the driver from it, on whatever device.
  @Test
  void allReduce_whileTheDriverFrees_endsAtTheDeadline() throws Exception {
    CommConfig hasty = ModelGroups.CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).build();
    var isHeld = new CountDownLatch(1);
    var hasFailed = new CountDownLatch(1);
    var isOver = new CountDownLatch(2);
    try (Gpu gpu = open(); // device 0
        LocalGroup group = CudaContract.open(root, true, 2, hasty)) {
      var ranks =
          ModelGroups.start(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4)) {
                  ModelGroups.assertSum(comm, buffer); // the devices have met
                  if (comm.rank() == 0) {
                    Thread.ofPlatform().daemon().start(() -> hold(gpu, isHeld, isOver));
                    isHeld.await();
                  }
                  comm.barrier();
                  if (comm.rank() == 0) {
                    assertThat(hasFailed.await(30, TimeUnit.SECONDS)).isTrue();
                  }
                  var call = new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM);
                  assertThatThrownBy(() -> comm.run(call))
                      .isInstanceOf(CommException.class)
                      .hasMessageContainingAll(
                          "on device " + gpu.device() + ", and", "let that kernel end first");
                } finally {
                  hasFailed.countDown();
                  isOver.countDown();
                }
              });
      for (var rank : ranks) {
        rank.get();
      }
    }
  }

  private static void hold(Gpu gpu, CountDownLatch isHeld, CountDownLatch isOver) {
    boolean isDone = false;
    while (!isDone) { // calls that have ended may not have been asked yet
      isDone =
          gpu.whileIdle(() -> {
            isHeld.countDown();
            try {
              isOver.await();
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
          });
    }
  }

  private static void besideAndBehindAKernel(
      Communicator comm, CommBuffer beside, CommBuffer behind) {
    StreamSync sync = comm.streamSync().orElseThrow();
    Gpu gpu = open();
    try (var program = new KernelGroup(gpu.device(), gpu::kernel, 2, TimeUnit.SECONDS.toNanos(20));
        StreamSync.Event computed = sync.createEvent()) {
      for (int each = 0; each < 2; each++) {
        program.parameters(each).call(1, 0);
      }
      program.start(0, KernelName.MEET, 1, 1);
      sync.record(computed, program.stream(0).handle());
      ModelGroups.assertSum(comm, beside);
      assertThat(gpu.device().isDone(program.stream(0)))
          .as("whether the program's kernel has ended")
          .isFalse();

      sync.communicatorWait(computed);
      Request waiting =
          comm.start(new Collective.AllReduce(behind.data(), behind.data(), ReduceOp.SUM));
      assertThatThrownBy(() -> waiting.await(Duration.ofMillis(200)))
          .as("what comes behind the kernel")
          .isInstanceOf(TimeoutException.class);
      program.launch(1, KernelName.MEET, 1, 1);
      waiting.await();
      assertThat(program.control(0).outcome()).isEqualTo(Control.Outcome.DONE);
    } finally {
      gpu.close();
    }
  }
}
