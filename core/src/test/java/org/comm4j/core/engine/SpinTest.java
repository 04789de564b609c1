package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A look at a network takes microseconds, so none is made for a call that has all it needs.
@Timeout(60)
class SpinTest {
  @Test
  void run_lastMessageHasCome_looksNoMore() {
    for (int looks = 1; looks <= 20; looks++) {
      try (var sessions = InMemorySessions.group(2)) {
        var transport = new Echo(looks);
        var comm =
            EngineCommunicator.open(
                "test", sessions.session(0), transport, null, CommConfig.builder().build());
        int[] sum = new int[1];
        comm.run(new Collective.AllReduce(CommData.of(21), CommData.of(sum), ReduceOp.SUM));
        assertThat(sum[0]).isEqualTo(42);
        assertThat(transport.looksAfterwards).as("after the message at look %d", looks).isZero();
        comm.close();
      }
    }
  }

  /// Rank 0 of two; what it sends comes back as rank 1's, at a certain look.
  private static final class Echo extends OneOfTwo {
    private int looksBefore;
    private int looksAfterwards;
    private long @Nullable [] header;
    private @Nullable MemorySegment payload;

    Echo(int looks) {
      super(0);
      looksBefore = looks;
    }

    @Override
    public boolean offer(int peer, long[] sentHeader, MemorySegment sentPayload) {
      header = sentHeader.clone();
      payload = copy(sentPayload);
      return true;
    }

    private static MemorySegment copy(MemorySegment segment) {
      return MemorySegment.ofArray(segment.toArray(ValueLayout.JAVA_BYTE));
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      if (header == null || payload == null) {
        return 0;
      }
      looksBefore--;
      if (looksBefore < 0) {
        looksAfterwards++;
      }
      if (looksBefore != 0) {
        return 0;
      }
      handler.onPayload(1, header, payload);
      return 1;
    }
  }
}
