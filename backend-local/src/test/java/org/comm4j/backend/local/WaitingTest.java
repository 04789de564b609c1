package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Request;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.tck.ProcessorTime;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What a rank that waits takes from others.
class WaitingTest {
  private static final Duration LATE = Duration.ofSeconds(2);
  private static final Duration BUSY = Duration.ofMillis(100); // as long it may use more

  static List<BackendProvider> providers() {
    return List.of(new LocalProvider(), new ShmProvider());
  }

  @ParameterizedTest
  @MethodSource("providers")
  void barrier_peerIsLate_leavesTheProcessorAlone(BackendProvider provider) throws Exception {
    var barrier = new Collective.Barrier();
    assertWaitsCheaply(provider, barrier, barrier);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void receive_peerIsLate_leavesTheProcessorAlone(BackendProvider provider) throws Exception {
    assertWaitsCheaply(
        provider,
        new PointToPoint.Send(CommData.of(1), 1, 0),
        new PointToPoint.Receive(CommData.of(1), 0, 0));
  }

  @ParameterizedTest
  @MethodSource("providers")
  void future_whileItsRankWaitsForAnother_leavesTheProcessorAlone(BackendProvider provider)
      throws Exception {
    var barrier = new Collective.Barrier();
    var future = new PointToPoint.Receive(CommData.of(1), 0, 1); // that never comes
    assertWaitsCheaply(
        provider,
        barrier,
        barrier,
        second -> {
          var _ = second.start(future).toCompletableFuture();
        },
        request -> ProcessorTime.share("comm4j-progress-1", request::await));
  }

  /// Rank 0 does its part late; rank 1 waits for it with at most a hundredth of a processor.
  private static void assertWaitsCheaply(
      BackendProvider provider, Operation late, Operation awaited) throws Exception {
    assertWaitsCheaply(
        provider, late, awaited, _ -> {}, request -> ProcessorTime.share(request::await));
  }

  /// @param before done by the rank that waits
  /// @param waiting awaits, and returns what of a processor was used meanwhile
  private static void assertWaitsCheaply(
      BackendProvider provider,
      Operation late,
      Operation awaited,
      Consumer<Communicator> before,
      ToDoubleFunction<Request> waiting)
      throws Exception {
    CommConfig config = CommConfig.builder().timeout(LATE.multipliedBy(5)).build();
    try (LocalGroup group = ThreadGroups.open(provider, 2, config);
        ExecutorService threads =
            Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      Communicator first = group.communicators().get(0);
      Communicator second = group.communicators().get(1);
      var isWaiting = new CountDownLatch(1);
      Callable<Boolean> lateRank =
          () -> {
            first.run(late); // loads classes
            assertThat(isWaiting.await(1, TimeUnit.MINUTES)).isTrue();
            Thread.sleep(LATE); // being late is what this is about; nobody waits for its end
            first.run(late);
            return true;
          };
      Callable<Double> waitingRank =
          () -> {
            before.accept(second);
            second.run(awaited);
            Request request = second.start(awaited);
            assertThatThrownBy(() -> request.await(BUSY)).isInstanceOf(TimeoutException.class);
            isWaiting.countDown();
            return waiting.applyAsDouble(request);
          };
      Future<Boolean> end = threads.submit(lateRank);
      double share = threads.submit(waitingRank).get();
      assertThat(end.get()).isTrue();
      assertThat(share).as("share of a processor while waiting").isLessThan(0.01);
    }
  }
}
