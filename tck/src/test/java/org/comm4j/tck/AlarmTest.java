package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.LocalGroup;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// How ranks get out of a check that has failed elsewhere.
@Timeout(120)
class AlarmTest {
  /// What it waits for, the rank that failed has not closed, and no deadline ends it.
  @Test
  void ring_anotherRankWaits_isInterruptedUntilItsAlarmIsClosed() throws Exception {
    CommConfig config = CommConfig.builder().timeout(Duration.ofMinutes(10)).build();
    try (LocalGroup group = MemoryGroups.open(2, config, 1000, 0)) {
      var waiting = new FutureTask<>(() -> receive(group.communicator(0)));
      Thread.ofPlatform().daemon().start(waiting);
      try (Communicator bell = group.communicator(1).duplicate()) {
        bell.abort("on purpose"); // as an alarm's ring does
        assertThat(waiting.get(60, TimeUnit.SECONDS)).isInstanceOf(InterruptedCallException.class);
      }
    }
  }

  /// {@return what a receive throws that nobody sends to}
  private static Throwable receive(Communicator comm) {
    Throwable thrown;
    try (Communicator bell = comm.duplicate();
        Alarm alarm = new Alarm(bell)) {
      thrown = catchThrowable(() -> comm.receive(CommData.of(new int[1]), 1, 1));
      assertThat(alarm.hasRung()).isTrue();
    }
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
    return thrown;
  }
}
