package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LibcudaTest {
  @ParameterizedTest
  @CsvSource({", 32", "1, 1", "16, 16", "0, 1", "-3, 1", "33, 32", "'', 8", "many, 8"})
  void queues_areWhatTheDriverTakesTheVariableFor(@Nullable String said, int queues) {
    assertThat(Libcuda.queues(said, 32)).isEqualTo(queues);
  }
}
