package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.comm4j.api.CommConfig;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EngineCommunicatorTest {
  /// Else each provider would have to.
  @Test
  void open_badTuning_closesTheTransport(@TempDir Path folder) throws Exception {
    Path tuning = Files.writeString(folder.resolve("tuning"), "allReduce = none-of-ours");
    CommConfig config = CommConfig.builder().tuning(tuning).build();
    var transport = new Counting();
    try (var sessions = InMemorySessions.group(2)) {
      assertThatIllegalArgumentException()
          .isThrownBy(
              () -> EngineCommunicator.open("test", sessions.session(0), transport, null, config))
          .withMessageContaining(tuning.toString());
    }
    assertThat(transport.closes).isEqualTo(1);
  }

  /// As where a peer is to be told that a region is closed, and there is no memory for that.
  @Test
  void close_memoryCanNotBeGivenBack_closesTheTransport() throws Exception {
    var transport = new Counting();
    try (var sessions = InMemorySessions.group(2)) {
      var communicator =
          (EngineCommunicator)
              EngineCommunicator.open(
                  "test", sessions.session(0), transport, null, CommConfig.builder().build());
      Engine engine = communicator.engine();
      try (var _ = engine.lock()) {
        engine.giveBack(() -> {
          throw new TransportFailedException("no space", null);
        });
      }
      communicator.close();
    }
    assertThat(transport.closes).isEqualTo(1);
  }

  private static final class Counting extends OneOfTwo {
    private int closes;

    Counting() {
      super(0);
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      return false;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      return 0;
    }

    @Override
    public void close() {
      closes++;
    }
  }
}
