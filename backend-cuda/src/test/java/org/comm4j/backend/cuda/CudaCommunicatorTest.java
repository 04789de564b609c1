package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiFunction;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.comm4j.api.TransportFailedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What the contract does not ask, since not all memory is a device's. On the model of the driver.
class CudaCommunicatorTest extends ModelGroups {
  // --- data ---

  @Test
  void deviceData_notOfTheRanksDevice_isRefusedAndChangesNothing() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          CommBuffer buffer = comm.allocate(DataType.FLOAT32, 8);
          DeviceData data = (DeviceData) buffer.data();
          assertThat(data.device()).isEqualTo(comm.rank());
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address(), 8, 5),
              "this rank's",
              "device 5");
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address(), 100_000, data.device()),
              "400000 bytes",
              "where its allocation ends");
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address() + 2, 4, data.device()),
              "a multiple of 4");
          try (Arena arena = Arena.ofConfined()) {
            long host = arena.allocate(32).address();
            assertRefused(
                comm,
                new DeviceData(DataType.FLOAT32, host, 8, data.device()),
                Long.toHexString(host),
                "it was freed, or is the host's");
          }
          buffer.close();
          assertRefused(comm, data, "of an arena or buffer that is closed");
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address(), 8, data.device()),
              "it was freed");
          try (CommBuffer other = comm.allocate(DataType.FLOAT32, 8)) {
            assertThatThrownBy(
                    () -> comm.allReduce(other.data(), CommData.of(new float[8]), ReduceOp.SUM))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("all in a device's memory or all in the host's");
            assertEpilogueRefused(
                comm,
                other.data(),
                Epilogue.cast().plusBias(CommData.of(new float[8])),
                "× 1.0 + bias (FLOAT32 × 8)",
                "all in a device's memory or all in the host's");
            assertEpilogueRefused(
                comm,
                other.data(),
                Epilogue.cast()
                    .plusResidual(new DeviceData(DataType.FLOAT32, data.address(), 8, 5)),
                "this rank's",
                "device 5");
            assertSum(comm, other);
          }
        });
  }

  /// Peers' kernels would fault there, where they are on other devices.
  @Test
  void deviceData_ofAPool_isRefusedWhereOtherDevicesReadIt() {
    for (var options :
        List.of(
            Map.<String, String>of(),
            Map.of("COMM_CUDA_DEVICE", "0"),
            Map.of("COMM_CUDA_PATH", "naive"))) {
      onRanks(
          2,
          options(options),
          comm -> {
            try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 8)) {
              assertSum(comm, buffer);
              comm.barrier();
              model.poolMemory();
              if (options.isEmpty()) {
                var data = (DeviceData) buffer.data();
                assertRefused(comm, data, "of a pool", "expected: memory of cuMemAlloc");
                assertThatThrownBy(() -> comm.sharedMemory().register(data))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContainingAll("register", "of a pool");
                assertThat(comm.failure()).isEmpty();
              } else {
                assertSum(comm, buffer);
              }
            }
          });
      model.reset();
    }
  }

  private static void assertEpilogueRefused(
      Communicator comm, CommData data, Epilogue epilogue, String... says) {
    assertThatThrownBy(() -> comm.allReduce(data, data, ReduceOp.SUM, epilogue))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(says);
  }

  private static void assertRefused(Communicator comm, DeviceData data, String... says) {
    assertThatThrownBy(() -> comm.allReduce(data, ReduceOp.SUM))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(says);
  }

  @Test
  void allocate_deviceIsFull_saysSoAndStaysUsable() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          if (comm.rank() == 0) {
            model.fail("cuMemAlloc", OUT_OF_MEMORY);
            assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
                .isInstanceOf(TransportFailedException.class)
                .hasMessageContainingAll("12345 bytes", "Model 0", "close buffers");
          }
          comm.barrier(); // so that no other rank's allocation is refused instead
          try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 3)) {
            assertSum(comm, buffer);
          }
        });
  }

  @Test
  void allocate_deviceHasFailed_breaksTheCommunicator() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              if (comm.rank() == 1) {
                comm.receive(CommData.of(new int[1]), 0, 1); // which does not come
              }
              model.fail("cuStreamSynchronize", LAUNCH_FAILED);
              comm.allocate(DataType.INT8, 12_345);
            });

    assertThat(failures.get(0)).isInstanceOf(BackendException.class).hasMessageContaining("719");
    assertThat(failures.get(1)).isInstanceOf(AbortedException.class).hasMessageContaining("719");
  }

  /// Freeing memory waits for kernels, and this one waits for a rank that comes later.
  @Test
  void allocate_deviceIsFullWhileACallWaits_saysSoAtOnce() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data);
            comm.allocate(DataType.INT8, 99_999).close(); // what could be freed
            comm.barrier(); // so that no other rank's allocation is refused instead
            if (comm.rank() == 0) {
              Request waiting =
                  comm.start(new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM));
              model.fail("cuMemAlloc", OUT_OF_MEMORY);
              assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
                  .isInstanceOf(TransportFailedException.class);
              comm.send(CommData.of(1), 1, 1);
              waiting.await();
            } else {
              comm.receive(CommData.of(new int[1]), 0, 1);
              comm.allReduce(data.data(), ReduceOp.SUM);
            }
          }
        });
  }

  /// Also where that is another rank's, on another device: the driver may let them wait together.
  @Test
  void allocate_deviceIsFullWhileAnotherRanksCallWaits_freesNothing() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data);
            comm.allocate(DataType.INT8, 99_999).close(); // what could be freed
            comm.barrier();
            if (comm.rank() == 0) {
              comm.receive(CommData.of(new int[1]), 1, 1);
              model.fail("cuMemAlloc", OUT_OF_MEMORY);
              assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
                  .isInstanceOf(TransportFailedException.class);
              comm.allReduce(data.data(), ReduceOp.SUM);
              comm.barrier(); // that call has ended there too
              model.fail("cuMemAlloc", OUT_OF_MEMORY);
              comm.allocate(DataType.INT8, 12_345).close();
            } else {
              Request waiting =
                  comm.start(new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM));
              comm.send(CommData.of(1), 0, 1);
              waiting.await();
              comm.barrier();
            }
            comm.barrier();
          }
        });
  }

  @Test
  void close_bufferInUse_isRefused() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4);
          if (comm.rank() == 0) {
            Request reducing =
                comm.start(new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
            assertThatThrownBy(buffer::close)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContainingAll("allReduce(SUM, FLOAT32 × 4)", "in flight");
            comm.send(CommData.of(1), 1, 1);
            reducing.await();
          } else {
            comm.receive(CommData.of(new int[1]), 0, 1);
            comm.allReduce(buffer.data(), ReduceOp.SUM);
          }
          buffer.close();
        });
  }

  // --- results ---

  /// By lines, in one stage, in two, and in several pieces; where it is and copied.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void allReduce_everySize_isTheSum(boolean isOneProcess) {
    for (Map<String, String> options :
        List.of(Map.<String, String>of(), Map.of("COMM_CUDA_CHUNK", "65536"))) {
      onRanks(
          3,
          options(options),
          isOneProcess,
          comm -> {
            for (int count : new int[] {1, 2048, 2049, 16_384, 16_385, 131_072, 131_075, 200_003}) {
              try (CommBuffer input = comm.allocate(DataType.INT32, count);
                  CommBuffer output = comm.allocate(DataType.INT32, count)) {
                int[] values = new int[count];
                Arrays.setAll(values, i -> i * (comm.rank() + 1));
                input.write(0, CommData.of(values));
                for (CommBuffer to : List.of(output, input)) {
                  comm.allReduce(input.data(), to.data(), ReduceOp.SUM);
                  int[] sums = new int[count];
                  to.read(0, CommData.of(sums));
                  for (int i = 0; i < count; i++) {
                    assertThat(sums[i]).as("element %d of %d", i, count).isEqualTo(6 * i);
                  }
                }
              }
            }
          });
    }
  }

  /// Each takes several rounds where data is copied.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void otherCollectives_muchData_areRight(boolean isOneProcess) {
    int count = 50_001;
    onRanks(
        3,
        options(Map.of("COMM_CUDA_CHUNK", "65536")),
        isOneProcess,
        comm -> {
          int rank = comm.rank();
          try (CommBuffer small = comm.allocate(DataType.INT32, count);
              CommBuffer large = comm.allocate(DataType.INT32, 3L * count)) {
            fill(small, i -> i + rank);
            comm.run(new Collective.AllGather(small.data(), large.data()));
            assertElements(large, i -> i % count + i / count);

            comm.run(new Collective.ReduceScatter(large.data(), small.data(), ReduceOp.MAX));
            assertElements(small, i -> i + rank);

            fill(large, i -> 10 * i + rank);
            try (CommBuffer other = comm.allocate(DataType.INT32, 3L * count)) {
              comm.run(new Collective.AllToAll(large.data(), other.data()));
              assertElements(other, i -> 10 * (rank * count + i % count) + i / count);
            }
            comm.run(new Collective.Scatter(large.data(), small.data(), 2));
            assertElements(small, i -> 10 * (rank * count + i) + 2);

            fill(small, i -> i * rank);
            comm.run(new Collective.Reduce(small.data(), small.data(), ReduceOp.SUM, 1));
            assertElements(small, i -> rank == 1 ? 3 * i : i * rank);

            fill(small, i -> i - rank);
            comm.run(new Collective.Gather(small.data(), large.data(), 0));
            if (rank == 0) {
              assertElements(large, i -> i % count - i / count);
            }
            comm.run(new Collective.Broadcast(small.data(), 2));
            assertElements(small, i -> i - 2);

            Partition parts = Partition.of(1, count, 70_000);
            CommData mine = small.data().slice(0, rank == 0 ? 1 : 0);
            fill(large, i -> i + rank);
            try (CommBuffer part = comm.allocate(DataType.INT32, parts.count(rank))) {
              comm.run(
                  new Collective.ReduceScatterV(large.data(), parts, part.data(), ReduceOp.SUM));
              long begin = parts.displacement(rank);
              assertElements(part, i -> 3 * (int) (begin + i) + 3);
              comm.run(new Collective.AllGatherV(part.data(), large.data(), parts));
            }
            int extent = (int) parts.extent();
            assertElements(large, i -> i < extent ? 3 * i + 3 : i + rank);
            assertThat(mine.count()).isEqualTo(rank == 0 ? 1 : 0);
          }
        });
  }

  /// A collective and how many elements this rank has of each.
  private record Staged(
      long inputs, long outputs, BiFunction<CommData, CommData, Collective> call) {}

  /// Of many rounds through the host, against the same on the host. V-forms have parts without
  /// elements and gaps, which stay as they are.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5})
  void naive_everyCollective_isWhatTheHostHas(int size) {
    long count = 20_011;
    int root = size / 2;
    Partition parts = parts(size, (rank, _) -> rank == 1 ? 0 : count - 1000L * rank, 0);
    onRanks(
        size,
        options(Map.of("COMM_CUDA_CHUNK", "65536", "COMM_CUDA_PATH", "naive")),
        comm -> {
          int me = comm.rank();
          long all = size * count;
          long mine = parts.count(me);
          Partition sent = parts(size, (from, to) -> 9_000L * from + 11_000L * to, me);
          Partition got = parts(size, (to, from) -> 9_000L * from + 11_000L * to, me);
          List<Staged> calls =
              List.of(
                  new Staged(count, count, (i, o) -> new Collective.AllReduce(i, o, ReduceOp.SUM)),
                  new Staged(count, 0, (i, _) -> new Collective.AllReduce(i, i, ReduceOp.SUM)),
                  new Staged(
                      count, count, (i, o) -> new Collective.Reduce(i, o, ReduceOp.MAX, root)),
                  new Staged(0, count, (_, o) -> new Collective.Broadcast(o, root)),
                  new Staged(count, all, Collective.AllGather::new),
                  new Staged(
                      0, all, (_, o) -> new Collective.AllGather(o.slice(me * count, count), o)),
                  new Staged(
                      mine, parts.extent() + 3, (i, o) -> new Collective.AllGatherV(i, o, parts)),
                  new Staged(count, all, (i, o) -> new Collective.Gather(i, o, root)),
                  new Staged(
                      mine,
                      parts.extent(),
                      (i, o) ->
                          new Collective.GatherV(
                              i, me == root ? o : null, me == root ? parts : null, root)),
                  new Staged(all, count, (i, o) -> new Collective.Scatter(i, o, root)),
                  new Staged(
                      parts.extent(),
                      mine,
                      (i, o) ->
                          new Collective.ScatterV(
                              me == root ? i : null, me == root ? parts : null, o, root)),
                  new Staged(
                      all, count, (i, o) -> new Collective.ReduceScatter(i, o, ReduceOp.SUM)),
                  new Staged(
                      all,
                      0,
                      (i, _) ->
                          new Collective.ReduceScatter(
                              i, i.slice(me * count, count), ReduceOp.SUM)),
                  new Staged(
                      parts.extent(),
                      mine,
                      (i, o) -> new Collective.ReduceScatterV(i, parts, o, ReduceOp.SUM)),
                  new Staged(all, all, Collective.AllToAll::new),
                  new Staged(
                      sent.extent(),
                      got.extent(),
                      (i, o) -> new Collective.AllToAllV(i, sent, o, got)),
                  new Staged(count, count, (i, o) -> new Collective.Scan(i, o, ReduceOp.SUM)),
                  new Staged(
                      count, count, (i, o) -> new Collective.ExclusiveScan(i, o, ReduceOp.SUM)),
                  new Staged(count, 0, (i, _) -> new Collective.Scan(i, i, ReduceOp.SUM)));
          for (Staged each : calls) {
            assertSameAsOnTheHost(comm, each);
          }
        });
  }

  @FunctionalInterface
  private interface Count {
    long of(int rank, int peer);
  }

  /// Parts from the last to the first, with a gap of seven elements behind each.
  private static Partition parts(int size, Count count, int me) {
    long[] counts = new long[size];
    long[] displacements = new long[size];
    long next = 0;
    for (int rank = size - 1; rank >= 0; rank--) {
      counts[rank] = count.of(rank, me);
      displacements[rank] = next;
      next += counts[rank] + 7;
    }
    return Partition.of(counts, displacements);
  }

  private static void assertSameAsOnTheHost(Communicator comm, Staged staged) {
    int[] in = new int[(int) staged.inputs()];
    int[] out = new int[(int) staged.outputs()];
    Arrays.setAll(in, i -> 31 * i + comm.rank());
    Arrays.setAll(out, i -> -i - comm.rank());
    try (CommBuffer input = comm.allocate(DataType.INT32, in.length);
        CommBuffer output = comm.allocate(DataType.INT32, out.length)) {
      input.write(0, CommData.of(in));
      output.write(0, CommData.of(out));
      Collective onDevice = staged.call().apply(input.data(), output.data());
      comm.run(onDevice);
      comm.run(staged.call().apply(CommData.of(in), CommData.of(out)));
      int[] inAfter = new int[in.length];
      int[] outAfter = new int[out.length];
      input.read(0, CommData.of(inAfter));
      output.read(0, CommData.of(outAfter));
      boolean isInputKept = onDevice instanceof Collective.ReduceScatter; // partly, in place
      assertThat(outAfter).as(onDevice.label()).isEqualTo(out);
      if (!isInputKept) {
        assertThat(inAfter).as(onDevice.label()).isEqualTo(in);
      }
    }
  }

  @FunctionalInterface
  private interface Element {
    int at(int index);
  }

  private static void fill(CommBuffer buffer, Element element) {
    int[] values = new int[(int) buffer.data().count()];
    Arrays.setAll(values, element::at);
    buffer.write(0, CommData.of(values));
  }

  private static void assertElements(CommBuffer buffer, Element element) {
    int[] values = new int[(int) buffer.data().count()];
    buffer.read(0, CommData.of(values));
    for (int i = 0; i < values.length; i++) {
      assertThat(values[i]).as("element %d", i).isEqualTo(element.at(i));
    }
  }

  /// What a call pins does not grow with its bias.
  @Test
  void naive_biasTooLargeToBePinned_isAdded() {
    int count = 300_000; // more than four chunks, and than what writing it pins
    onRanks(
        2,
        options(Map.of("COMM_CUDA_PATH", "naive", "COMM_CUDA_CHUNK", "65536")),
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, count);
              CommBuffer bias = comm.allocate(DataType.FLOAT32, count)) {
            assertSum(comm, data); // what it pins is there
            var values = new float[count];
            for (int i = 0; i < count; i++) {
              values[i] = i;
            }
            bias.write(0, CommData.of(values));
            comm.barrier();
            if (comm.rank() == 0) {
              model.fail("cuMemHostAlloc", OUT_OF_MEMORY);
            }
            comm.run(
                new Collective.AllReduce(
                    data.data(), data.data(), ReduceOp.SUM, new Epilogue(1, bias.data(), null)));
            data.read(0, CommData.of(values));
            for (int i = 0; i < count; i++) {
              assertThat(values[i]).isEqualTo(6f + i);
            }
            model.fail("cuMemHostAlloc", 0);
          }
        });
  }

  /// Of more than a call through the host pins, and of more than one piece, which is 1 MiB.
  @Test
  void message_tooLargeToBePinned_arrives() {
    int count = 4 * 65_536 + (1 << 20) + 8;
    var values = new byte[count];
    for (int i = 0; i < count; i++) {
      values[i] = (byte) ((i * 31) >> 7);
    }
    onRanks(
        2,
        options(Map.of("COMM_CUDA_CHUNK", "65536")),
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT8, count)) {
            if (comm.rank() == 0) {
              buffer.write(0, CommData.of(values));
              comm.send(buffer.data(), 1, 1); // to a device
              comm.send(buffer.data(), 1, 2); // to the host
            } else {
              comm.receive(buffer.data(), 0, 1);
              var got = new byte[count];
              buffer.read(0, CommData.of(got));
              assertThat(got).isEqualTo(values);
              var direct = new byte[count];
              comm.receive(CommData.of(direct), 0, 2);
              assertThat(direct).isEqualTo(values);
            }
          }
        });
  }

  @Test
  void message_betweenDevicesAndHosts_arrives() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 5)) {
            if (comm.rank() == 0) {
              fill(buffer, i -> i);
              comm.send(buffer.data(), 1, 1); // to a device
              comm.send(buffer.data(), 1, 2); // to the host
              comm.send(CommData.of(7, 8), 1, 3); // from the host, shorter than the receive
            } else {
              Request first = comm.start(new PointToPoint.Receive(buffer.data(), 0, 1));
              comm.sync();
              assertThat(first.isDone()).isTrue();
              assertElements(buffer, i -> i);
              int[] values = new int[5];
              comm.receive(CommData.of(values), 0, 2);
              assertThat(values).containsExactly(0, 1, 2, 3, 4);
              assertThat(comm.receive(buffer.data(), 0, 3).count()).isEqualTo(2);
              assertElements(buffer, i -> i < 2 ? 7 + i : i);
            }
            int other = 1 - comm.rank();
            fill(buffer, i -> 10 * comm.rank() + i);
            try (CommBuffer got = comm.allocate(DataType.INT32, 5)) {
              comm.sendReceive(buffer.data(), other, got.data(), other, 4);
              assertElements(got, i -> 10 * other + i);
            }
          }
        });
  }

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
    assertThat(model.held()).isEqualTo(held);
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

  /// Of another communicator, so that only the engine refuses that.
  @Test
  void receive_awaitedByAnOperator_goesOn() {
    var thrown = new ConcurrentLinkedQueue<Throwable>();
    onRanks(
        2,
        CONFIG,
        comm -> {
          int peer = 1 - comm.rank();
          try (Communicator other = comm.duplicate();
              CommBuffer sent = comm.allocate(DataType.INT32, 100);
              CommBuffer got = comm.allocate(DataType.INT32, 100)) {
            fill(sent, i -> 7 * i + comm.rank());
            Request receive = other.start(new PointToPoint.Receive(got.data(), peer, 3));
            ReduceOp awaiting =
                ReduceOp.of("awaiting", (_, _, _, _) -> thrown.add(catchThrowable(receive::await)));
            comm.allReduce(new double[] {1, 2, 3}, awaiting);
            comm.barrier(); // nothing has come before all operators are over
            other.send(sent.data(), peer, 3);
            receive.await();
            assertElements(got, i -> 7 * i + peer);
          }
        });
    assertThat(thrown)
        .isNotEmpty()
        .allSatisfy(each -> assertThat(each).isInstanceOf(ConcurrentUseException.class));
  }

  /// A call that waits for the peer is no reason for a message to wait, also where one waits for an
  /// event.
  @Test
  void send_behindACallThatThePeerMakesLater_goesOut() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer reduced = comm.allocate(DataType.INT32, 100);
              CommBuffer sent = comm.allocate(DataType.INT32, 100)) {
            comm.allReduce(reduced.data(), ReduceOp.SUM);
            fill(reduced, i -> i);
            fill(sent, i -> 7 * i + comm.rank());
            var call = new Collective.AllReduce(reduced.data(), reduced.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              StreamSync sync = comm.streamSync().orElseThrow();
              try (StreamSync.Event before = sync.createEvent()) {
                sync.recordOnCommunicator(before);
                sync.communicatorWait(before);
              }
              Request first = comm.start(call);
              comm.send(sent.data(), 1, 3);
              first.await();
            } else {
              comm.receive(sent.data(), 0, 3);
              comm.run(call);
            }
            assertElements(sent, i -> 7 * i);
            assertElements(reduced, i -> 2 * i);
          }
        });
  }

  // --- devices ---

  @Test
  void group_ofMoreRanksThanKernelsKnow_goesThroughTheHost() {
    onRanks(
        Window.MAX_RANKS + 1,
        CONFIG,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 100)) {
            assertSum(comm, buffer);
          }
        });
  }

  @Test
  void group_ofMoreRanksThanKernelsKnow_isRefusedWhereTheyMustBe() {
    List<Throwable> failures =
        failures(
            Window.MAX_RANKS + 1,
            options(Map.of("COMM_CUDA_PATH", "p2p")),
            comm -> {
              try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 100)) {
                assertSum(comm, buffer);
              }
            });
    assertThat(failures)
        .allSatisfy(failure ->
            assertThat(failure)
                .hasMessageContainingAll("17 ranks (expected: at most 16)", "COMM_CUDA_PATH"));
  }

  /// There are two, which ranks have in turn.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void topology_peerAccess_isWhatTheDriverSays(boolean reachEachOther) {
    model.reset(2, 8, 0, 12_000, reachEachOther);
    onRanks(
        3,
        CONFIG,
        comm -> {
          assertThat(comm.topology().peerAccess())
              .containsExactly(
                  List.of(true, reachEachOther, true),
                  List.of(reachEachOther, true, reachEachOther),
                  List.of(true, reachEachOther, true));
          try (Communicator rest = comm.split(comm.rank() == 0 ? 1 : 0, 0).orElseThrow()) {
            assertThat(rest.topology().peerAccess())
                .containsExactlyElementsOf(
                    comm.rank() == 0
                        ? List.of(List.of(true))
                        : List.of(List.of(true, reachEachOther), List.of(reachEachOther, true)));
          }
        });
  }
}
