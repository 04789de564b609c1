package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicReference;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.spi.BackendCommunicator;
import org.junit.jupiter.api.Test;

/// Ranks 2 and 5 of a communicator are a host's ranks 0 and 1.
class HostCallsTest {
  private static final int[] HERE = {2, 5};

  private final AtomicReference<CommException> broken = new AtomicReference<>();
  private final HostCalls<BackendCommunicator> calls =
      new HostCalls<>(
          parent(),
          new int[] {0, 1, 2, 3, 4, 5},
          _ -> {
            throw new AssertionError("nobody calls");
          },
          rank -> HERE[rank]);

  @Test
  void checkSame_anotherRegion_namesTheCommunicatorsRanks() {
    long[][] all = {{DataType.INT32.id(), 7}, {DataType.INT8.id(), 7}};

    assertThatExceptionOfType(MismatchedCallException.class)
        .isThrownBy(() -> calls.checkSame(all, DataType.INT32, 7))
        .withMessageContaining("rank 5 creates a region of INT8 × 7 but rank 2, of the same host,")
        .isSameAs(broken.get());
  }

  @Test
  void checkSameFence_anotherOne_namesTheCommunicatorsRanks() {
    long[][] all = {{3}, {0}};

    assertThatExceptionOfType(MismatchedCallException.class)
        .isThrownBy(() -> calls.checkSameFence(all, 0))
        .withMessageContaining("rank 5 calls barrier() but rank 2, of the same host, fence()")
        .isSameAs(broken.get());
  }

  @Test
  void check_allTheSame_breaksNothing() {
    long[][] all = {{DataType.INT32.id(), 7}, {DataType.INT32.id(), 7}};

    calls.checkSame(all, DataType.INT32, 7);
    calls.checkSameFence(all, 0);

    assertThat(broken).hasNullValue();
  }

  /// Rank 2, which can be broken.
  private BackendCommunicator parent() {
    return (BackendCommunicator)
        Proxy.newProxyInstance(
            BackendCommunicator.class.getClassLoader(),
            new Class<?>[] {BackendCommunicator.class},
            (_, method, arguments) ->
                switch (method.getName()) {
                  case "rank" -> 2;
                  case "failure" -> broken.get();
                  case "abort" -> {
                    broken.set((CommException) arguments[0]);
                    yield null;
                  }
                  default -> throw new AssertionError(method);
                });
  }
}
