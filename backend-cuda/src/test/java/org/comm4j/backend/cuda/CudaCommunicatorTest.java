package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.comm4j.api.BackendException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What the contract does not ask, since not all memory is a device's. On the model of the driver.
class CudaCommunicatorTest extends ModelGroups {
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

  // --- devices ---

  /// The context is asked for, pushed and popped once, and a kernel and an event go into the
  /// stream: what is known of buffers is not asked for, and an event that was reached is used
  /// again.
  @Test
  void allReduce_ofABuffer_callsTheDriverFiveTimes() {
    onRanks(
        1,
        CONFIG,
        true,
        comm -> {
          try (CommBuffer input = comm.allocate(DataType.INT32, 1000);
              CommBuffer output = comm.allocate(DataType.INT32, 1000)) {
            var call = new Collective.AllReduce(input.data(), output.data(), ReduceOp.SUM);
            comm.run(call); // opens the device
            int before = model.calls();
            Request started = comm.start(call);
            assertThat(model.calls() - before).isEqualTo(5);
            started.await();
          }
        });
  }

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

  /// Not a way through the host's memory, which takes a hundred times as long.
  @Test
  void allReduce_groupOfOne_isAKernel() {
    onRanks(
        1,
        CONFIG,
        true,
        comm -> {
          CommBuffer buffer = comm.allocate(DataType.INT32, 1000); // in use for a moment yet
          model.fail("cuLaunchKernel", LAUNCH_FAILED);
          assertThatThrownBy(() -> comm.allReduce(buffer.data(), ReduceOp.SUM))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("cuLaunchKernel");
        });
  }

  /// Its kernels wait for nobody, so they need not be on the device at the same time.
  @Test
  void groupsOfOne_onADeviceWithFewerMultiprocessorsThanRanks_haveKernels() {
    onRanks(
        5,
        options(Map.of("COMM_CUDA_PATH", "p2p", "COMM_CUDA_DEVICE", "0")),
        true,
        comm -> {
          try (Communicator alone = comm.split(comm.rank(), 0).orElseThrow();
              CommBuffer buffer = alone.allocate(DataType.FLOAT32, 100)) {
            assertSum(alone, buffer);
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
