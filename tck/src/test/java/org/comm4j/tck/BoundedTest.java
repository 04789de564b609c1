package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class BoundedTest {
  private static final Duration LONG = Duration.ofMinutes(10);

  @Test
  void call_ends_returnsItsResult() throws Exception {
    assertThat(Bounded.call("adding", LONG, () -> 1 + 1)).isEqualTo(2);
  }

  @Test
  void run_neverEnds_isReportedWithWhereItIs() {
    Callable<?> ends = () -> 1;
    Callable<?> endless = BoundedTest::waitForNothing;
    assertThatThrownBy(() -> Bounded.run("waiting", Duration.ofMillis(100), List.of(ends, endless)))
        .isInstanceOf(RuleViolation.class)
        .hasMessageContaining("waiting has not ended")
        .hasMessageContaining("tck-part-1:")
        .hasMessageContaining("waitForNothing");
  }

  @Test
  void run_onePartFails_itsFailureIsThrownAndTheOthersAreInterrupted() {
    var failure = new AssertionError("this one");
    Callable<?> failing =
        () -> {
          throw failure;
        };
    Callable<?> endless = BoundedTest::waitForNothing;
    assertThatThrownBy(() -> Bounded.run("waiting", LONG, List.of(endless, failing)))
        .isSameAs(failure)
        .satisfies(thrown ->
            assertThat(thrown.getSuppressed())
                .hasSize(1)
                .hasOnlyElementsOfType(InterruptedException.class));
  }

  private static boolean waitForNothing() throws InterruptedException {
    new CountDownLatch(1).await();
    return true;
  }
}
