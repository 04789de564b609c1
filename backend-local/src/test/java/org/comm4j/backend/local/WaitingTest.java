package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
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
  private static final Duration BUSY = Duration.ofMillis(300); // as long it may use more
  private static final Duration LATE = Duration.ofMillis(1800);
  private static final int MEASURES = 5; // in that time
  private static final double MOST_OF_A_PROCESSOR = 0.01;
  private static final String PROGRESS = "comm4j-progress-1";

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
        second ->
            newThread(
                PROGRESS,
                () -> {
                  var _ = second.start(future).toCompletableFuture();
                }));
  }

  /// One of them sleeps in the transport, the other one where it is woken by that one.
  @ParameterizedTest
  @MethodSource("providers")
  void receive_twoThreadsOfARankWait_leaveTheProcessorAlone(BackendProvider provider)
      throws Exception {
    CommConfig config = CommConfig.builder().timeout(LATE.multipliedBy(5)).build();
    try (LocalGroup group = ThreadGroups.open(provider, 2, config);
        ExecutorService threads =
            Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      Communicator first = group.communicators().get(0);
      Communicator second = group.communicators().get(1);
      Future<Communicator> copying = threads.submit(first::duplicate);
      Communicator secondCopy = second.duplicate();
      Communicator firstCopy = copying.get();
      var one = new CompletableFuture<Thread>();
      var other = new CompletableFuture<Thread>();
      Future<int[]> received = threads.submit(() -> receive(second, one));
      Future<int[]> receivedByCopy = threads.submit(() -> receive(secondCopy, other));

      Thread oneThread = one.get(1, TimeUnit.MINUTES);
      Thread otherThread = other.get(1, TimeUnit.MINUTES);
      beLate(BUSY);
      List<Double> shares = usualShares(List.of(oneThread, otherThread));
      first.send(CommData.of(1), 1, 0);
      assertThat(received.get()).containsExactly(1);
      firstCopy.send(CommData.of(2), 1, 0); // for whoever is left
      assertThat(receivedByCopy.get()).containsExactly(2);
      assertThat(shares)
          .as("shares of a processor")
          .allSatisfy(share -> assertThat(share).isLessThan(MOST_OF_A_PROCESSOR));
      firstCopy.close();
      secondCopy.close();
    }
  }

  private static int[] receive(Communicator comm, CompletableFuture<Thread> waiting) {
    int[] data = new int[1];
    Request request = comm.start(new PointToPoint.Receive(CommData.of(data), 0, 0));
    waiting.complete(Thread.currentThread());
    request.await();
    return data;
  }

  /// The flag is of the thread that waits for work next.
  @ParameterizedTest
  @MethodSource("providers")
  void future_dependentInterruptsItsThread_leavesTheProcessorAlone(BackendProvider provider)
      throws Exception {
    CommConfig config = CommConfig.builder().build();
    try (LocalGroup group = ThreadGroups.open(provider, 2, config)) {
      Communicator first = group.communicators().get(0);
      Communicator second = group.communicators().get(1);
      var interrupted = new CompletableFuture<Void>();
      Thread progress =
          newThread(
              PROGRESS,
              () -> {
                var _ =
                    second
                        .start(new PointToPoint.Receive(CommData.of(new int[1]), 0, 0))
                        .toCompletableFuture()
                        .thenRun(() -> {
                          Thread.currentThread().interrupt();
                          interrupted.complete(null);
                        });
              });
      first.send(CommData.of(1), 1, 0);
      interrupted.get(1, TimeUnit.MINUTES);
      assertThat(usualShare(progress)).isLessThan(MOST_OF_A_PROCESSOR);
    }
  }

  /// The thread of this name that an action starts; groups of other tests have such threads too.
  private static Thread newThread(String name, Runnable action) {
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    action.run();
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(name) && !before.contains(thread))
        .findAny()
        .orElseThrow();
  }

  /// Rank 0 does its part late; rank 1 waits for it with at most a hundredth of a processor.
  private static void assertWaitsCheaply(
      BackendProvider provider, Operation late, Operation awaited) throws Exception {
    assertWaitsCheaply(provider, late, awaited, _ -> Thread.currentThread());
  }

  /// @param measured called by the rank that waits; which thread takes little of a processor
  private static void assertWaitsCheaply(
      BackendProvider provider,
      Operation late,
      Operation awaited,
      Function<Communicator, Thread> measured)
      throws Exception {
    CommConfig config = CommConfig.builder().timeout(LATE.multipliedBy(5)).build();
    try (LocalGroup group = ThreadGroups.open(provider, 2, config);
        ExecutorService threads =
            Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      Communicator first = group.communicators().get(0);
      Communicator second = group.communicators().get(1);
      var waiting = new CompletableFuture<Thread>();
      Callable<Double> lateRank =
          () -> {
            first.run(late); // loads classes
            Thread thread = waiting.get(1, TimeUnit.MINUTES);
            beLate(BUSY);
            double share = usualShare(thread);
            first.run(late);
            return share;
          };
      Callable<Boolean> waitingRank =
          () -> {
            Thread thread = measured.apply(second);
            second.run(awaited);
            Request request = second.start(awaited);
            waiting.complete(thread);
            request.await();
            return true;
          };
      Future<Double> share = threads.submit(lateRank);
      assertThat(threads.submit(waitingRank).get()).isTrue();
      assertThat(share.get())
          .as("share of a processor while waiting")
          .isLessThan(MOST_OF_A_PROCESSOR);
    }
  }

  private static double usualShare(Thread thread) {
    return usualShares(List.of(thread)).getFirst();
  }

  /// What each of some threads takes of a processor while they wait: the median of some measures.
  /// In one a thread looks some five times, and a single look may be slow: it loads a class, or the
  /// processor was another one's for a while and has everything to fetch again.
  private static List<Double> usualShares(List<Thread> threads) {
    List<List<Double>> measures = Stream.generate(() -> shares(threads)).limit(MEASURES).toList();
    return IntStream.range(0, threads.size())
        .mapToObj(thread -> measures.stream().map(each -> each.get(thread)).sorted().toList())
        .map(sorted -> sorted.get(MEASURES / 2))
        .toList();
  }

  /// At the same time.
  private static List<Double> shares(List<Thread> threads) {
    if (threads.isEmpty()) {
      beLate(LATE.dividedBy(MEASURES));
      return List.of();
    }
    List<Double> all = new ArrayList<>();
    List<Thread> others = threads.subList(1, threads.size());
    double first = ProcessorTime.share(threads.getFirst(), () -> all.addAll(shares(others)));
    all.addFirst(first);
    return all;
  }

  /// What this is about; nobody waits for its end.
  private static void beLate(Duration time) {
    try {
      Thread.sleep(time);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
