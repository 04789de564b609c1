package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.tck.Allocations;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What a call allocates once the compiler is done, counted by the JVM for each thread.
class AllocationTest {
  private static final int CALLS = 20_000;
  private static final int MOST_ROUNDS = 2000; // until the compiler has removed what it can

  /// An all-reduce's record (32), its view of an array, and the JDK's segment of that.
  private static final int RECORD_BYTES = 128;

  static List<BackendProvider> providers() {
    return List.of(new LocalProvider(), new ShmProvider());
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_recordAgain_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        0,
        comm -> {
          HostData data = CommData.of(new double[100]);
          var operation = new Collective.AllReduce(data, data, ReduceOp.SUM);
          return () -> comm.run(operation);
        });
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_recordWithEpilogueAgain_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        0,
        comm -> {
          HostData data = CommData.of(new double[100]);
          var epilogue =
              Epilogue.scale(0.5).plusBias(CommData.of(new double[7])).plusResidual(data);
          var operation = new Collective.AllReduce(data, data, ReduceOp.SUM, epilogue);
          return () -> comm.run(operation);
        });
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_broadcastRecordAgain_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        0,
        comm -> {
          var operation = new Collective.Broadcast(CommData.of(new int[5000]), 1);
          return () -> comm.run(operation);
        });
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_recordsInTurn_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        0,
        comm -> {
          Collective[] records = new Collective[3];
          for (int i = 0; i < records.length; i++) {
            HostData data = CommData.of(new double[100]);
            records[i] = new Collective.AllReduce(data, data, ReduceOp.SUM);
          }
          int[] turn = new int[1];
          return () -> comm.run(records[turn[0]++ % records.length]);
        });
  }

  /// As a model's layers are reduced one after the other.
  @ParameterizedTest
  @MethodSource("providers")
  void run_recordsOfOtherShapesInTurn_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        0,
        comm -> {
          List<Collective> records = allReduces(7);
          records.add(new Collective.Broadcast(CommData.of(new int[10]), 1));
          int[] turn = new int[1];
          return () -> comm.run(records.get(turn[0]++ % records.size()));
        });
  }

  /// More shapes in turn than are kept, and then few, each of which was kept and thrown out before.
  @ParameterizedTest
  @MethodSource("providers")
  void run_fewRecordsAfterMany_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        0,
        comm -> {
          List<Collective> records = allReduces(100);
          for (int i = 0; i < 300; i++) {
            comm.run(records.get(i % records.size()));
          }
          int[] turn = new int[1];
          return () -> comm.run(records.get(turn[0]++ % 5));
        });
  }

  @ParameterizedTest
  @MethodSource("providers")
  void barrier_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(provider, 32, comm -> comm::barrier);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void allReduce_oneLine_allocatesItsRecordAlone(BackendProvider provider) throws Exception {
    assertAllocates(
        provider,
        RECORD_BYTES,
        comm -> {
          float[] values = new float[16];
          return () -> comm.allReduce(values, ReduceOp.MAX);
        });
  }

  /// Six messages in four pieces each wait in the ring when the first is received: what is behind
  /// it stays there.
  @ParameterizedTest
  @MethodSource("providers")
  void receive_moreMessagesBehindIt_keepsNoneOfThem(BackendProvider provider) throws Exception {
    assertKeepsNone(provider, (comm, data) -> comm.receive(data, 0, 0));
  }

  @ParameterizedTest
  @MethodSource("providers")
  void sendReceive_moreMessagesBehindIt_keepsNoneOfThem(BackendProvider provider) throws Exception {
    HostData nothing = CommData.of(new byte[0]);
    assertKeepsNone(provider, (comm, data) -> comm.sendReceive(nothing, 0, data, 0, 0));
  }

  /// Of 1, 2, 3 … elements.
  private static List<Collective> allReduces(int most) {
    List<Collective> records = new ArrayList<>();
    for (int count = 1; count <= most; count++) {
      HostData data = CommData.of(new double[count]);
      records.add(new Collective.AllReduce(data, data, ReduceOp.SUM));
    }
    return records;
  }

  private static void assertKeepsNone(
      BackendProvider provider, BiConsumer<Communicator, HostData> receive) throws Exception {
    int messages = 6;
    int bytes = 128 << 10;
    var sent = new CountDownLatch(1);
    onTwoRanks(
        provider,
        comm -> {
          HostData data = CommData.of(new byte[bytes]);
          if (comm.rank() == 0) {
            for (int i = 0; i < messages; i++) {
              comm.send(data, 1, 0);
            }
            sent.countDown();
          } else {
            await(sent);
            double each = Allocations.perCall(messages, () -> receive.accept(comm, data));
            assertThat(each).as("bytes allocated for a message").isLessThan(bytes / 4.0);
          }
        });
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /// The least of many rounds is at most so many bytes a call, on every rank.
  private static void assertAllocates(
      BackendProvider provider, long most, Function<Communicator, Runnable> call) throws Exception {
    onTwoRanks(
        provider,
        comm -> {
          Runnable once = call.apply(comm);
          double least = Double.MAX_VALUE;
          boolean isEnough = false;
          for (int round = 0; round < MOST_ROUNDS && !isEnough; round++) {
            least = Math.min(least, Allocations.perCall(CALLS, once));
            // ranks end together, when the last one is fast
            isEnough = comm.allReduce(least, ReduceOp.MAX) < most + 1.0;
          }
          assertThat(least).as("bytes a call on rank %d", comm.rank()).isLessThan(most + 1.0);
        });
  }

  private static void onTwoRanks(BackendProvider provider, Consumer<Communicator> body)
      throws Exception {
    try (LocalGroup group = ThreadGroups.open(provider, 2, CommConfig.builder().build());
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      for (Future<Object> each :
          threads.invokeAll(
              group.communicators().stream()
                  .map(comm -> Executors.callable(() -> body.accept(comm)))
                  .toList())) {
        each.get();
      }
    }
  }
}
