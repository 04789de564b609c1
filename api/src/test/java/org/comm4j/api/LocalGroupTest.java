package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class LocalGroupTest {
  private static final CommConfig CONFIG = CommConfig.builder().backend("fake-threads").build();

  @Test
  void run_everyRank_hasItsThreadAndCommunicator() {
    List<String> names =
        LocalGroup.call(
            3,
            comm -> {
              comm.barrier();
              assertThat(comm.size()).isEqualTo(3);
              return Thread.currentThread().getName() + " is rank " + comm.rank();
            });

    assertThat(names)
        .containsExactly(
            "comm4j-rank-0 is rank 0", "comm4j-rank-1 is rank 1", "comm4j-rank-2 is rank 2");
    assertThat(lastGroup().closed).isTrue();
    assertThat(lastGroup().communicators)
        .allSatisfy(each -> assertThat(each.calls).containsExactly("sync", "barrier", "close"));
  }

  @Test
  void run_withoutBackend_takesTheBestOfThreads() {
    LocalGroup.run(2, comm -> assertThat(comm.backend()).isEqualTo("fake-threads"));
  }

  @Test
  void run_ranksAreProcessesButMayBeThreads_isLaunched() {
    LocalGroup.run(
        2,
        CONFIG.toBuilder().backend("fake-devices").build(),
        comm -> assertThat(comm.backend()).isEqualTo("fake-devices"));
  }

  @Test
  void run_aRankThrows_throwsThatAndTheOthersHearOfIt() {
    var cause = new IOException("disk");

    assertThatThrownBy(() ->
            LocalGroup.run(
                4,
                CONFIG,
                comm -> {
                  if (comm.rank() == 2) {
                    throw cause;
                  }
                  comm.barrier();
                }))
        .isSameAs(cause);

    assertThat(cause.getSuppressed())
        .hasSize(3)
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOfSatisfying(
                    PeerFailedException.class,
                    failed -> assertThat(failed.ranks()).containsExactly(2))
                .hasCause(cause));
    assertThat(lastGroup().failed).contains(2);
    assertThat(lastGroup().closed).isTrue();
  }

  @Test
  void run_aRankReturnsWithAnOpenChild_hasLeft() {
    List<Communicator> children = LocalGroup.call(2, Communicator::duplicate);

    assertThat(lastGroup().left).containsExactlyInAnyOrder(0, 1);
    assertThat(lastGroup().closed).isFalse();
    children.forEach(Communicator::close);
    assertThat(lastGroup().closed).isTrue();
  }

  @Test
  void run_aRankAborts_throwsWhatItThrew() {
    assertThatThrownBy(() ->
            LocalGroup.run(
                2,
                CONFIG,
                comm -> {
                  if (comm.rank() == 1) {
                    comm.abort("enough");
                  }
                  comm.barrier();
                }))
        .isInstanceOfSatisfying(
            AbortedException.class, aborted -> assertThat(aborted.rank()).isEqualTo(1));
  }

  @Test
  void run_allFail_suppressesTheOthers() {
    assertThatThrownBy(() ->
            LocalGroup.run(
                3,
                comm -> {
                  throw new IllegalStateException("rank " + comm.rank());
                }))
        .isInstanceOf(IllegalStateException.class)
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(2));
  }

  @Test
  void run_error_isPassedOn() {
    assertThatThrownBy(() ->
            LocalGroup.run(
                1,
                comm -> {
                  throw new AssertionError("wrong on rank " + comm.rank());
                }))
        .isInstanceOf(AssertionError.class);
  }

  @Test
  void run_interrupted_interruptsTheRanksAndKeepsTheFlag() {
    var started = new CountDownLatch(1);
    Thread caller = Thread.currentThread();
    Thread.ofPlatform()
        .start(() -> {
          try {
            started.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
          caller.interrupt();
        });

    assertThatExceptionOfType(InterruptedCallException.class)
        .isThrownBy(() ->
            LocalGroup.run(
                2,
                comm -> {
                  if (comm.rank() == 0) {
                    started.countDown();
                    comm.barrier();
                  }
                }));

    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void open_insideARank_isTheRanksCommunicator() {
    LocalGroup.run(
        2,
        comm -> {
          assertThat(Communicators.open()).isSameAs(comm);
          assertThat(Communicators.open(CONFIG)).isSameAs(comm);
          assertThatExceptionOfType(BackendUnavailableException.class)
              .isThrownBy(() -> Communicators.open(CONFIG.toBuilder().backend("fake-net").build()))
              .withMessageContaining("rank " + comm.rank() + " of a launch on 'fake-threads'");
        });
  }

  @Test
  void open_rankHasClosedIt_saysSo() {
    LocalGroup.run(
        2,
        comm -> {
          comm.close();
          assertThatExceptionOfType(ClosedException.class)
              .isThrownBy(Communicators::open)
              .withMessageContaining("rank " + comm.rank() + " of the launch of threads")
              .withMessageContaining("can't be opened again");
        });
  }

  @Test
  void ends_ofARankThatIsNone_areRefused() {
    try (LocalGroup group = LocalGroup.open(2, CONFIG)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> group.fail(2, new RuntimeException()))
          .withMessageContaining("rank: 2");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> group.leave(-1))
          .withMessageContaining("rank: -1");
      assertThatNullPointerException().isThrownBy(() -> group.fail(0, null)).withMessage("cause");
      assertThatNullPointerException()
          .isThrownBy(() -> group.start(rank -> rank == 1 ? null : new Collective.Barrier()))
          .withMessage("operation of rank 1: null");
    }
  }

  @Test
  void open_onAThreadThatIsNoRank_saysSo() {
    LocalGroup.run(
        1,
        _ -> {
          var task =
              new java.util.concurrent.FutureTask<>(() -> {
                Thread.currentThread().setContextClassLoader(null);
                return Communicators.open();
              });
          Thread.ofPlatform().name("stray").start(task);
          assertThatThrownBy(task::get)
              .cause()
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("'stray', which is none of the ranks");
        });
  }

  @SuppressWarnings("try") // closes in the middle on purpose
  @Test
  void opened_handsOutTheCommunicators() {
    try (LocalGroup group = LocalGroup.open(3, CONFIG)) {
      assertThat(group.size()).isEqualTo(3);
      assertThat(group.communicator(2)).isSameAs(group.communicators().get(2));
      assertThat(IntStream.range(0, 3).map(rank -> group.communicator(rank).rank()))
          .containsExactly(0, 1, 2);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> group.communicator(3))
          .withMessage("rank: 3 (expected: 0..2, there are 3)");

      group.fail(1, new IOException("gone"));
      assertThat(group.communicator(0).failure()).isPresent();
      group.close();
    }
    assertThat(lastGroup().closed).isTrue();
  }

  @Test
  void opened_childOpen_staysUntilThatIsClosed() {
    Communicator child;
    try (LocalGroup group = LocalGroup.open(1, CONFIG)) {
      child = group.communicator(0).duplicate();
    }
    assertThat(lastGroup().closed).isFalse();
    child.close();
    assertThat(lastGroup().closed).isTrue();
  }

  @Test
  void close_lastCommunicatorOfARank_leavesTheOthers() {
    try (LocalGroup group = LocalGroup.open(2, CONFIG)) {
      Communicator child = group.communicator(1).duplicate();
      group.communicator(1).close();
      assertThat(lastGroup().left).isEmpty();
      child.close();
      assertThat(lastGroup().left).containsExactly(1);
      assertThat(lastGroup().closed).isFalse();
    }
    assertThat(lastGroup().left).containsExactly(1, 0);
    assertThat(lastGroup().closed).isTrue();
  }

  @Test
  void fail_communicatorClosedButNotItsChild_tellsTheOthers() {
    try (LocalGroup group = LocalGroup.open(2, CONFIG);
        Communicator _ = group.communicator(1).duplicate()) {
      group.communicator(1).close();
      group.fail(1, new IOException("gone"));
      assertThat(group.communicator(0).failure()).containsInstanceOf(PeerFailedException.class);
    }
  }

  @Test
  void open_configOfARank_mustAgreeWithTheLaunch() {
    CommConfig launch =
        CONFIG.toBuilder().reduction(Reduction.ORDERED).timeout(Duration.ofSeconds(9)).build();
    LocalGroup.run(
        2,
        launch,
        communicator -> {
          assertThat(Communicators.open(launch)).isSameAs(communicator);
          assertThat(Communicators.open(CommConfig.builder().build())).isSameAs(communicator);
          var ofProcesses =
              CommConfig.builder()
                  .liveness(Duration.ofSeconds(3))
                  .joinTimeout(Duration.ofSeconds(3))
                  .secret(Secret.of("between processes"))
                  .pluginPath("elsewhere.jar")
                  .build();
          assertThat(Communicators.open(ofProcesses)).isSameAs(communicator);
          assertThatIllegalArgumentException()
              .isThrownBy(() ->
                  Communicators.open(CommConfig.builder().timeout(Duration.ofSeconds(3)).build()))
              .withMessageContaining("timeout: 3s (expected: 9s, as in the launch");
          assertThatIllegalArgumentException()
              .isThrownBy(
                  () -> Communicators.open(launch.toBuilder().synchronousSend(true).build()))
              .withMessageContaining("synchronousSend: true (expected: false");
        });
  }

  /// A program may need more than its launch was asked for.
  @Test
  void open_rankAsksForOrderedReduction_getsIt() {
    CommConfig ordered = CONFIG.toBuilder().reduction(Reduction.ORDERED).build();
    LocalGroup.run(
        2,
        CONFIG,
        communicator -> {
          FakeCommunicator backend = lastGroup().communicators.get(communicator.rank());
          assertThat(Communicators.open(ordered)).isSameAs(communicator);
          assertThat(backend.reduction).isEqualTo(Reduction.ORDERED);
          communicator.barrier();
          assertThat(Communicators.open(ordered)).isSameAs(communicator);
        });
  }

  @Test
  void open_rankAsksForWhatCannotBe_changesNothing() {
    CommConfig ordered = CONFIG.toBuilder().reduction(Reduction.ORDERED).build();
    CommConfig otherwiseWrong = ordered.toBuilder().timeout(Duration.ofSeconds(3)).build();
    LocalGroup.run(
        2,
        CONFIG,
        communicator -> {
          FakeCommunicator backend = lastGroup().communicators.get(communicator.rank());
          assertThatIllegalArgumentException()
              .isThrownBy(() -> Communicators.open(otherwiseWrong))
              .withMessageContaining("timeout: 3s");
          assertThat(backend.reduction).isEqualTo(Reduction.FAST);

          backend.reduction = null; // it can't
          assertRefusesOrdered(ordered);

          backend.reduction = Reduction.FAST;
          communicator.barrier(); // too late
          assertRefusesOrdered(ordered);
          assertThat(backend.reduction).isEqualTo(Reduction.FAST);
        });
  }

  private static void assertRefusesOrdered(CommConfig ordered) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Communicators.open(ordered))
        .withMessageContaining("reduction: ordered (expected: fast, as in the launch");
  }

  @Test
  void start_everyRank_startsItsOwn() {
    try (LocalGroup group = LocalGroup.open(3, CONFIG)) {
      List<Request> started =
          group.start(rank -> new PointToPoint.Send(CommData.of(rank), 2 - rank, 0));

      for (int rank = 2; rank >= 0; rank--) {
        assertThat(started.get(rank).isDone()).isFalse();
        lastGroup().communicators.get(rank).pending().end(null);
        assertThat(started.get(rank).isDone()).isTrue();
      }
      Request.waitAll(started);
    }
  }

  @Test
  void start_wrongForOneRank_startsNone() {
    try (LocalGroup group = LocalGroup.open(3, CONFIG)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() ->
              group.start(rank -> new PointToPoint.Send(CommData.of(1), rank == 2 ? 3 : 0, 0)))
          .withMessageContaining("3 (expected: 0..2");

      assertThat(lastGroup().communicators)
          .allSatisfy(each -> assertThat(each.calls).noneMatch(call -> call.contains("submit")));
    }
  }

  @Test
  void open_wrongRequests_areRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> LocalGroup.open(0))
        .withMessageContaining("size: 0");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> LocalGroup.open(2, CONFIG.toBuilder().backend("fake-net").build()))
        .withMessageContaining("its ranks are processes");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> LocalGroup.open(2, CONFIG.toBuilder().backend("fake-thread").build()))
        .withMessageContaining("did you mean 'fake-threads'?");
    assertThatIllegalArgumentException()
        .isThrownBy(() ->
            LocalGroup.open(2, CONFIG.toBuilder().option("COMM_FAKE_THREADS_SPED", "1").build()))
        .withMessageContaining("COMM_FAKE_THREADS_SPED");
  }

  @Test
  void unclosed_collected_isClosed() throws Exception {
    var dropped = new FakeGroup(3, "dropped-group");
    makeAndDrop(dropped);
    while (!dropped.ended.await(20, TimeUnit.MILLISECONDS)) {
      System.gc();
    }
    assertThat(dropped.left).containsExactlyInAnyOrder(0, 1, 2);
    assertThat(dropped.communicators)
        .allSatisfy(each -> assertThat(each.calls).containsExactly("submit barrier", "close"));
  }

  private static void makeAndDrop(FakeGroup dropped) {
    LocalGroup group = LocalGroup.of(dropped);
    for (Communicator each : group.communicators()) {
      var _ = each.start(new Collective.Barrier());
    }
  }

  private static FakeGroup lastGroup() {
    return Objects.requireNonNull(FakeGroup.last);
  }
}
