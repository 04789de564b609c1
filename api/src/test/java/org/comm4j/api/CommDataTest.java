package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

@SuppressWarnings("NullAway") // programs without it do pass null
class CommDataTest {
  @Test
  void of_arrays_viewTheirElements() {
    float[] array = {1, 2, 3};
    HostData data = CommData.of(array);

    data.segment().setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 1, 9);

    assertThat(array).containsExactly(1, 9, 3);
    assertThat(List.of(CommData.of(1.0), CommData.of(1L), CommData.of((short) 1)))
        .extracting(CommData::type)
        .containsExactly(DataType.FLOAT64, DataType.INT64, DataType.INT16);
    assertThat(CommData.of((byte) 1).type()).isSameAs(DataType.INT8);
    assertThat(CommData.of(1, 2).toString()).isEqualTo("INT32 × 2");
    assertThat(CommData.of(new int[0]).count()).isZero();
  }

  @Test
  void of_null_namesTheParameter() {
    assertThatNullPointerException()
        .isThrownBy(() -> CommData.of((float[]) null))
        .withMessage("array");
    assertThatNullPointerException()
        .isThrownBy(() -> CommData.of((FloatBuffer) null))
        .withMessage("buffer");
    assertThatNullPointerException()
        .isThrownBy(() -> CommData.of(DataType.INT8, (MemorySegment) null))
        .withMessage("segment");
    assertThatNullPointerException()
        .isThrownBy(() -> CommData.of(null, MemorySegment.NULL))
        .withMessage("type");
    assertThatNullPointerException()
        .isThrownBy(() -> CommData.ofUnsafeDeviceAddress(null, 64, 1, 0))
        .withMessage("type");
  }

  @Test
  void of_buffers_viewPositionToLimit() {
    FloatBuffer buffer = FloatBuffer.wrap(new float[10]).position(2).limit(7);

    assertThat(CommData.of(buffer).count()).isEqualTo(5);
    assertThat(buffer.position()).isEqualTo(2);
    ByteBuffer bytes = ByteBuffer.allocateDirect(12).order(ByteOrder.nativeOrder());
    assertThat(CommData.of(DataType.INT32, bytes).count()).isEqualTo(3);
    assertThat(CommData.of(DataType.UINT8, ByteBuffer.allocate(12)).count()).isEqualTo(12);
  }

  @Test
  void of_wrongBuffer_isRefusedWithRemedy() {
    ByteOrder other =
        ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN
            ? ByteOrder.LITTLE_ENDIAN
            : ByteOrder.BIG_ENDIAN;
    ShortBuffer swapped = ByteBuffer.allocate(8).order(other).asShortBuffer();

    assertRefused(() -> CommData.of(swapped), "byte order: " + other, "order(");
    assertRefused(
        () -> CommData.of(DataType.FLOAT32, ByteBuffer.allocate(8).order(other)),
        "byte order: " + other,
        "order(",
        "MemorySegment");
    assertRefused(
        () -> CommData.of(CharBuffer.allocate(2)), "buffer: a CharBuffer of 2", "MemorySegment");
  }

  @Test
  void of_noWholeNumberOfElements_isRefused() {
    MemorySegment segment = MemorySegment.ofArray(new byte[10]);

    assertRefused(
        () -> CommData.of(DataType.FLOAT32, segment), "10 bytes", "multiple of 4", "FLOAT32");
    assertRefused(
        () ->
            CommData.of(DataType.COMPLEX128, ByteBuffer.allocate(8).order(ByteOrder.nativeOrder())),
        "8 bytes",
        "COMPLEX128");
  }

  @Test
  void slice_inside_isAPartOfTheSameMemory() {
    double[] array = {0, 1, 2, 3};
    HostData part = CommData.of(array).slice(1, 2);

    assertThat(part.count()).isEqualTo(2);
    assertThat(part.segment().getAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, 0)).isEqualTo(1);
    assertThat(part.slice(2, 0).count()).isZero();
    DeviceData device = CommData.ofUnsafeDeviceAddress(DataType.INT16, 100, 10, 0).slice(3, 4);
    assertThat(device).isEqualTo(new DeviceData(DataType.INT16, 106, 4, 0));
  }

  @Test
  void slice_outside_isRefusedOnHostAndDevice() {
    for (CommData data :
        List.of(
            CommData.of(new int[4]), CommData.ofUnsafeDeviceAddress(DataType.INT32, 64, 4, 0))) {
      for (long[] slice :
          new long[][] {
            {-1, 1},
            {0, -1},
            {0, 5},
            {4, 1},
            {5, 0},
            {2, Long.MAX_VALUE},
            {Long.MAX_VALUE, 2},
            {Long.MAX_VALUE, Long.MAX_VALUE},
            {Long.MIN_VALUE, 1},
            {1, Long.MIN_VALUE}
          }) {
        assertRefused(
            () -> data.slice(slice[0], slice[1]),
            slice[1] + " elements from " + slice[0],
            "inside 0..4");
      }
    }
  }

  @Test
  void device_wrong_isRefused() {
    assertRefused(() -> new DeviceData(DataType.INT8, 1, 1, -1), "device: -1", "0 or more");
    assertRefused(() -> new DeviceData(DataType.INT64, 1, -1, 0), "count: -1", "INT64");
    assertRefused(
        () -> new DeviceData(DataType.INT64, 1, Long.MAX_VALUE / 4, 0), "count: ", "INT64");
  }

  @Test
  void device_slice_livesAsLongAsTheWhole() {
    try (Arena arena = Arena.ofShared()) {
      var whole = new DeviceData(DataType.INT64, 64, 8, 0, arena.scope());
      assertThat(whole.slice(2, 3).scope()).isEqualTo(arena.scope());
      assertThat(CommData.ofUnsafeDeviceAddress(DataType.INT64, 64, 8, 0).scope())
          .isEqualTo(Arena.global().scope());
    }
  }

  @Test
  void overlaps_heap_onlyWithinOneArray() {
    HostData whole = CommData.of(new float[8]);

    assertOverlap(whole, whole, true);
    assertOverlap(whole.slice(0, 4), whole.slice(3, 4), true);
    assertOverlap(whole.slice(0, 4), whole.slice(4, 4), false);
    assertOverlap(whole, CommData.of(new float[8]), false);
  }

  @Test
  void overlaps_twoTypesOfOneArray_isSeen() {
    byte[] bytes = new byte[16];

    assertOverlap(
        CommData.of(bytes), CommData.of(DataType.INT32, MemorySegment.ofArray(bytes)), true);
    assertOverlap(
        CommData.of(DataType.INT32, ByteBuffer.wrap(bytes, 0, 8).order(ByteOrder.nativeOrder())),
        CommData.of(bytes).slice(8, 8),
        false);
  }

  @Test
  void overlaps_readOnlyHeapViews_areSeenThrough() {
    byte[] bytes = new byte[16];
    HostData plain = CommData.of(bytes);
    HostData segment = CommData.of(DataType.INT8, MemorySegment.ofArray(bytes).asReadOnly());
    HostData buffer = CommData.of(ByteBuffer.wrap(bytes).asReadOnlyBuffer());
    HostData stranger = CommData.of(ByteBuffer.allocate(16).asReadOnlyBuffer());

    assertOverlap(plain, segment, true);
    assertOverlap(segment, buffer, true);
    assertOverlap(segment.slice(0, 8), plain.slice(8, 8), false);
    assertOverlap(plain, stranger, false);
    assertOverlap(segment, stranger, false);
    assertThat(plain.isSameMemory(segment)).isTrue();
    assertThat(segment.isSameMemory(buffer)).isTrue();
    assertThat(segment.isSameMemory(stranger)).isFalse();
    assertThat(segment.slice(0, 8).isSameMemory(plain.slice(8, 8))).isFalse();
  }

  @Test
  void overlaps_native_byAddress() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(64);
      HostData whole = CommData.of(DataType.INT64, memory);
      HostData readOnly = CommData.of(DataType.INT64, memory.asReadOnly());

      assertOverlap(whole, readOnly, true);
      assertOverlap(whole.slice(0, 4), readOnly.slice(4, 4), false);
      assertOverlap(whole, CommData.of(DataType.INT64, arena.allocate(64)), false);
      assertOverlap(whole, CommData.of(memory.asByteBuffer()), true);
      assertOverlap(whole, CommData.of(new long[8]), false);
      assertThat(whole.isSameMemory(readOnly)).isTrue();
      assertThat(whole.isSameMemory(whole.slice(0, 7))).isFalse();
    }
  }

  @Test
  void overlaps_zeroLength_hasNoByteInCommon() {
    try (Arena arena = Arena.ofConfined()) {
      HostData heap = CommData.of(new int[8]);
      HostData readOnly = CommData.of(DataType.INT32, heap.segment().asReadOnly());
      HostData off = CommData.of(DataType.INT32, arena.allocate(32));
      for (HostData whole : List.of(heap, readOnly, off)) {
        for (int from = 0; from <= 8; from++) {
          assertOverlap(whole, whole.slice(from, 0), false);
        }
        assertOverlap(whole.slice(3, 0), whole.slice(3, 0), false);
        assertThat(whole.slice(3, 0).isSameMemory(whole.slice(3, 0))).isTrue();
      }
    }
  }

  private static void assertOverlap(HostData a, HostData b, boolean expected) {
    assertThat(a.overlaps(b)).isEqualTo(expected);
    assertThat(b.overlaps(a)).isEqualTo(expected);
  }

  private static void assertRefused(ThrowingCallable call, String... parts) {
    assertThatIllegalArgumentException()
        .isThrownBy(call)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts).contains("expected: "));
  }
}
