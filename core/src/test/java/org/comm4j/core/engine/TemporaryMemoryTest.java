package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class TemporaryMemoryTest {
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
    long bytes = (64L << 20) + 4096;
    MemorySegment block = memory.take(bytes);
    assertThat(block.byteSize()).isEqualTo(bytes);
    memory.giveBack(block);
    assertThat(memory.take(bytes).address()).isNotEqualTo(block.address());
  }

  @Test
  void take_nothing_isNothing() {
    assertThat(memory.take(0).byteSize()).isZero();
  }
}
