package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.EvictedException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
import org.junit.jupiter.api.Test;

final class InMemorySessionsTest {
  private static final Duration SOON = Duration.ofSeconds(20);

  @Test
  void fail_carriesItsCause() {
    var sessions = InMemorySessions.group(2);
    var cause = new IllegalStateException("broken on purpose");
    sessions.fail(1, cause);
    Session survivor = sessions.session(0);
    assertThat(survivor.news().failures())
        .singleElement()
        .satisfies(failure -> assertThat(failure.cause()).isSameAs(cause));
    assertThatThrownBy(() -> survivor.exchange("k", new byte[0], SOON))
        .isInstanceOf(PeerFailedException.class)
        .hasCause(cause)
        .hasMessageContaining("rank 1");
    assertThat(sessions.session(1).news().evicted()).contains("broken on purpose");
    assertThatThrownBy(() -> sessions.session(1).agree("a", List.of(1), new byte[0], SOON))
        .isInstanceOf(EvictedException.class);
    sessions.close();
  }

  @Test
  void timeouts_areOnTheGivenClock() throws InterruptedException, ExecutionException {
    var clock = new AtomicLong();
    var reading = new CountDownLatch(5);
    InMemorySessions sessions =
        InMemorySessions.group(
            2,
            () -> {
              reading.countDown();
              return clock.get();
            },
            code -> {});
    var late =
        CompletableFuture.supplyAsync(() -> {
          try {
            return sessions.session(0).exchange("k", new byte[0], Duration.ofDays(1));
          } catch (CollectiveTimeoutException e) {
            return e;
          }
        });
    assertThat(reading.await(SOON.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(late).isNotDone();
    clock.set(Duration.ofDays(1).toNanos());
    assertThat(late.orTimeout(20, TimeUnit.SECONDS).get())
        .isInstanceOf(CollectiveTimeoutException.class);
    sessions.close();
  }

  @Test
  void abort_veryOften_forgetsTheOldest() {
    InMemorySessions sessions = InMemorySessions.group(2);
    for (int scope = 0; scope < 10_000; scope++) {
      sessions.session(0).abort(scope, new byte[0]);
    }
    List<Session.Abort> aborts = sessions.session(1).news().aborts();
    assertThat(aborts).hasSizeBetween(1000, 5000);
    assertThat(aborts.getLast().scope()).isEqualTo(9999);
    sessions.close();
  }

  @Test
  void agree_veryOften_forgetsTheOldestKeys() {
    InMemorySessions sessions = InMemorySessions.group(1);
    Session session = sessions.session(0);
    for (int key = 0; key < 10_000; key++) {
      session.agree("k" + key, List.of(0), new byte[0], SOON);
    }
    assertThatThrownBy(() -> session.agree("k9999", List.of(0), new byte[0], SOON))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(session.agree("k0", List.of(0), new byte[0], SOON)).hasSize(1);
    sessions.close();
  }

  @Test
  void agree_timeWasOver_mayGoOnWaiting() {
    InMemorySessions sessions = InMemorySessions.group(2);
    List<Integer> both = List.of(0, 1);
    byte[] first = {1};
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> sessions.session(0).agree("k", both, first, Duration.ZERO))
          .isInstanceOfSatisfying(
              CollectiveTimeoutException.class,
              late -> assertThat(late.missing()).containsExactly(1));
    }

    assertThat(sessions.session(1).agree("k", both, new byte[] {2}, SOON)).hasSize(2);

    assertThat(sessions.session(0).agree("k", both, new byte[] {3}, SOON))
        .as("the first bytes stay")
        .containsExactly(new byte[] {1}, new byte[] {2});
    assertThatThrownBy(() -> sessions.session(0).agree("k", both, first, SOON))
        .isInstanceOf(IllegalArgumentException.class);
    sessions.close();
  }

  /// A rank that has closed a communicator takes no part in what the others agree on.
  @Test
  void agree_othersVeryOften_forgetsTheOldest() {
    InMemorySessions sessions = InMemorySessions.group(2);
    List<Integer> both = List.of(0, 1);
    for (int key = 0; key < 10_000; key++) {
      String each = "k" + key;
      assertThatThrownBy(() -> sessions.session(1).agree(each, both, new byte[1], Duration.ZERO))
          .isInstanceOf(CollectiveTimeoutException.class);
    }
    assertThat(sessions.session(0).agree("k9999", both, new byte[1], SOON)).hasSize(2);
    assertThatThrownBy(() -> sessions.session(0).agree("k0", both, new byte[1], Duration.ZERO))
        .isInstanceOf(CollectiveTimeoutException.class);
    sessions.close();
  }

  @Test
  void put_veryOften_forgetsTheOldest() {
    InMemorySessions sessions = InMemorySessions.group(2);
    for (int key = 0; key < 50_000; key++) {
      sessions.session(0).put("k" + key, new byte[] {1});
    }
    Session reader = sessions.session(1);
    assertThat(reader.get("k40000", Duration.ZERO)).containsExactly(1);
    assertThatThrownBy(() -> reader.get("k20000", Duration.ZERO))
        .isInstanceOf(CollectiveTimeoutException.class);
    sessions.close();
  }

  @Test
  void abortProcesses_haltsOncePerRank() {
    var codes = new ArrayList<Integer>();
    InMemorySessions sessions = InMemorySessions.group(3, System::nanoTime, codes::add);
    sessions.session(1).abortProcesses(9);
    assertThat(codes).containsExactly(9, 9, 9);
    assertThatThrownBy(() -> sessions.session(0).abortProcesses(0))
        .isInstanceOf(IllegalArgumentException.class);
    sessions.close();
  }
}
