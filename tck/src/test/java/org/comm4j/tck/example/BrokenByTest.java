package org.comm4j.tck.example;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;

final class BrokenByTest {
  private static final long SCOPE = 7;

  private final InMemorySessions sessions = InMemorySessions.group(4);
  private final AtomicInteger wakeUps = new AtomicInteger();

  /// Of a communicator of ranks 1 to 3.
  private final List<BrokenBy> ranks =
      IntStream.range(0, 3)
          .mapToObj(rank ->
              new BrokenBy(
                  sessions.session(rank + 1),
                  SCOPE,
                  rank,
                  new int[] {1, 2, 3},
                  wakeUps::incrementAndGet))
          .toList();

  @Test
  void abort_oneRank_breaksAllAndTheFirstReasonStays() {
    assertThat(ranks).allSatisfy(rank -> assertThat(rank.failure()).isNull());
    var lost = new BackendException(5, "the library has failed");

    ranks.get(1).abort(lost);

    assertThat(wakeUps.get()).isPositive();
    assertThat(ranks.get(1).failure()).isSameAs(lost);
    for (int other : new int[] {0, 2}) {
      assertThat(ranks.get(other).failure())
          .isInstanceOfSatisfying(
              AbortedException.class, aborted -> assertThat(aborted.rank()).isEqualTo(1))
          .hasMessageContaining("the library has failed");
    }
    var first = ranks.get(2).failure();
    ranks.get(2).abort(new BackendException(6, "later"));
    assertThat(ranks.get(2).failure()).isSameAs(first);
    assertThat(ranks.get(1).failure()).isSameAs(lost);
  }

  @Test
  void failure_rankHasDied_namesItByItsNumberHere() {
    sessions.fail(0, new IllegalStateException("no member"));
    assertThat(ranks.get(0).failure()).isNull();

    sessions.fail(3, new IllegalStateException("dead"));

    assertThat(ranks.get(0).failure())
        .isInstanceOfSatisfying(
            PeerFailedException.class, failed -> assertThat(failed.ranks()).containsExactly(2));
  }

  /// A program may split and close for ever.
  @Test
  void close_ofManyCommunicators_leavesNothingThatNewsWakes() {
    var woken = new AtomicInteger();
    for (int number = 0; number < 1000; number++) {
      new BrokenBy(sessions.session(0), 100 + number, 0, new int[] {0, 1}, woken::incrementAndGet)
          .close();
    }

    sessions.fail(3, new IllegalStateException("dead"));

    assertThat(wakeUps.get()).isPositive();
    assertThat(woken.get()).isZero();
  }

  @Test
  void documentation_showsTheClass() throws IOException {
    Path source = Path.of("src/test/java/org/comm4j/tck/example/BrokenBy.java");
    String code = Files.readString(source);
    assertThat(Files.readString(Path.of("../docs/writing-a-backend.md")))
        .contains(code.substring(code.indexOf("/// Why a communicator")));
  }
}
