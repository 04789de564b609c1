package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.List;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
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

  /// Who is alive ends later, and is waited for.
  @Test
  void areAbsent_rankHasLeftInOrder_onlyAfterATimeoutOrADeath() {
    try (var sessions = InMemorySessions.group(3)) {
      Session session = sessions.session(0);
      sessions.session(1).close();
      assertThatExceptionOfType(PeerFailedException.class)
          .isThrownBy(() -> World.checkAllCome(session, Long.MAX_VALUE))
          .satisfies(e -> assertThat(World.areAbsent(e, session)).isFalse());
      var error = new OutOfMemoryError("to see how that ends");
      assertThat(World.areAbsent(error, session)).isFalse();
      var timeout = new CollectiveTimeoutException(List.of(), "to see how that ends");
      assertThat(World.areAbsent(timeout, session)).isTrue();
      sessions.fail(2, error);
      assertThat(World.areAbsent(error, session)).isTrue();
    }
  }
}
