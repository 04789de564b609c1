package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.comm4j.core.transport.PeerMemory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LaneTest {
  private static final int[] MEMBERS = {0, 1};
  private static final long BASE = 7;
  private static final long OWNER = 9;

  @Test
  void contradiction_otherCallOfThatNumber_isFound() {
    try (Arena arena = Arena.ofShared()) {
      PeerMemory memory = new TwoWindows(arena);
      lane(memory, 0).publish(0, 3, call(1), 0);
      Lane here = lane(memory, 1);
      assertThat(here.contradiction(0, 3, call(2))).contains("collective #3");
      assertThat(here.contradiction(0, 3, call(1))).isNull();
      assertThat(here.contradiction(0, 4, call(2))).isNull();
    }
  }

  @Test
  void contradiction_laneOfAnotherCommunicatorNow_isNone() {
    try (Arena arena = Arena.ofShared()) {
      PeerMemory memory = new TwoWindows(arena);
      Lane here = lane(memory, 1);
      Lane next = new Lane(new Windows(memory, "test"), 0, MEMBERS, 0, BASE + 1, OWNER + 1);
      next.publish(0, 3, call(1), 0);
      assertThat(here.contradiction(0, 3, call(2))).isNull();
      assertThat(here.agrees(0, 0)).isFalse();
    }
  }

  @Test
  void lend_everyLane_hasALoanForEachOfItsAreas() {
    assertThat(PeerMemory.LOANS).isGreaterThanOrEqualTo(WindowLayout.AREAS * WindowLayout.LANES);
  }

  /// Small differences must not make up for each other, neither in one call nor over two.
  @Test
  void agrees_callsThatDifferTwice_isFalse() {
    for (long count = 1; count < 64; count++) {
      var here = new CallSignature(5, 100, 7);
      assertThat(agree(List.of(here), List.of(new CallSignature(6, 100 - count, 7)))).isFalse();
      assertThat(agree(List.of(here), List.of(new CallSignature(5, 101, 7 - count)))).isFalse();
      assertThat(
              agree(
                  List.of(here, here),
                  List.of(new CallSignature(5, 100, 8), new CallSignature(5, 100, 7 - count))))
          .isFalse();
      for (long more : new long[] {31, 31 * 31, 31 * 31 * 31}) {
        assertThat(
                agree(
                    List.of(here, here),
                    List.of(
                        new CallSignature(5, 100, 7 + count),
                        new CallSignature(5, 100, 7 - count * more))))
            .isFalse();
      }
    }
  }

  @Test
  void agrees_sameCalls_isTrue() {
    assertThat(agree(List.of(call(1), call(2)), List.of(call(1), call(2)))).isTrue();
    assertThat(agree(List.of(call(1), call(2)), List.of(call(2), call(1)))).isFalse();
  }

  private static boolean agree(List<CallSignature> here, List<CallSignature> there) {
    try (Arena arena = Arena.ofShared()) {
      PeerMemory memory = new TwoWindows(arena);
      Lane mine = lane(memory, 0);
      here.forEach(call -> mine.begin(call.digest()));
      Lane peers = lane(memory, 1);
      there.forEach(call -> peers.begin(call.digest()));
      peers.publish(0, 3, there.getLast(), 0);
      return mine.agrees(1, 0);
    }
  }

  /// Lines are looked at while their owner writes them: half an old call and half a new one must
  /// not be taken for a third. Neither ends before the other has done enough.
  @Test
  void contradiction_whileThePeerPublishes_isNone() throws InterruptedException {
    long calls = 2_000_000;
    long wantedLooks = 200_000;
    try (Arena arena = Arena.ofShared()) {
      PeerMemory memory = new TwoWindows(arena);
      Lane there = lane(memory, 0);
      Lane here = lane(memory, 1);
      AtomicLong now = new AtomicLong();
      AtomicLong looks = new AtomicLong();
      Thread publishing =
          Thread.ofPlatform()
              .start(() -> {
                for (long i = 0; i < calls || looks.getAcquire() < wantedLooks; i++) {
                  now.setRelease(i);
                  there.publish(i, i, call(i), 0);
                }
              });
      String found = null;
      while (publishing.isAlive()) {
        long sequence = now.getAcquire();
        String text = here.contradiction(0, sequence, call(sequence));
        found = text == null ? found : text;
        looks.setRelease(looks.getPlain() + 1);
      }
      publishing.join();
      assertThat(found).isNull();
    }
  }

  /// A call in which everything depends on its number.
  private static CallSignature call(long number) {
    return new CallSignature(number & 7, number, -number);
  }

  private static Lane lane(PeerMemory memory, int rank) {
    return new Lane(new Windows(memory, "test"), 0, MEMBERS, rank, BASE, OWNER);
  }
}
