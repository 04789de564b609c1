package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.junit.jupiter.api.Test;

class WiringTest {
  private static final CommConfig CONFIG = CommConfig.builder().backend("local").build();

  @Test
  void backends_areThoseThatWereFound() {
    assertThat(Wiring.backends(CONFIG))
        .extracting(BackendInfo::name)
        .contains("shm", "local", "aeron", "mpi", "cuda")
        .isEqualTo(Backends.availableBackends(CONFIG).stream().map(BackendInfo::name).toList());
  }

  @Test
  void lifecycle_opensOneAndClosesIt() {
    Communicator communicator;
    try (var lifecycle = Wiring.lifecycle(CONFIG)) {
      communicator = lifecycle.communicator();
      assertThat(communicator).isSameAs(lifecycle.communicator());
      assertThat(communicator.isClosed()).isFalse();
    }
    assertThat(communicator.isClosed()).isTrue();
  }
}
