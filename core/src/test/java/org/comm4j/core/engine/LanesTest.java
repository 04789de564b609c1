package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.function.Consumer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// When the lane of a closed communicator is another one's: rank 0 has published something in it
/// with which rank 1 is not done.
@Timeout(60)
class LanesTest {
  private static final int[] MEMBERS = {0, 1};

  @Test
  void free_peerOfAnotherProcessHasLeft_hasTheLane() {
    try (var rank = new Rank(InMemorySessions.group(2, LanesTest::elsewhere))) {
      rank.publishAndClose();
      assertThat(rank.isFree()).isFalse();
      rank.sessions.session(1).close();
      assertThat(rank.isFree()).isTrue();
    }
  }

  /// It may be in the middle of a call, and would take another communicator's data for its own.
  @Test
  void free_peerIsGivenUp_hasTheLaneOnceThePeerReadsNoMore() {
    assertReadsNoMore(rank -> rank.sessions.fail(1, new AssertionError("given up")));
  }

  /// Its thread may have left in the middle of a call.
  @Test
  void free_peerOfThisProcessHasLeft_hasTheLaneOnceThePeerReadsNoMore() {
    assertReadsNoMore(rank -> rank.sessions.session(1).close());
  }

  private static void assertReadsNoMore(Consumer<Rank> end) {
    try (var rank = new Rank(InMemorySessions.group(2))) {
      rank.publishAndClose();
      end.accept(rank);
      assertThat(rank.isFree()).isFalse();
      new Lane(new Windows(rank.memory, "test"), 0, MEMBERS, 1, 0, 0).over();
      assertThat(rank.isFree()).isTrue();
    }
  }

  private static HostIdentity elsewhere(int rank) {
    return new HostIdentity("host" + rank, "id" + rank);
  }

  /// Rank 0 of two. The communicator that stays has no lane.
  private static final class Rank implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final TwoWindows memory = new TwoWindows(arena);
    private final InMemorySessions sessions;
    private final Engine engine;
    private final Context world;
    private final Context other;

    Rank(InMemorySessions sessions) {
      this.sessions = sessions;
      this.engine =
          new Engine(
              "test",
              sessions.session(0),
              new OneOfTwo(0),
              memory,
              CommConfig.builder().build(),
              new Selector(Tuning.none()),
              System::nanoTime);
      this.world = engine.addContext(0, "world", MEMBERS);
      this.other = engine.addContext(2, "other", MEMBERS);
    }

    void publishAndClose() {
      engine.lanes().useFirst(world);
      world.lane().publish(0, 1, new CallSignature(1, 1, 0), 0);
      engine.remove(world, new ArrayList<>());
    }

    boolean isFree() {
      return (engine.lanes().free() & 1) != 0;
    }

    @Override
    public void close() {
      engine.remove(other, new ArrayList<>());
      sessions.close();
      arena.close();
    }
  }
}
