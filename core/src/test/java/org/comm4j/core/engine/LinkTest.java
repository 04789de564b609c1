package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;

class LinkTest {
  private static final MemorySegment PAYLOAD = MemorySegment.ofArray(new byte[8]);

  private final long[] header = new long[Transport.HEADER_LONGS];
  private final List<Link> backlog = new ArrayList<>();
  private boolean isFull;
  private boolean isBroken;

  private final Link link =
      new Link(
          new OneOfTwo(0) {
            @Override
            public boolean offer(int peer, long[] header, MemorySegment payload) {
              if (isBroken) {
                throw new TransportFailedException("no space", null);
              }
              return !isFull;
            }

            @Override
            public int poll(PayloadHandler handler, int limit) {
              return 0;
            }
          },
          1,
          1 << 20,
          backlog);

  /// Where who has called goes on, since it was of no importance.
  @Test
  void control_canNotBeSent_keepsNothingBack() {
    isBroken = true;
    assertThatThrownBy(() -> link.control(header, 1, 2, 3, 4, 5))
        .isInstanceOf(TransportFailedException.class);
    isBroken = false;
    assertThat(backlog).isEmpty();
    assertThat(link.offer(header, PAYLOAD)).isTrue();
  }

  @Test
  void control_noRoom_goesBeforePayloadsLater() {
    isFull = true;
    link.control(header, 1, 2, 3, 4, 5);
    assertThat(backlog).containsExactly(link);
    isFull = false;
    assertThat(link.offer(header, PAYLOAD)).isFalse();
    assertThat(link.flush(header)).isTrue();
    assertThat(link.offer(header, PAYLOAD)).isTrue();
  }
}
