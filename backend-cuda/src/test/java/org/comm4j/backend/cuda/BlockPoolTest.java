package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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

  /// The driver may wait for a kernel that runs for long.
  @Test
  void take_andFreeUnused_keepNobodyOutWhileTheDriverIsAsked() {
    var pools = new ArrayList<BlockPool<Integer>>();
    List<Integer> freed = new ArrayList<>();
    var pool =
        new BlockPool<Integer>(
            _ -> asked(pools, 7),
            block -> freed.add(asked(pools, block)),
            _ -> {
              throw new AssertionError("the driver has enough");
            });
    pools.add(pool);

    pool.giveBack(512, pool.take(512));
    assertThat(pool.freeUnused()).isTrue();
    assertThat(freed).containsExactly(7);
  }

  private static int asked(List<BlockPool<Integer>> pools, int block) {
    return CompletableFuture.supplyAsync(() -> pools.getFirst().isTaken(block) ? -1 : block)
        .orTimeout(10, TimeUnit.SECONDS)
        .join();
  }

  @Test
  void discard_block_isFreedWithTheRestAndNotTakenAgain() {
    var made = new AtomicInteger();
    List<Integer> freed = new ArrayList<>();
    var pool = new BlockPool<Integer>(_ -> made.incrementAndGet(), freed::add, _ -> false);

    int block = pool.take(512);
    pool.discard(block);
    assertThat(freed).isEmpty();
    assertThat(pool.isTaken(block)).isFalse();
    assertThat(pool.take(512)).isNotEqualTo(block);
    assertThat(pool.freeUnused()).isTrue();
    assertThat(freed).containsExactly(block);
    assertThat(pool.freeUnused()).isFalse();
  }
}
