package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.NanoClock;
import org.junit.jupiter.api.Test;

class SteadyClockTest {
  @Test
  void withoutStops_longStep_countsAsTheLongest() {
    AtomicLong nowNs = new AtomicLong(Long.MAX_VALUE - 50); // as it may begin anywhere
    NanoClock clock = SteadyClock.withoutStops(100, nowNs::get);
    long startNs = clock.nanoTime();
    nowNs.addAndGet(100);
    assertThat(clock.nanoTime() - startNs).isEqualTo(100);
    nowNs.addAndGet(1_000_000);
    assertThat(clock.nanoTime() - startNs).isEqualTo(200);
    nowNs.addAndGet(7);
    assertThat(clock.nanoTime() - startNs).isEqualTo(207);
  }
}
