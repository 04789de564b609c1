package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WorkerTest {
  private static final long LONG_NS = TimeUnit.SECONDS.toNanos(30);

  /// It is counted until it is out, which may be later than its call is over.
  @Test
  void areOutWithin_oneIsOnItsWayOut_waitsForIt() throws Exception {
    var worker = new Worker("test");
    var isIn = new CountDownLatch(1);
    var mayEnd = new CompletableFuture<Integer>();
    var ending =
        CompletableFuture.supplyAsync(() ->
            worker.run(
                () -> {
                  isIn.countDown();
                  return mayEnd.join();
                },
                () -> {}));
    try {
      assertThat(isIn.await(LONG_NS, TimeUnit.NANOSECONDS)).isTrue();
      assertThat(Worker.areOutWithin(0)).isFalse();
      var areOut = CompletableFuture.supplyAsync(() -> Worker.areOutWithin(LONG_NS));
      mayEnd.complete(7);
      assertThat(ending.join()).isEqualTo(7);
      assertThat(areOut.join()).isTrue();
    } finally {
      mayEnd.complete(0);
      worker.close();
    }
  }
}
