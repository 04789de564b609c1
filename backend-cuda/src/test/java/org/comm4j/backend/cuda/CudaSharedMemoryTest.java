package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.RegisteredMemory;
import org.comm4j.api.Request;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Regions of devices, and registered memory. On the model of the driver, whose memory is the
/// host's.
@Timeout(60)
class CudaSharedMemoryTest extends ModelGroups {
  private static final int NOT_SUPPORTED = 801;

  // --- regions ---

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void region_isOneMemory(boolean isOneProcess) {
    onRanks(
        3,
        CONFIG,
        isOneProcess,
        comm -> {
          try (SharedRegion<DeviceData> region =
              comm.sharedMemory().createDeviceRegion(DataType.INT32, 4)) {
            if (comm.rank() == 0) {
              region.populate(data -> memory(data).set(ValueLayout.JAVA_INT, 4, 7));
            }
            region.fence();
            MemorySegment here = memory(region.data());
            assertThat(here.get(ValueLayout.JAVA_INT, 4)).isEqualTo(7);
            comm.barrier();
            if (comm.rank() == 2) { // nothing keeps a device from it
              here.set(ValueLayout.JAVA_INT, 8, 9);
            }
            comm.barrier();
            assertThat(here.get(ValueLayout.JAVA_INT, 8)).isEqualTo(9);
            comm.barrier();
          }
        });
  }

