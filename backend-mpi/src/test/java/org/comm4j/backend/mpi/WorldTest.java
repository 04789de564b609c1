package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import org.comm4j.api.InterruptedCallException;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;

class WorldTest {
  @Test
  void checkAllCome_interrupted_throws() {
    try (var sessions = InMemorySessions.group(2)) {
      Thread.currentThread().interrupt();
      assertThatExceptionOfType(InterruptedCallException.class)
          .isThrownBy(() -> World.checkAllCome(sessions.session(1), Long.MAX_VALUE))
          .withMessageContaining("interrupted on rank 1");
      assertThat(Thread.interrupted()).as("the flag is set again").isTrue();
    }
  }
}
