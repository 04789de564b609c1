package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FrameTest {
  private static final long CONTEXT = Frame.LAST_CONTEXT;

  /// Who counts the messages of a collective finds what came by it.
  @ParameterizedTest
  @ValueSource(
      ints = {
        0,
        1,
        (1 << 20) - 1,
        1 << 20,
        (1 << 20) + 1,
        Integer.MAX_VALUE,
        Integer.MIN_VALUE,
        -1
      })
  void aux_ofAnyCount_isWhatTheHeaderSays(int count) {
    long word = Frame.word(Frame.RETURN, Frame.CREDITED, count, CONTEXT);

    assertThat(Frame.aux(word)).isEqualTo(Frame.aux(count)).isBetween(0, (1 << 20) - 1);
    assertThat(Frame.kind(word)).isEqualTo(Frame.RETURN);
    assertThat(Frame.context(word)).isEqualTo(CONTEXT);
    assertThat(Frame.isCredited(word)).isTrue();
  }

  /// Else its receiver would give back credit that nobody has spent.
  @Test
  void isCredited_requestOfAConfirmedMessage_isFalse() {
    long word = Frame.word(Frame.REQUEST_MESSAGE, Frame.CONFIRMED, 3, CONTEXT);

    assertThat(Frame.isConfirmed(word)).isTrue();
    assertThat(Frame.isCredited(word)).isFalse();
  }
}