  /// Also by the ranks whose device it is not of.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void memoryOfOthers_inCalls_isTheirs(boolean isOneProcess) {
    onRanks(
        2,
        CONFIG,
        isOneProcess,
        comm -> {
          try (SharedRegion<DeviceData> region =
                  comm.sharedMemory().createDeviceRegion(DataType.INT32, 4);
              CommBuffer own = comm.allocate(DataType.INT32, 4);
              RegisteredMemory registered = comm.sharedMemory().register((DeviceData) own.data())) {
            own.write(0, CommData.of(new int[] {1, 2, 3, 4}));
            comm.barrier();
            if (comm.rank() == 0) {
              region.populate(data -> memory(data).fill((byte) 1));
            }
            region.fence();
            for (DeviceData each : List.of(region.data(), registered.data(1 - comm.rank()))) {
              int[] sum = new int[4];
              try (CommBuffer out = comm.allocate(DataType.INT32, 4)) {
                comm.allReduce(each, out.data(), ReduceOp.SUM);
                out.read(0, CommData.of(sum));
              }
              assertThat(sum[1]).isEqualTo(2 * memory(each).get(ValueLayout.JAVA_INT, 4));
            }
            if (comm.rank() == 1) {
              comm.send(region.data(), 0, 1);
            } else {
              comm.receive(own.data(), 1, 1);
              int[] got = new int[4];
              own.read(0, CommData.of(got));
              assertThat(got).containsOnly(0x01010101);
            }
            comm.barrier();
          }
        });
  }

  /// Rank 1 has been lent memory of rank 0's device, which rank 2's does not reach.
  @Test
  void memoryOfOthers_notReachedByAll_isRefusedAndChangesNothing() {
    model.reset(3, 8, 0, 12_000, true);
    onRanks(
        3,
        CONFIG,
        comm -> {
          Optional<Communicator> lower = comm.split(comm.rank() < 2 ? 0 : Communicator.NO_COLOR, 0);
          Optional<Communicator> upper = comm.split(comm.rank() > 0 ? 0 : Communicator.NO_COLOR, 0);
          try (CommBuffer sum = comm.allocate(DataType.INT32, 30_000)) {
            Optional<SharedRegion<DeviceData>> region =
                lower.map(pair -> pair.sharedMemory().createDeviceRegion(DataType.INT32, 30_000));
            region.ifPresent(SharedRegion::fence);
            upper.ifPresent(pair -> {
              Optional<DeviceData> lent = region.map(SharedRegion::data);
              lent.ifPresent(data ->
                  assertThatThrownBy(() -> pair.allReduce(data, sum.data(), ReduceOp.SUM))
                      .isInstanceOf(IllegalArgumentException.class)
                      .hasMessageContainingAll("allReduce: input", "lent by device 0", "copy it"));
              CommData result = lent.map(CommData.class::cast).orElse(sum.data());
              pair.reduce(sum.data(), result, ReduceOp.SUM, 0); // which rank 1 alone writes
            });
            region.ifPresent(each -> {
              lower.orElseThrow().allReduce(each.data(), sum.data(), ReduceOp.SUM);
              each.close();
            });
          }
          lower.ifPresent(Communicator::close);
          upper.ifPresent(Communicator::close);
        });
  }

  /// Also where its communicator is closed.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void region_closedByTheLeader_staysForTheOthers(boolean isOneProcess) {
    onRanks(
        2,
        CONFIG,
        isOneProcess,
        comm -> {
          Communicator some = comm.duplicate();
          SharedRegion<DeviceData> region =
              some.sharedMemory().createDeviceRegion(DataType.INT32, 4);
          if (comm.rank() == 0) {
            region.write(0, CommData.of(1, 2, 3, 4));
          }
          region.fence();
          if (comm.rank() == 0) {
            region.close();
          }
          some.close();
          comm.barrier();
          try (CommBuffer other = comm.allocate(DataType.INT32, 4)) {
            other.write(0, CommData.of(9, 9, 9, 9));
            comm.barrier();
            if (comm.rank() == 1) {
              assertThat(memory(region.data()).toArray(ValueLayout.JAVA_INT))
                  .containsExactly(1, 2, 3, 4);
              region.close();
            }
          }
          comm.barrier();
        });
  }

  /// Each communicator's first region: who has closed the one may still have the other.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void region_peerHasClosedThatOfADuplicate_staysForIt(boolean isOneProcess) {
    onRanks(
        2,
        CONFIG,
        isOneProcess,
        comm -> {
          Communicator other = comm.duplicate();
          SharedRegion<DeviceData> closed =
              comm.sharedMemory().createDeviceRegion(DataType.INT32, 4);
          SharedRegion<DeviceData> region =
              other.sharedMemory().createDeviceRegion(DataType.INT32, 4);
          if (comm.rank() == 0) {
            region.write(0, CommData.of(1, 2, 3, 4));
          }
          region.fence();
          if (comm.rank() == 1) {
            closed.close();
          }
          comm.barrier();
          if (comm.rank() == 0) {
            region.close();
          }
          try (CommBuffer next = comm.allocate(DataType.INT32, 4)) {
            next.write(0, CommData.of(9, 9, 9, 9));
            comm.barrier();
            if (comm.rank() == 1) {
              assertThat(memory(region.data()).toArray(ValueLayout.JAVA_INT))
                  .containsExactly(1, 2, 3, 4);
            }
          }
          comm.barrier();
          closed.close();
          region.close();
          other.close();
        });
  }

  @Test
  void region_communicatorsAreClosed_isNotReadAndGivesItsMemoryBack() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          SharedRegion<DeviceData> region =
              comm.sharedMemory().createDeviceRegion(DataType.INT32, 4);
          region.fence();
          comm.close();
          assertThatThrownBy(() -> region.read(0, CommData.of(new int[1])))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed its communicators");
          region.close();
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void region_noRoom_failsOnAll_andTheCommunicatorIsUsable(boolean isOneProcess) {
    var failed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        isOneProcess,
        comm -> {
          if (comm.rank() == 0) {
            model.fail("cuMemAlloc", OUT_OF_MEMORY);
            failed.countDown();
          }
          failed.await();
          assertThatThrownBy(
                  () -> comm.sharedMemory().createDeviceRegion(DataType.FLOAT64, 3_000_000))
              .isInstanceOf(TransportFailedException.class)
              .hasMessageContaining("rank 0, the leader, has no room for FLOAT64 × 3000000")
              .hasMessageContaining("close buffers and regions");
          assertThat(comm.failure()).isEmpty();
          try (SharedRegion<DeviceData> region =
              comm.sharedMemory().createDeviceRegion(DataType.FLOAT64, 3)) {
            region.fence();
          }
        });
  }

  @Test
  void region_leadersDeviceHasFailed_failsOnAll() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              if (comm.rank() == 0) {
                model.fail("cuStreamSynchronize", LAUNCH_FAILED);
              }
              comm.sharedMemory().createDeviceRegion(DataType.FLOAT64, 3);
            });

    assertThat(failures.get(0)).isInstanceOf(BackendException.class).hasMessageContaining("719");
    assertThat(failures.get(1)).isInstanceOf(AbortedException.class).hasMessageContaining("719");
  }

  @Test
  void region_notReached_failsOnAll_andSaysWhich() {
    model.reset(2, 8, 0, 12_000, false);
    onRanks(
        2,
        CONFIG,
        comm -> {
          assertThatThrownBy(() -> comm.sharedMemory().createDeviceRegion(DataType.INT8, 3))
              .isInstanceOf(TransportFailedException.class)
              .hasMessageContaining("worker 1: it can't reach worker 0's memory")
              .hasMessageContaining("nvidia-smi topo");
          assertThat(comm.failure()).isEmpty();
          comm.barrier();
        });
  }

  @Test
  void region_inUse_isNotClosed() {
    onRanks(
        2,
        options(Map.of("COMM_CUDA_DEVICE", "0")),
        comm -> {
          SharedRegion<DeviceData> region =
              comm.sharedMemory().createDeviceRegion(DataType.INT32, 4);
          region.fence();
          try (CommBuffer sum = comm.allocate(DataType.INT32, 4)) {
            if (comm.rank() == 0) {
              Request request =
                  comm.start(new Collective.AllReduce(region.data(), sum.data(), ReduceOp.SUM));
              assertThatThrownBy(region::close)
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("in flight");
              comm.send(CommData.of(1), 1, 0);
              request.await();
            } else {
              comm.receive(CommData.of(new int[1]), 0, 0);
              comm.allReduce(region.data(), sum.data(), ReduceOp.SUM);
            }
          }
          region.close();
        });
  }

  // --- registered memory ---

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void register_atAnyOffset_isReachedByAll(boolean isOneProcess) {
    onRanks(
        3,
        CONFIG,
        isOneProcess,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 1000)) {
            int count = 10 + comm.rank(); // as much as each likes
            DeviceData mine = ((DeviceData) buffer.data()).slice(100L * (comm.rank() + 1), count);
            memory(mine).fill((byte) (comm.rank() + 1));
            try (RegisteredMemory all = comm.sharedMemory().register(mine)) {
              comm.barrier();
              for (int peer = 0; peer < 3; peer++) {
                DeviceData theirs = all.data(peer);
                assertThat(theirs.type()).isEqualTo(DataType.INT32);
                assertThat(theirs.count()).isEqualTo(10 + peer);
                assertThat(memory(theirs).toArray(ValueLayout.JAVA_BYTE)).containsOnly(peer + 1);
              }
              assertThat(all.data(comm.rank()).address()).isEqualTo(mine.address());
              comm.barrier();
              memory(all.data((comm.rank() + 1) % 3)).fill((byte) 77);
              comm.barrier();
              assertThat(memory(mine).toArray(ValueLayout.JAVA_BYTE)).containsOnly(77);
              assertThatThrownBy(() -> all.data(3)).isInstanceOf(IndexOutOfBoundsException.class);
            }
          }
        });
  }

  @Test
  void register_twicePartsOfOneAllocation_andNothing() {
    onRanks(
        2,
        CONFIG,
        false,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.UINT8, 64)) {
            DeviceData whole = (DeviceData) buffer.data();
            DeviceData one = whole.slice(8, comm.rank() == 0 ? 8 : 0);
            try (RegisteredMemory first = comm.sharedMemory().register(one);
                RegisteredMemory second = comm.sharedMemory().register(whole.slice(3, 5))) {
              assertThat(first.data(1).count()).isZero();
              assertThat(second.data(0).count()).isEqualTo(5);
              memory(second.data(1 - comm.rank())).fill((byte) 4);
              comm.barrier();
              assertThat(memory(whole).toArray(ValueLayout.JAVA_BYTE))
                  .startsWith(0, 0, 0, 4, 4, 4, 4, 4, 0);
              comm.barrier();
            }
          }
        });
  }

  @Test
  void register_ofWhatIsClosed_isRefused() {
    onRanks(
        2,
        CONFIG,
        false,
        comm -> {
          CommBuffer buffer = comm.allocate(DataType.UINT8, 64);
          DeviceData view = (DeviceData) buffer.data();
          DeviceData registered;
          try (RegisteredMemory all = comm.sharedMemory().register(view)) {
            registered = all.data(1 - comm.rank());
          }
          buffer.close();
          try (CommBuffer _ = comm.allocate(DataType.UINT8, 64)) { // where that one was
            for (DeviceData gone : List.of(view, registered)) {
              assertThatThrownBy(() -> comm.sharedMemory().register(gone))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContainingAll("register", "closed");
            }
          }
        });
  }

  @Test
  void register_noMemoryOfTheDevice_isRefused_andTheOthersHearOfIt() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 8)) {
            var mine = (DeviceData) buffer.data();
            var beyond = new DeviceData(DataType.INT32, mine.address(), 1000, mine.device());
            Throwable thrown =
                catchThrowable(
                    () -> comm.sharedMemory().register(comm.rank() == 1 ? beyond : mine));
            if (comm.rank() == 1) {
              assertThat(thrown)
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("register: ")
                  .hasMessageContaining("where its allocation ends");
            } else {
              assertThat(thrown)
                  .isInstanceOf(TransportFailedException.class)
                  .hasMessageContaining("rank 1");
            }
            comm.sharedMemory().register(mine).close();
          }
        });
  }

  @Test
  void register_driverRefuses_failsOnAll() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              try (var memory = OfProgram.allocate(DataType.INT32, 8, comm.rank())) {
                DeviceData mine = memory.data();
                comm.barrier();
                if (comm.rank() == 1) {
                  model.fail("cuPointerGetAttribute", LAUNCH_FAILED);
                }
                // the other one brings none, about which the driver is not asked
                comm.sharedMemory().register(comm.rank() == 1 ? mine : mine.slice(0, 0));
              }
            });

    assertThat(failures.get(0)).isInstanceOf(AbortedException.class).hasMessageContaining("719");
    assertThat(failures.get(1)).isInstanceOf(BackendException.class).hasMessageContaining("719");
  }

  @Test
  void register_memoryCantBeShared_failsOnAll_andMayBeTriedAgain() {
    var failed = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        false,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 8)) {
            if (comm.rank() == 0) {
              model.fail("cuIpcGetMemHandle", NOT_SUPPORTED);
              failed.countDown();
            }
            failed.await();
            assertThatThrownBy(() -> comm.sharedMemory().register((DeviceData) buffer.data()))
                .isInstanceOf(TransportFailedException.class)
                .hasMessageContaining("register: worker ")
                .hasMessageContaining("cuIpcGetMemHandle returned 801");
            assertThat(comm.failure()).isEmpty();
            comm.barrier();
            if (comm.rank() == 0) {
              model.fail("cuIpcGetMemHandle", 0);
            }
            comm.barrier();
            comm.sharedMemory().register((DeviceData) buffer.data()).close();
          }
        });
  }

  /// As where a program that lends its own memory goes on with it. A rank's session ends with its
  /// last communicator here.
  @Test
  void registered_closedAfterTheLastCommunicator_givesBackWhatItHasOpened() {
    CudaDriver driver = CudaDriver.load();
    try (CudaDevice first = driver.open(0);
        CudaDevice second = driver.open(1)) {
      long[] own = {first.allocate(32), second.allocate(32)};
      model.openOwn();
      try (LocalGroup group = ThreadGroups.open(provider(false), 2, CONFIG)) {
        for (Future<Communicator> rank :
            start(
                group,
                comm -> {
                  CommData data =
                      CommData.ofUnsafeDeviceAddress(
                          DataType.INT32, own[comm.rank()], 8, comm.rank());
                  RegisteredMemory all = comm.sharedMemory().register((DeviceData) data);
                  comm.barrier();
                  comm.close();
                  assertThatThrownBy(all::close)
                      .as("a close that can't await the others")
                      .isInstanceOf(ClosedException.class);
                })) {
          assertThatCode(rank::get).doesNotThrowAnyException();
        }
      }
      first.free(own[0]);
      second.free(own[1]);
    }
  }

  @Test
  void register_otherCallsThatIsNone_areTold() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.INT32, 8)) {
                if (comm.rank() == 0) {
                  comm.sharedMemory().register((DeviceData) buffer.data()).close();
                } else {
                  comm.sharedMemory().createDeviceRegion(DataType.INT32, 8).close();
                }
              }
            });

    assertThat(failures)
        .allSatisfy(each ->
            assertThat(each)
                .isInstanceOf(MismatchedCallException.class)
                .hasMessageContainingAll("register", "createDeviceRegion"));
  }

  /// It waits for all, so that memory may be freed; but not for the dead.
  @Test
  void registered_close_waitsForTheOthers_notForTheDead() {
    var ofTheDead = new AtomicReference<RegisteredMemory>();
    try (LocalGroup group =
        open(2, CONFIG.toBuilder().timeout(Duration.ofMinutes(5)).build(), true)) {
      List<Throwable> failures =
          failures(
              group,
              comm -> {
                try (CommBuffer buffer = comm.allocate(DataType.INT32, 8)) {
                  RegisteredMemory all = comm.sharedMemory().register((DeviceData) buffer.data());
                  if (comm.rank() == 1) {
                    ofTheDead.set(all);
                    throw new IllegalStateException("gone");
                  }
                  all.close();
                  assertThatThrownBy(() -> all.data(0)).isInstanceOf(IllegalStateException.class);
                  comm.barrier();
                }
              });

      assertThat(failures.get(0)).isInstanceOf(PeerFailedException.class);
    }
    // it holds the device, also when the rank's communicators are closed
    assertThatThrownBy(() -> ofTheDead.get().close()).isInstanceOf(ClosedException.class);
  }

  @Test
  void registered_close_otherDoesNot_endsAtTheDeadline() {
    var late = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG.toBuilder().timeout(Duration.ofSeconds(2)).build(),
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 8)) {
            RegisteredMemory all = comm.sharedMemory().register((DeviceData) buffer.data());
            if (comm.rank() == 0) {
              assertThatThrownBy(all::close)
                  .isInstanceOfSatisfying(
                      CollectiveTimeoutException.class,
                      e -> assertThat(e.missing()).containsExactly(1))
                  .hasMessageContaining("RegisteredMemory.close()");
              late.countDown();
            } else {
              late.await();
              all.close();
            }
          }
        });
  }

  /// Whoever lent the memory may free it then.
  @Test
  void registered_close_callReadsAnothersMemory_waitsForIt() {
    var closing = new CompletableFuture<Thread>();
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (Communicator other = comm.duplicate();
              CommBuffer lent = comm.allocate(DataType.INT32, 8);
              CommBuffer output = comm.allocate(DataType.INT32, 8)) {
            RegisteredMemory all = comm.sharedMemory().register((DeviceData) lent.data());
            DeviceData input = comm.rank() == 0 ? (DeviceData) lent.data() : all.data(0);
            var call = new Collective.AllReduce(input, output.data(), ReduceOp.SUM);
            if (comm.rank() == 1) {
              Request request = other.start(call);
              closing.complete(Thread.currentThread());
              all.close();
              assertThat(request.isDone()).isTrue();
            } else {
              var closed = new FutureTask<>(all::close, true);
              Thread.ofPlatform().daemon().start(closed);
              Thread waiting = closing.orTimeout(30, TimeUnit.SECONDS).join();
              long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
              while (!isInRegistered(waiting) && System.nanoTime() - endNs < 0) {
                Thread.onSpinWait();
              }
              assertThat(isInRegistered(waiting)).isTrue();
              assertThat(closed.isDone()).isFalse();
              other.run(call);
              assertThat(closed.get(30, TimeUnit.SECONDS)).isTrue();
            }
          }
        });
  }

  /// Whether a thread waits in the close of registered memory for what this rank does with it.
  private static boolean isInRegistered(Thread thread) {
    Object blocker = LockSupport.getBlocker(thread);
    return blocker instanceof RegisteredMemory;
  }

  private static MemorySegment memory(DeviceData data) {
    return MemorySegment.ofAddress(data.address()).reinterpret(data.bytes());
  }
}
