package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.PeerMemory;
import org.junit.jupiter.api.Test;

class WindowsTest {
  private static final long MIB = 1 << 20;
  private static final long PAGE = WindowLayout.PAGE_BYTES;

  @Test
  void take_largerThanWhatWasGivenBack_growsIntoWhatFollows() {
    try (Arena arena = Arena.ofConfined()) {
      var windows = new Windows(new Memory(arena), "test");
      long room = roomOf(windows);
      Windows.Part first = windows.take(room / 2);
      first.segment().fill((byte) 1);
      windows.giveBack(first);

      Windows.Part all = windows.take(room);

      assertThat(all.start()).isEqualTo(first.start());
      assertThat(all.segment().byteSize()).isEqualTo(room);
      assertThat(all.segment().mismatch(Arena.ofAuto().allocate(room)))
          .as("not zero")
          .isEqualTo(-1);
    }
  }

  @Test
  void take_piecesGivenBack_areOnePieceAgain() {
    try (Arena arena = Arena.ofConfined()) {
      var windows = new Windows(new Memory(arena), "test");
      long room = roomOf(windows);
      Windows.Part[] parts = new Windows.Part[3];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = windows.take(room / 4 / PAGE * PAGE);
      }
      for (int i : new int[] {2, 0, 1}) {
        windows.giveBack(parts[i]);
      }
      assertThat(windows.take(room).start()).isEqualTo(parts[0].start());
    }
  }

  @Test
  void take_moreThanThereAreAddresses_isRefused() {
    try (Arena arena = Arena.ofConfined()) {
      var windows = new Windows(new Memory(arena), "test");
      windows.giveBack(windows.take(PAGE));

      assertThatThrownBy(() -> windows.take(Long.MAX_VALUE))
          .isInstanceOf(TransportFailedException.class);
      assertThat(windows.take(PAGE).start()).isNotNegative();
    }
  }

  @Test
  void take_tooLarge_saysWhatIsFree() {
    try (Arena arena = Arena.ofConfined()) {
      var windows = new Windows(new Memory(arena), "test");
      long room = roomOf(windows);
      Windows.Part first = windows.take(2 * PAGE);
      Windows.Part second = windows.take(PAGE);
      windows.giveBack(first);

      assertThatThrownBy(() -> windows.take(room))
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining(room + " bytes do not fit in this rank's window of backend 'test'")
          .hasMessageContaining(
              "of its %d bytes %d are free, at most %d in one piece"
                  .formatted(Memory.BYTES, room - PAGE, room - 3 * PAGE));

      windows.giveBack(second);
      assertThat(windows.take(room).start()).isEqualTo(first.start());
    }
  }

  private static long roomOf(Windows windows) {
    return Memory.BYTES - windows.layout().buffersStart();
  }

  /// A window that nobody else reads.
  private static final class Memory implements PeerMemory {
    private static final long BYTES = 4 * MIB;
    private final MemorySegment window;

    Memory(Arena arena) {
      window = arena.allocate(BYTES, PAGE);
    }

    @Override
    public long windowBytes() {
      return BYTES;
    }

    @Override
    public MemorySegment window(int rank) {
      return window;
    }

    @Override
    public void reserve(long offset, long bytes) {
      assertThat(offset + bytes).isLessThanOrEqualTo(BYTES);
    }

    @Override
    public Extent map(long offset, long bytes) {
      return Extent.lasting(window.asSlice(offset, bytes));
    }

    @Override
    public void wake(int rank) {}
  }
}
