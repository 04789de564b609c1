package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class FunctionsTest {
  private final AtomicInteger inside = new AtomicInteger();
  private int calls; // guarded by what is tested

  /// As a function of the library: returns a code.
  int call(long by, String other) {
    int at = inside.incrementAndGet();
    Thread.yield();
    calls += (int) by;
    inside.decrementAndGet();
    if (other.isEmpty()) {
      throw new IllegalStateException("thrown");
    }
    return at;
  }

  private MethodHandle oneAtATime() throws ReflectiveOperationException {
    return Functions.oneAtATime(
        MethodHandles.lookup()
            .bind(this, "call", MethodType.methodType(int.class, long.class, String.class)));
  }

  @Test
  void oneAtATime_manyThreads_isThat() throws Exception {
    MethodHandle function = oneAtATime();
    List<Future<Integer>> most = new ArrayList<>();
    try (var threads = Executors.newFixedThreadPool(4)) {
      for (int thread = 0; thread < 4; thread++) {
        most.add(
            threads.submit(() -> {
              int found = 0;
              for (int i = 0; i < 5_000; i++) {
                found = Math.max(found, invoke(function, "text"));
              }
              return found;
            }));
      }
    }

    for (Future<Integer> each : most) {
      assertThat(each.get()).isEqualTo(1);
    }
    assertThat(calls).isEqualTo(4 * 5_000 * 3);
  }

  @Test
  void oneAtATime_throws_letsTheNextOneIn() throws Exception {
    MethodHandle function = oneAtATime();

    assertThatThrownBy(() -> invoke(function, ""))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("thrown");
    try (var other = Executors.newSingleThreadExecutor()) {
      assertThat(other.submit(() -> invoke(function, "text")).get()).isEqualTo(1);
    }
  }

  private static int invoke(MethodHandle function, String text) {
    try {
      return (int) function.invokeExact(3L, text);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }
}
