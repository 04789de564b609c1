package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// Streams that are numbers, as they are made, of a device with 4 queues.
class StreamPoolTest {
  private static final int QUEUES = 4;

  private final AtomicInteger numbers = new AtomicInteger();
  private final StreamPool<Integer> pool = new StreamPool<>(numbers::getAndIncrement, QUEUES);

  private List<Integer> take(int streams) {
    return Stream.generate(pool::take).limit(streams).toList();
  }

  @Test
  void take_someAreIdle_isInTheQueueThatFewestAreIn() {
    take(6); // so two are in queue 0 and in queue 1
    List.of(0, 1, 5, 3).forEach(pool::giveBack);

    assertThat(pool.take()).as("in a queue that has none in use").isIn(1, 3, 5);
    assertThat(pool.take()).as("the same").isIn(1, 3, 5);
    assertThat(take(2)).as("in one that has one").contains(0);
    assertThat(pool.take()).as("as none is idle").isEqualTo(6);
    assertThat(pool.made()).isEqualTo(7);
  }

  /// As they come from [StreamPool#giveBack], in any order.
  @Test
  void take_asManyAsQueues_areInQueuesOfTheirOwn() {
    List<Integer> all = new ArrayList<>(take(11));
    for (int first = 0; first < all.size(); first++) {
      all.add(all.removeFirst());
      all.forEach(pool::giveBack);
      all = new ArrayList<>(take(QUEUES));
      assertThat(all.stream().map(each -> each % QUEUES)).doesNotHaveDuplicates();
      all.addAll(take(7));
      assertThat(pool.made()).isEqualTo(11);
    }
  }

  @Test
  void take_oneIsGone_countsItNoMore() {
    take(6);
    pool.remove(4);
    pool.remove(0);
    List.of(1, 2).forEach(pool::giveBack);

    assertThat(pool.take()).isEqualTo(2);
    assertThat(pool.drain()).containsExactly(1);
    assertThat(pool.take()).as("as the driver goes on").isEqualTo(6);
  }

  /// Who counts them has a lock that the driver may be waiting for.
  @Test
  void made_whileOneIsMade_doesNotWait() {
    var pools = new ArrayList<StreamPool<Integer>>();
    pools.add(
        new StreamPool<>(
            () ->
                CompletableFuture.supplyAsync(() -> pools.getFirst().made())
                    .orTimeout(10, TimeUnit.SECONDS)
                    .join(),
            QUEUES));

    assertThat(pools.getFirst().take()).isZero();
  }
}
