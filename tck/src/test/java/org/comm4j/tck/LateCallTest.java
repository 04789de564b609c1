package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.comm4j.api.AbortedException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Operation;
import org.comm4j.api.spi.BackendCommunicator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A call that reaches the backend after another thread's close has ended it.
@Timeout(60)
class LateCallTest {
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofSeconds(60)).build();

  private final CountDownLatch onItsWay = new CountDownLatch(1);
  private final CountDownLatch isLeft = new CountDownLatch(1);

  /// Holds rank 0's barrier, between its sync and itself, until the close has ended it.
  private final class Holding extends Door {
    Holding(BackendCommunicator inner) {
      super(inner, each -> each);
    }

    @Override
    @Nullable Operation change(Operation operation) {
      if (rank() == 0 && operation instanceof Collective.Barrier) {
        onItsWay.countDown();
        await(isLeft);
      }
      return operation;
    }

    @Override
    public void leaveCall(AbortedException reason) {
      inner.leaveCall(reason);
      isLeft.countDown();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1 << 20})
  void barrier_closedBehindItsSync_endsOnAllRanks(long windowBytes) throws Exception {
    try (LocalGroup group =
        MemoryGroups.open(2, CONFIG, 4096, windowBytes, wire -> wire, Holding::new)) {
      Communicator leaves = group.communicators().get(0);
      Communicator stays = group.communicators().get(1);
      CompletableFuture<Void> late =
          ThreadChecks.async(
              Thread.ofPlatform(),
              () -> assertThatThrownBy(leaves::barrier).isInstanceOf(ClosedException.class));
      CompletableFuture<Void> waiting =
          ThreadChecks.async(
              Thread.ofPlatform(),
              () -> assertThatThrownBy(stays::barrier).isInstanceOf(CommException.class));
      await(onItsWay);
      leaves.close();
      ThreadChecks.join("L4", late);
      ThreadChecks.join("F11", waiting); // it has left, or closed in the middle of the barrier
    }
  }
}
