package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AbortedExceptionTest {
  /// As of an exception without a message: the others must hear something.
  @ParameterizedTest
  @ValueSource(strings = {"", " \n"})
  void message_blankReason_saysThatNoneWasGiven(String reason) {
    assertThat(new AbortedException(1, reason, null))
        .hasMessage("rank 1 aborted the communicator: it gave no reason");
  }
}
