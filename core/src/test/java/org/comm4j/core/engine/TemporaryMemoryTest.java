package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class TemporaryMemoryTest {
  private static final long MOST_BYTES = 64L << 20;

  private final TemporaryMemory memory = new TemporaryMemory();

  @Test
  void take_again_isTheSameBlock() {
    MemorySegment block = memory.take(5000);
    assertThat(block.byteSize()).isEqualTo(8192);
    memory.giveBack(block);
    assertThat(memory.take(8000)).isEqualTo(block);
  }

  /// Nobody will use it again, and direct memory is limited.
  @Test
  void take_moreThanIsKept_isNoMoreThanAsked() {
    long bytes = MOST_BYTES + 4096;
    MemorySegment block = memory.take(bytes);
    assertThat(block.byteSize()).isEqualTo(bytes);
  }

  /// A collection that would free it may never come.
  @Test
  void giveBack_moreThanIsKept_isFreed() {
    MemorySegment block = memory.take(MOST_BYTES + 4096);
    memory.giveBack(block);
    assertThat(block.scope().isAlive()).isFalse();
  }

  @Test
  void giveBack_moreTogetherThanIsKept_isFreedButForThat() {
    MemorySegment first = memory.take(MOST_BYTES / 2);
    MemorySegment second = memory.take(MOST_BYTES / 2);
    MemorySegment third = memory.take(MOST_BYTES / 2);
    memory.giveBack(third);
    memory.giveBack(second);
    memory.giveBack(first);
    assertThat(third.scope().isAlive()).isFalse();
    assertThat(memory.take(MOST_BYTES / 2)).isEqualTo(first);
    assertThat(memory.take(MOST_BYTES / 2)).isEqualTo(second);
  }

  @Test
  void giveBack_littleAfterAllThatIsKept_isKept() {
    memory.giveBack(memory.take(MOST_BYTES));
    MemorySegment block = memory.take(5000);
    memory.giveBack(block);
    assertThat(memory.take(5000)).isEqualTo(block);
  }

  @Test
  void giveBack_littleDuringAllThatIsKept_isKept() {
    MemorySegment large = memory.take(MOST_BYTES);
    MemorySegment block = memory.take(5000);
    memory.giveBack(block);
    assertThat(memory.take(5000)).isEqualTo(block);
    memory.giveBack(large);
    assertThat(memory.take(MOST_BYTES)).isEqualTo(large);
  }

  /// What is not used any more makes room.
  @Test
  void giveBack_anotherSizeAgainAndAgain_isKept() {
    memory.giveBack(memory.take(MOST_BYTES));
    for (int i = 0; i < 2; i++) {
      memory.giveBack(memory.take(MOST_BYTES / 2));
    }
    MemorySegment used = memory.take(MOST_BYTES / 2);
    memory.giveBack(used);
    assertThat(memory.take(MOST_BYTES / 2)).isEqualTo(used);
  }

  /// The larger one, which costs more.
  @Test
  void giveBack_twoSizesInTurn_oneIsKept() {
    MemorySegment large = memory.take(MOST_BYTES);
    for (int i = 0; i < 3; i++) {
      memory.giveBack(large);
      memory.giveBack(memory.take(MOST_BYTES / 2));
      assertThat(memory.take(MOST_BYTES)).isEqualTo(large);
    }
  }

  @Test
  void take_nothing_isNothing() {
    assertThat(memory.take(0).byteSize()).isZero();
  }
}
