package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WindowTest {
  @Test
  void areas_lieOneBehindTheOther_aligned() {
    var window = new Window(5, 1000, 4096);

    assertThat(window.lines() % 16).isZero();
    assertThat(window.scratch()).isEqualTo(window.lines() + 2 * 5 * 2 * (8 + 1000));
    assertThat(window.scratch() % 16).isZero();
    assertThat(window.bytes()).isEqualTo(window.scratch() + 2 * 4096);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 8, 16, 'ranks: 0 (expected: 1..16)'",
    "17, 8, 16, 'ranks: 17 (expected: 1..16)'",
    "2, 4, 16, 'lineBytes: 4 (expected: a multiple of 8)'",
    "2, -8, 16, 'lineBytes: -8 (expected: a multiple of 8)'",
    "2, 8, 24, 'scratchBytes: 24 (expected: a multiple of 16)'"
  })
  void window_wrongSize_isRefused(int ranks, long lineBytes, long scratchBytes, String message) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Window(ranks, lineBytes, scratchBytes))
        .withMessage(message);
  }

  /// As `part` in `kernels.cuh` divides.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 8})
  void partBytes_holdsTheLargestPart_andNotMuchMore(int elementBytes) {
    for (int ranks = 1; ranks <= Window.MAX_RANKS; ranks++) {
      for (long count = 0; count < 400; count++) {
        long units = count / (16 / elementBytes);
        long largest =
            LongStream.range(0, ranks)
                .map(partOf(count, units, ranks, elementBytes))
                .max()
                .orElse(0);

        assertThat(Window.partBytes(count * elementBytes, ranks))
            .isBetween(largest, Math.min(count * elementBytes, largest + 48));
      }
    }
  }

  private static java.util.function.LongUnaryOperator partOf(
      long count, long units, int ranks, int elementBytes) {
    return rank -> {
      long from = units * rank / ranks * 16;
      long to = rank + 1 == ranks ? count * elementBytes : units * (rank + 1) / ranks * 16;
      return to - from;
    };
  }
}
