package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.comm4j.api.ClosedException;
import org.comm4j.api.PeerFailedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class SessionGroupTest {
  private static final Duration LONG = Duration.ofMinutes(5);

  @Test
  void open_aRankFails_theOthersHearOfIt_andItsReasonIsThrown() {
    var sessions = InMemorySessions.group(3);
    var ends = new AtomicInteger();
    var reason = new IllegalArgumentException("no such device");

    Throwable thrown =
        catchThrowable(() ->
            SessionGroup.open(
                sessions,
                session -> {
                  if (session.rank() == 1) {
                    throw reason;
                  }
                  session.exchange("never", new byte[0], LONG);
                  throw new AssertionError("rank 1 took part");
                },
                ends::incrementAndGet));

    assertThat(thrown).isSameAs(reason);
    assertThat(Arrays.stream(thrown.getSuppressed()))
        .hasSize(2)
        .allSatisfy(each ->
            assertThat(each)
                .isInstanceOf(PeerFailedException.class)
                .hasMessageContaining("rank 1")
                .hasMessageContaining("no such device"));
    assertThat(ends).hasValue(1);
    assertThat(catchThrowable(() -> sessions.session(0).exchange("k", new byte[0], LONG)))
        .isInstanceOfAny(ClosedException.class, IllegalStateException.class);
  }

  @Test
  void open_interrupted_interruptsTheRanks_andStaysInterrupted() {
    var sessions = InMemorySessions.group(2);
    Thread.currentThread().interrupt();

    Throwable thrown =
        catchThrowable(() ->
            SessionGroup.open(
                sessions,
                session -> {
                  session.get("never", LONG);
                  throw new AssertionError("nobody put it");
                },
                () -> {}));

    assertThat(Thread.interrupted()).isTrue();
    assertThat(thrown).isNotNull().hasMessageContaining("interrupt");
  }
}
