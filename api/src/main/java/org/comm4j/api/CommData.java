package org.comm4j.api;

import java.lang.foreign.MemorySegment;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Objects;

/// A typed, bounded view of memory that somebody else owns: what collectives read and write.
///
/// A view never copies and never frees. The owner keeps the memory alive and, while an operation
/// that uses it is in flight, neither writes an input nor touches an output. Where an operation has
/// failed, a library underneath may still use native memory: `docs/tuning.md` says on which
/// backends. Views are immutable and may be shared between threads and re-used for any number of
/// calls.
public sealed interface CommData permits HostData, DeviceData {
  /// {@return what the elements are}
  DataType type();

  /// {@return how many elements there are}
  long count();

  /// {@return the size in bytes}
  default long bytes() {
    return type().bytes(count());
  }

  /// {@return a part of this view}
  ///
  /// @param from the first element, in `0..count()`
  /// @param count how many, at most `count() - from`
  /// @throws IllegalArgumentException if the part is not inside this view
  CommData slice(long from, long count);

  /// {@return the array's elements as FLOAT64} Numbers given one by one are in an array of their
  /// own, as in all methods that take arrays: such data is good for what is read, not for results.
  ///
  /// @param array the elements, not copied
  static HostData of(double... array) {
    Objects.requireNonNull(array, "array");
    return new HostData(DataType.FLOAT64, MemorySegment.ofArray(array), array);
  }

  /// {@return the array's elements as FLOAT32}
  ///
  /// @param array the elements, not copied
  static HostData of(float... array) {
    Objects.requireNonNull(array, "array");
    return new HostData(DataType.FLOAT32, MemorySegment.ofArray(array), array);
  }

  /// {@return the array's elements as INT64}
  ///
  /// @param array the elements, not copied
  static HostData of(long... array) {
    Objects.requireNonNull(array, "array");
    return new HostData(DataType.INT64, MemorySegment.ofArray(array), array);
  }

  /// {@return the array's elements as INT32}
  ///
  /// @param array the elements, not copied
  static HostData of(int... array) {
    Objects.requireNonNull(array, "array");
    return new HostData(DataType.INT32, MemorySegment.ofArray(array), array);
  }

  /// {@return the array's elements as INT16}
  ///
  /// @param array the elements, not copied
  static HostData of(short... array) {
    Objects.requireNonNull(array, "array");
    return new HostData(DataType.INT16, MemorySegment.ofArray(array), array);
  }

  /// {@return the array's elements as INT8}
  ///
  /// @param array the elements, not copied
  static HostData of(byte... array) {
    Objects.requireNonNull(array, "array");
    return new HostData(DataType.INT8, MemorySegment.ofArray(array), array);
  }

  /// {@return the elements between the buffer's position and limit, in native byte order: FLOAT64,
  /// FLOAT32, INT64, INT32, INT16 or INT8 by the kind of buffer} The position is not changed, now
  /// or later.
  ///
  /// @param buffer direct or on the heap; not copied
  /// @throws IllegalArgumentException if the buffer has another byte order or holds characters
  static HostData of(Buffer buffer) {
    return switch (Objects.requireNonNull(buffer, "buffer")) {
      case DoubleBuffer b -> of(DataType.FLOAT64, inOrder(b, b.order()));
      case FloatBuffer b -> of(DataType.FLOAT32, inOrder(b, b.order()));
      case LongBuffer b -> of(DataType.INT64, inOrder(b, b.order()));
      case IntBuffer b -> of(DataType.INT32, inOrder(b, b.order()));
      case ShortBuffer b -> of(DataType.INT16, inOrder(b, b.order()));
      case ByteBuffer b -> of(DataType.INT8, MemorySegment.ofBuffer(b));
      default ->
          throw new IllegalArgumentException(
              "buffer: a CharBuffer of %d (expected: numbers; for characters view the memory as a MemorySegment)"
                  .formatted(buffer.remaining()));
    };
  }

  /// {@return the bytes between the buffer's position and limit as elements of `type`, in native
  /// byte order} A buffer that was just made, or is a duplicate or slice of another one, has
  /// [ByteOrder#BIG_ENDIAN], and so would what is put into it.
  ///
  /// @param type what the elements are
  /// @param buffer direct or on the heap; not copied
  /// @throws IllegalArgumentException if the bytes are no whole number of elements, or the elements
  ///   have several bytes and the buffer another order
  static HostData of(DataType type, ByteBuffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    return of(
        type, type.bytes() == 1 ? MemorySegment.ofBuffer(buffer) : inOrder(buffer, buffer.order()));
  }

  /// {@return the whole segment as elements of `type`: heap, native, mapped or shared memory}
  ///
  /// @param type what the elements are
  /// @param segment not copied; its size is a multiple of the size of one element
  /// @throws IllegalArgumentException if the segment is no whole number of elements
  static HostData of(DataType type, MemorySegment segment) {
    return new HostData(type, Objects.requireNonNull(segment, "segment"));
  }

  /// {@return memory of a device, by its raw address} Unsafe: nothing can check that the address is
  /// valid, that it stays so while operations use it, or that it belongs to that device.
  ///
  /// @param type what the elements are
  /// @param address of the first element in the device's address space
  /// @param count how many elements
  /// @param device the number of the device as its own library counts
  /// @throws IllegalArgumentException if `count` or `device` is negative, or the elements have more
  ///   bytes than a long counts
  static DeviceData ofUnsafeDeviceAddress(DataType type, long address, long count, int device) {
    return new DeviceData(type, address, count, device);
  }

  private static MemorySegment inOrder(Buffer buffer, ByteOrder order) {
    if (order != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          "buffer's byte order: %s (expected: the native one, %s); call"
                  .formatted(order, ByteOrder.nativeOrder())
              + " order(ByteOrder.nativeOrder()) on the ByteBuffer, or view its bytes as a"
              + " MemorySegment if they are in native order already");
    }
    return MemorySegment.ofBuffer(buffer);
  }
}
