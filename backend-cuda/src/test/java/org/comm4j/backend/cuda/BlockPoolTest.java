package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.BackendException;
import org.junit.jupiter.api.Test;

class BlockPoolTest {
  private static final int OUT_OF_MEMORY = 2;

  /// Whoever is asked may have to wait for somebody who gives a block back.
  @Test
  void take_driverHasNoMore_asksWithoutKeepingOthersOut() {
    List<Integer> freed = new ArrayList<>();
    var pools = new ArrayList<BlockPool<Integer>>();
    var pool =
        new BlockPool<Integer>(
            _ -> {
              if (freed.isEmpty()) {
                throw new BackendException(OUT_OF_MEMORY, "out of memory");
              }
              return 8;
            },
            freed::add,
            freeing -> {
              CompletableFuture.runAsync(() -> pools.getFirst().giveBack(512, 7))
                  .orTimeout(10, TimeUnit.SECONDS)
                  .join();
              freeing.run();
              return true;
            });
    pools.add(pool);

    assertThat(pool.take(4096)).isEqualTo(8);
    assertThat(freed).containsExactly(7);
  }
}
