package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.comm4j.api.CommConfig;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// That no nap has to end by itself: here none does. Two threads of a rank wait; the first one
/// sleeps in the transport, and the other one naps.
@Timeout(60)
class NapTest {
  private static final long NEVER_NS = TimeUnit.HOURS.toNanos(1);
  private static final long PATIENCE_S = 20;

  private final InMemorySessions sessions = InMemorySessions.group(2);
  private final Sleepy transport = new Sleepy();
  private final CountDownLatch naps = new CountDownLatch(1);
  private final Engine engine =
      new Engine(
          "test",
          sessions.session(0),
          transport,
          null,
          CommConfig.builder().build(),
          new Selector(Tuning.none()),
          System::nanoTime,
          _ -> {
            naps.countDown();
            return NEVER_NS;
          });
  private final Context context = engine.addContext(0, "world", new int[] {0, 1});

  @AfterEach
  void close() {
    engine.remove(context, new ArrayList<>());
    sessions.close();
  }

  @Test
  void await_sleeperEndsItsCall_endsTheNap() throws Exception {
    assertEndsBesideASleeper(_ -> new Flagged(context, null));
  }

  @Test
  void await_sleeperLeaves_sleepsInItsPlace() throws Exception {
    Waiter sleeper = sleeper();
    Waiter napper = napper(_ -> new Flagged(context, null));

    sleeper.call().raise();
    sleeper.hasReturned();

    napper.call().raise();
    napper.hasReturned();
  }

  /// Its thread alone can see that something has come for it.
  @Test
  void await_callIsBoundAndSleeperAwakes_looks() throws Exception {
    assertEndsBesideASleeper(thread -> new Flagged(context, thread));
  }

  private void assertEndsBesideASleeper(Function<Thread, Flagged> call) throws Exception {
    Waiter sleeper = sleeper();
    Waiter napper = napper(call);

    napper.call().raise();

    napper.hasReturned();
    sleeper.call().raise();
    sleeper.hasReturned();
  }

  private Waiter sleeper() throws Exception {
    Waiter sleeper = start(_ -> new Flagged(context, null));
    assertThat(transport.isParked.await(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
    return sleeper;
  }

  private Waiter napper(Function<Thread, Flagged> call) throws Exception {
    Waiter napper = start(call);
    assertThat(naps.await(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
    return napper;
  }

  private Waiter start(Function<Thread, Flagged> call) throws Exception {
    var started = new CompletableFuture<Flagged>();
    var returned = new CompletableFuture<Boolean>();
    Thread.ofPlatform()
        .daemon()
        .start(() -> {
          Flagged mine = call.apply(Thread.currentThread());
          try (var _ = engine.lock()) {
            context.start(mine, false);
          }
          started.complete(mine);
          returned.complete(engine.waiting().await(mine, Long.MAX_VALUE));
        });
    return new Waiter(started.get(PATIENCE_S, TimeUnit.SECONDS), returned);
  }

  private record Waiter(Flagged call, CompletableFuture<Boolean> returned) {
    void hasReturned() throws Exception {
      assertThat(returned.get(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
    }
  }

  /// Ends once the test says so and somebody who may has looked.
  private final class Flagged extends Call {
    private volatile boolean isUp;

    Flagged(Context context, @Nullable Thread boundTo) {
      super(context, boundTo);
    }

    /// As a peer that has written into a window: who sleeps in the transport is woken.
    void raise() {
      isUp = true;
      transport.wakeUp();
    }

    @Override
    boolean advance() {
      if (isUp) {
        complete(null);
      }
      return isUp;
    }

    @Override
    void missing(BitSet ranks) {}

    @Override
    boolean touches(MemorySegment memory) {
      return false;
    }

    @Override
    void release() {}

    @Override
    String describe() {
      return "a test's call";
    }
  }

  /// Its park ends when it is woken, and not before.
  private static final class Sleepy extends OneOfTwo {
    private final CountDownLatch isParked = new CountDownLatch(1);
    private final Semaphore wakeUps = new Semaphore(0);

    Sleepy() {
      super(0);
    }

    @Override
    public void park(long nanos) {
      isParked.countDown();
      try {
        var _ = wakeUps.tryAcquire(PATIENCE_S, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void wakeUp() {
      wakeUps.release();
    }
  }
}
