package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.comm4j.api.EvictedException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.Test;

/// What rank 1 of three makes of a history that ends for it while it waits.
final class ReplicatedSessionTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);
  private static final byte[] BYTES = {1};
  private static final Topic AGREEMENT = Topic.agreement("a", List.of(0, 1, 2));

  /// Rank 1's session.
  ///
  /// @param after what happens when it has contributed
  private static ReplicatedSession session(Consumer<ReplicatedSession> after) {
    return session(after, _ -> {});
  }

  private static ReplicatedSession session(Consumer<ReplicatedSession> after, IntConsumer halt) {
    var made = new AtomicReference<ReplicatedSession>();
    var history =
        new ReplicatedSession.History() {
          @Override
          public void append(Event event) {
            after.accept(made.get());
          }

          @Override
          public void close() {}
        };
    List<Member> members =
        IntStream.range(0, 3)
            .mapToObj(rank -> new Member(rank, LocalHost.identity(), 1 + rank, Set.of(), List.of()))
            .toList();
    made.set(new ReplicatedSession(1, "id", members, history, System::nanoTime, halt));
    return made.get();
  }

  private static Event contribution(int rank) {
    return new Event.Contribute(rank, AGREEMENT, BYTES);
  }

  private static Event failure(int rank) {
    return new Event.Fail(rank, "silent", null);
  }

  /// Its process would end before the others' have been told.
  @Test
  void abortProcesses_interrupted_waitsForItsOrder() throws Exception {
    List<String> seen = new CopyOnWriteArrayList<>();
    try (var pool = Executors.newSingleThreadExecutor()) {
      ReplicatedSession session =
          session(
              it ->
                  pool.execute(() -> {
                    LockSupport.parkNanos(50_000_000); // the way to the host and back
                    seen.add("order");
                    it.deliver(new Event.Halt(1, 9));
                  }),
              code -> seen.add("halt " + code));
      Thread.currentThread().interrupt();
      session.abortProcesses(9);
      assertThat(Thread.interrupted()).isTrue();
    }
    assertThat(seen).containsExactly("order", "halt 9");
  }

  /// The host may live, and have the others fail: were they to agree, there would be two groups.
  @Test
  void agree_hostIsLostBeforeItHasContributed_isNotDecidedWithoutIt() {
    ReplicatedSession session =
        session(it -> {
          it.deliver(contribution(1));
          it.deliver(contribution(2));
          it.loseHost(0, "silent");
        });
    assertThatThrownBy(() -> session.agree("a", List.of(0, 1, 2), BYTES, TIMEOUT))
        .isInstanceOfSatisfying(
            PeerFailedException.class, e -> assertThat(e.ranks()).containsExactly(0));
  }

  @Test
  void agree_othersDecideWithoutThisRank_isEvicted() {
    ReplicatedSession session =
        session(it -> {
          it.deliver(contribution(0));
          it.deliver(contribution(2));
          it.deliver(failure(1));
        });
    assertThatThrownBy(() -> session.agree("a", List.of(0, 1, 2), BYTES, TIMEOUT))
        .isInstanceOf(EvictedException.class)
        .hasMessageContaining("given up rank 1");
  }

  @Test
  void exchange_othersGiveThisRankUp_isEvicted() {
    ReplicatedSession session =
        session(it -> {
          it.deliver(new Event.Contribute(0, Topic.exchange("e"), BYTES));
          it.deliver(failure(1));
        });
    assertThatThrownBy(() -> session.exchange("e", BYTES, TIMEOUT))
        .isInstanceOf(EvictedException.class);
  }

  /// What was decided before stays decided, also for who looks later.
  @Test
  void agree_decidedBeforeTheHostIsLost_isAnswered() {
    ReplicatedSession session =
        session(it -> {
          it.deliver(contribution(0));
          it.deliver(contribution(1));
          it.deliver(failure(2));
          it.loseHost(0, "silent");
        });
    assertThat(session.agree("a", List.of(0, 1, 2), BYTES, TIMEOUT))
        .containsExactly(BYTES, BYTES, null);
  }

  /// Who is in a communicator with the host is told of a failed peer, the others of the session.
  @Test
  void loseHost_isAFailureAndTheEnd() {
    ReplicatedSession session = session(it -> {});
    session.loseHost(0, "silent for 10.1 s");
    assertThat(session.news().failures())
        .singleElement()
        .matches(failure -> failure.rank() == 0 && failure.hosted() && failure.mayGoOn());
    assertThat(session.news().evicted())
        .isEqualTo("rank 0, which hosted the session, is gone: silent for 10.1 s");
  }

  @Test
  void loseHost_evictedBefore_reasonStays() {
    ReplicatedSession session = session(it -> {});
    session.deliver(failure(1));
    session.loseHost(0, "its control connection closed");
    assertThat(session.news().failures()).extracting(Failure::rank).containsExactly(1);
    assertThatThrownBy(() -> session.agree("a", List.of(0, 1, 2), BYTES, TIMEOUT))
        .isInstanceOf(EvictedException.class)
        .hasMessageContaining("silent");
  }
}
