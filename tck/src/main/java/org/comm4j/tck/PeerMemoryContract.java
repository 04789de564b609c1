package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What the engine expects of a [PeerMemory]: zeroed windows of one size that all ranks see, memory
/// before it is touched, extents that can be closed alone, and wake-ups that are not lost.
@Timeout(value = 3, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public abstract class PeerMemoryContract {
  private static final Duration BOUND = Duration.ofSeconds(60);
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
  private static final int LENT_BYTES = 200_000;

  private final List<Transport> open = new ArrayList<>();

  /// For subclasses.
  protected PeerMemoryContract() {}

  /// One rank's end.
  ///
  /// @param transport closed by the contract; its close ends the memory too
  /// @param memory of the same rank
  public record Peer(Transport transport, PeerMemory memory) {}

  /// Makes a new group with windows of at least 1 MiB; called from one thread.
  ///
  /// @param size how many ranks, at least 2
  /// @return each rank's end, in the order of the ranks
  /// @throws Exception if it can't; the test fails
  protected abstract List<Peer> peers(int size) throws Exception;

  private List<PeerMemory> memories(int size) throws Exception {
    List<Peer> peers = peers(size);
    peers.forEach(peer -> open.add(peer.transport()));
    return peers.stream().map(Peer::memory).toList();
  }

  @AfterEach
  final void closeAll() throws Exception {
    TransportContract.closeAll(open, BOUND);
  }

  @Test
  final void window_everyRank_hasTheSameSizeAndIsAligned() throws Exception {
    var memories = memories(3);
    long bytes = memories.getFirst().windowBytes();
    assertThat(bytes).isGreaterThanOrEqualTo(1 << 20);
    for (PeerMemory memory : memories) {
      assertThat(memory.windowBytes()).isEqualTo(bytes);
      for (int rank = 0; rank < 3; rank++) {
        assertThat(memory.window(rank).byteSize()).isEqualTo(bytes);
        assertThat(memory.window(rank).isNative()).isTrue();
        assertThat(memory.window(rank).address() % 64).isZero();
      }
    }
  }

  @Test
  final void view_closed_leavesTheWindowAndNeverOutlivesTheTransport() throws Exception {
    var memories = memories(2);
    PeerMemory owner = memories.get(0);
    PeerMemory reader = memories.get(1);
    owner.reserve(4096, 8192);
    owner.window(0).set(INT, 8192, 7);
    PeerMemory.Extent view = reader.view(0, 8192, 4096);
    PeerMemory.Extent other = reader.view(0, 4096, 8192);
    MemorySegment seen = view.segment();
    assertThat(seen.byteSize()).isEqualTo(4096);
    assertThat(seen.get(INT, 0)).isEqualTo(7);

    view.close();
    view.close();

    assertThat(other.segment().get(INT, 4096)).isEqualTo(7);
    assertThat(reader.window(0).get(INT, 8192)).isEqualTo(7);
    MemorySegment left = other.segment();
    open.forEach(Transport::close);
    assertThatThrownBy(() -> left.get(INT, 0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  final void reserve_fresh_isZeroed() throws Exception {
    var memories = memories(2);
    long bytes = memories.get(0).windowBytes();
    for (long offset : new long[] {0, 4096 - 8, bytes / 2 + 24, bytes - 8192}) {
      memories.get(0).reserve(offset, 8192);
      var zeros = MemorySegment.ofArray(new byte[8192]);
      for (PeerMemory memory : memories) {
        assertThat(memory.window(0).asSlice(offset, 8192).mismatch(zeros)).isEqualTo(-1);
      }
    }
  }

  @Test
  final void window_ownerWrites_everybodySees() throws Exception {
    var memories = memories(3);
    long last = memories.getFirst().windowBytes() - 8;
    for (int owner = 0; owner < 3; owner++) {
      memories.get(owner).reserve(0, 64);
      memories.get(owner).reserve(last, 8);
      LONG.setRelease(memories.get(owner).window(owner), 8L, 1000L + owner);
      LONG.setRelease(memories.get(owner).window(owner), last, 2000L + owner);
    }
    for (PeerMemory memory : memories) {
      for (int owner = 0; owner < 3; owner++) {
        assertThat((long) LONG.getAcquire(memory.window(owner), 8L)).isEqualTo(1000 + owner);
        assertThat((long) LONG.getAcquire(memory.window(owner), last)).isEqualTo(2000 + owner);
      }
    }
  }

  @Test
  final void lend_array_isReadByPeersUntilItIsTakenBack() throws Exception {
    var memories = memories(3);
    var array = MemorySegment.ofArray(new float[100]);
    for (int loan : new int[] {0, PeerMemory.LOANS - 1}) {
      boolean lends =
          memories.get(1).lend(loan, array, array.byteSize(), 2, PeerMemory.Lender.WAITS);
      for (PeerMemory memory : memories) {
        assertThat(memory.lent(1, loan)).isSameAs(lends ? array : null);
        assertThat(memory.lent(2, loan)).isNull();
      }
      memories.get(1).endLoan(loan);
      for (PeerMemory memory : memories) {
        assertThat(memory.lent(1, loan)).isNull();
      }
    }
  }

  /// In the same way by all peers: as memory of their own, or as what they can copy only.
  @Test
  final void lend_nativeMemory_isReadByPeers() throws Exception {
    var memories = memories(3);
    var content = new byte[LENT_BYTES];
    new Random(1).nextBytes(content);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment lent = arena.allocate(LENT_BYTES, 64).copyFrom(MemorySegment.ofArray(content));
      for (int loan : new int[] {0, PeerMemory.LOANS - 1}) {
        boolean lends = memories.get(1).lend(loan, lent, LENT_BYTES, 2, PeerMemory.Lender.WAITS);
        for (PeerMemory memory : memories) {
          boolean copies = memory.copiesLoans();
          assertThat(memory.lent(1, loan)).isSameAs(lends && !copies ? lent : null);
          if (lends && copies) {
            int bytes = LENT_BYTES - 1001; // none of these is at a page or a line
            for (MemorySegment target :
                List.of(arena.allocate(bytes + 3), MemorySegment.ofArray(new byte[bytes + 3]))) {
              assertThat(memory.copyLent(1, loan, 1000, target, 3, bytes)).isTrue();
              assertThat(target.asSlice(3).mismatch(lent.asSlice(1000, bytes))).isEqualTo(-1);
            }
          }
        }
        memories.get(1).endLoan(loan);
      }
    }
  }

  @Test
  final void reserve_again_keepsWhatIsThere() throws Exception {
    PeerMemory memory = memories(2).getFirst();
    memory.reserve(10_000, 100_000);
    memory.window(0).asSlice(10_000, 100_000).fill((byte) 5);
    memory.reserve(10_000, 100_000);
    memory.reserve(50_000, 10);
    memory.reserve(0, 400_000);
    memory.reserve(20_000, 0);
    for (long offset = 10_000; offset < 110_000; offset++) {
      assertThat(memory.window(0).get(ValueLayout.JAVA_BYTE, offset)).isEqualTo((byte) 5);
    }
    assertThat(memory.window(0).get(ValueLayout.JAVA_BYTE, 9_999)).isZero();
    assertThat(memory.window(0).get(ValueLayout.JAVA_BYTE, 110_000)).isZero();
  }

  @Test
  final void map_extent_isAPartOfTheWindow() throws Exception {
    var memories = memories(2);
    for (long offset : new long[] {0, 4096, 65_536 + 64}) {
      try (var extent = memories.get(1).map(offset, 5000)) {
        assertThat(extent.segment().byteSize()).isEqualTo(5000);
        extent.segment().set(INT, 8, 42);
        assertThat(memories.get(0).window(1).get(INT, offset + 8)).isEqualTo(42);
        memories.get(1).window(1).set(INT, offset + 4996, 43);
        assertThat(extent.segment().get(INT, 4996)).isEqualTo(43);
      }
    }
  }

  @Test
  final void map_closed_endsTheExtentAlone() throws Exception {
    PeerMemory memory = memories(2).getFirst();
    var one = memory.map(0, 4096);
    var two = memory.map(4096, 4096);
    one.segment().set(INT, 0, 1);
    two.segment().set(INT, 0, 2);
    one.close();
    assertThatCode(one::close).doesNotThrowAnyException();
    assertThatThrownBy(() -> one.segment().get(INT, 0)).isInstanceOf(IllegalStateException.class);
    assertThat(two.segment().get(INT, 0)).isEqualTo(2);
    assertThat(memory.window(0).get(INT, 0)).isEqualTo(1);
    try (var again = memory.map(0, 4096)) {
      assertThat(again.segment().get(INT, 0)).isEqualTo(1);
    }
    two.close();
  }

  @Test
  final void close_transport_endsWindowsAndExtents() throws Exception {
    var peers = peers(2);
    peers.forEach(peer -> open.add(peer.transport()));
    PeerMemory memory = peers.getFirst().memory();
    var extent = memory.map(0, 4096);
    var window = memory.window(0);
    var theirs = memory.window(1);
    peers.getFirst().transport().close();
    for (var segment : List.of(extent.segment(), window, theirs)) {
      assertThatThrownBy(() -> segment.get(INT, 0)).isInstanceOf(IllegalStateException.class);
    }
    assertThatCode(extent::close).doesNotThrowAnyException();
    PeerMemory other = peers.getLast().memory();
    other.reserve(0, 64);
    other.window(1).set(INT, 0, 1);
    assertThat(other.window(1).get(INT, 0)).isEqualTo(1);
    assertThat(other.window(0).get(INT, 0)).isZero();
  }

  /// Data stored before a flag is seen after the flag; whoever waits for a flag and sleeps is
  /// woken.
  @Test
  final void wake_flagStored_endsParkAndShowsData() throws Exception {
    var peers = peers(2);
    peers.forEach(peer -> open.add(peer.transport()));
    int rounds = 1_000;
    int longs = 200;
    peers.forEach(peer -> peer.memory().reserve(0, 8 + 8L * longs));
    Bounded.run(
        "taking turns",
        BOUND.multipliedBy(2),
        peers.stream()
            .<Callable<?>>map(peer ->
                () -> {
                  takeTurns(peer, rounds, longs);
                  return null;
                })
            .toList());
  }

  private static void takeTurns(Peer peer, int rounds, int longs) {
    PeerMemory memory = peer.memory();
    int rank = peer.transport().rank();
    int other = 1 - rank;
    long end = System.nanoTime() + BOUND.toNanos();
    var mine = memory.window(rank);
    var theirs = memory.window(other);
    for (long round = 1; round <= rounds; round++) {
      if (rank == 0) {
        publish(memory, mine, other, round, longs);
      }
      long awaited = round;
      while ((long) LONG.getAcquire(theirs, 0L) < round) {
        Bounded.goOn(
            end, () -> "rank %d waits for round %d of %d".formatted(rank, awaited, rounds));
        peer.transport().poll((from, header, payload) -> {}, 1);
        peer.transport().park(BOUND.toNanos());
      }
      for (int i = 0; i < longs; i++) {
        assertThat(theirs.get(ValueLayout.JAVA_LONG, 8 + 8L * i)).isEqualTo(round * i);
      }
      if (rank == 1) {
        publish(memory, mine, other, round, longs);
      }
    }
  }

  private static void publish(
      PeerMemory memory, MemorySegment mine, int other, long round, int longs) {
    for (int i = 0; i < longs; i++) {
      mine.set(ValueLayout.JAVA_LONG, 8 + 8L * i, round * i);
    }
    LONG.setRelease(mine, 0L, round);
    memory.wake(other);
  }
}
