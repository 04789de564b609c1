package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.tck.Allocations;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class StreamingCopyTest {
  private final StreamingCopy streaming = new StreamingCopy(StreamingLoop.ofThisMachine());

  private interface Copy {
    void copy(
        MemorySegment source,
        long sourceOffset,
        MemorySegment target,
        long targetOffset,
        long bytes);
  }

  static Stream<Integer> sizes() {
    return Stream.concat(
        IntStream.of(64, 65, 127, 128, 4095, 4096, 4097, 65_535, 1 << 20, 3_000_001).boxed(),
        new Random(7).ints(20, 200, 100_000).boxed());
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void stream_anyPlaceAndSize_copiesThoseBytesAlone(int bytes) {
    assumeTrue(
        StreamingLoop.ofThisMachine() != null, "no x86-64, or no memory may be made executable");
    copies(bytes, streaming::stream);
  }

  @Test
  void nsPerMib_someLongCopies_isWhatTheyTake() {
    MemorySegment source = MemorySegment.ofArray(new byte[1 << 16]);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(1 << 16, 64);
      for (int i = 0; i < 20; i++) {
        streaming.copy(source, 0, target, 0, 8192);
        assertThat(streaming.nsPerMib()).as("of short ones").isZero();
      }
      for (int i = 0; i < 8; i++) {
        assertThat(streaming.nsPerMib()).as("of %d", i).isZero();
        streaming.copy(source, 0, target, 0, 1 << 16);
      }
      long start = System.nanoTime();
      for (int i = 0; i < 1000; i++) {
        streaming.copy(source, 0, target, 0, 1 << 16);
      }
      long most = (System.nanoTime() - start) << 4; // all of them at once, for a MiB
      assertThat(streaming.nsPerMib()).isBetween(1L, most);
    }
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void copy_anyPlaceAndSize_copiesThoseBytesAlone(int bytes) {
    copies(bytes, streaming::copy);
  }

  private static void copies(int bytes, Copy copy) {
    Random random = new Random(bytes);
    try (Arena arena = Arena.ofConfined()) {
      byte[] array = new byte[bytes + 100];
      random.nextBytes(array);
      MemorySegment nativeSource = arena.allocateFrom(JAVA_BYTE, array);
      MemorySegment target = arena.allocate(bytes + 300L, 64);
      for (MemorySegment source :
          new MemorySegment[] {MemorySegment.ofArray(array), nativeSource}) {
        for (int round = 0; round < 20; round++) {
          int from = random.nextInt(100);
          int to = round == 0 ? 0 : random.nextInt(200);
          target.fill((byte) 0x55);
          copy.copy(source, from, target, to, bytes);
          byte[] expected = new byte[bytes + 300];
          Arrays.fill(expected, (byte) 0x55);
          System.arraycopy(array, from, expected, to, bytes);
          assertThat(target.mismatch(MemorySegment.ofArray(expected)))
              .as("%d bytes from %d to %d, native source: %s", bytes, from, to, source.isNative())
              .isEqualTo(-1);
        }
      }
    }
  }

  /// A copy of a MiB takes time, and a loop that does nothing none.
  @Test
  void copy_ordinaryOnesTakeTwiceAsLong_streams() {
    var streamed = new AtomicInteger();
    var copy = new StreamingCopy((_, _, _, _, _) -> streamed.incrementAndGet());
    copyLong(copy); // tries how long streaming takes
    int tried = streamed.get();
    for (int i = 0; i < 1000 && streamed.get() == tried; i++) { // a pause ends what was decided
      copyLong(copy);
    }
    assertThat(streamed).hasValueGreaterThan(tried);
  }

  @Test
  void copy_streamingIsNoFaster_doesNotStream() {
    var streamed = new AtomicInteger();
    var isSlow = new AtomicBoolean(true);
    var copy =
        new StreamingCopy((_, _, _, _, _) -> {
          streamed.incrementAndGet();
          long start = System.nanoTime();
          while (isSlow.get() && System.nanoTime() - start < 1_000_000) {
            Thread.onSpinWait();
          }
        });
    copyLong(copy);
    int tried = streamed.get();
    isSlow.set(false); // it has been found to be
    for (int i = 0; i < 50; i++) {
      copyLong(copy);
    }
    assertThat(streamed).hasValue(tried);
  }

  private static void copyLong(StreamingCopy copy) {
    MemorySegment memory = MemorySegment.ofArray(new byte[1 << 20]);
    copy.copy(memory, 0, Arena.ofAuto().allocate(1 << 20), 0, 1 << 20);
  }

  @Test
  void stream_beyondTheEnd_isRefused() {
    assumeTrue(
        StreamingLoop.ofThisMachine() != null, "no x86-64, or no memory may be made executable");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment small = arena.allocate(1000, 64);
      MemorySegment large = arena.allocate(2000, 64);
      assertThatThrownBy(() -> streaming.stream(large, 0, small, 0, 1001))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> streaming.stream(small, 1, large, 0, 1000))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void stream_allocatesNothing() {
    assumeTrue(
        StreamingLoop.ofThisMachine() != null, "no x86-64, or no memory may be made executable");
    MemorySegment source = MemorySegment.ofArray(new float[4096]);
    MemorySegment target = Arena.ofAuto().allocate(32_768);
    Runnable twice =
        () -> {
          streaming.stream(source, 0, target, 8, 16_000);
          streaming.stream(target, 0, target, 16_384, 16_000);
        };
    double least = Double.MAX_VALUE;
    for (int round = 0; round < 200 && least >= 1; round++) { // until it is compiled
      least = Math.min(least, Allocations.perCall(20_000, twice));
    }
    assertThat(least).as("bytes a call").isLessThan(1);
  }
}
