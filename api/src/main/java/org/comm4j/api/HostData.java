package org.comm4j.api;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Data in the host's memory: a heap array, native memory or memory shared between processes.
public final class HostData implements CommData {
  private final DataType type;
  private final MemorySegment segment;
  private final @Nullable Object array;

  HostData(DataType type, MemorySegment segment) {
    this(type, segment, segment.heapBase().orElse(null));
  }

  /// A view of which the array is known: to ask the segment takes an object.
  ///
  /// @param array in which the segment is; null if it is in none, or does not tell
  HostData(DataType type, MemorySegment segment, @Nullable Object array) {
    this.type = Objects.requireNonNull(type, "type");
    this.segment = segment;
    this.array = array;
    if (type.bytes(count()) != segment.byteSize()) {
      throw new IllegalArgumentException(
          "segment: %d bytes (expected: a multiple of %d, the size of %s); cut it or change the type"
              .formatted(segment.byteSize(), type.bytes(), type));
    }
  }

  @Override
  public DataType type() {
    return type;
  }

  @Override
  public long count() {
    return type.countIn(segment.byteSize()); // kept in no field: each call of one line makes a view
  }

  @Override
  public long bytes() {
    return segment.byteSize();
  }

  /// {@return the memory} Its size is exactly [#bytes()]; it need not be aligned to the element's
  /// size.
  public MemorySegment segment() {
    return segment;
  }

  @Override
  public HostData slice(long from, long count) {
    Ranges.check(from, count, count());
    return new HostData(type, segment.asSlice(type.bytes(from), type.bytes(count)));
  }

  /// {@return whether the two views have at least one byte in common}
  ///
  /// @param other the view to compare with
  public boolean overlaps(HostData other) {
    if (bytes() == 0 || other.bytes() == 0) {
      return false;
    }
    if (isOpaque() || other.isOpaque()) {
      return segment.asOverlappingSlice(other.segment).isPresent();
    }
    return isSameArray(other)
        && Ranges.overlap(segment.address(), bytes(), other.segment.address(), other.bytes());
  }

  /// {@return whether the two views are of exactly the same bytes}
  ///
  /// @param other the view to compare with
  public boolean isSameMemory(HostData other) {
    return segment.address() == other.segment.address()
        && bytes() == other.bytes()
        && (isSameArray(other) || isOpaque() || other.isOpaque())
        && (bytes() == 0 || overlaps(other));
  }

  /// Arrays are equal only to themselves; memory off the heap has none.
  private boolean isSameArray(HostData other) {
    return Objects.equals(array, other.array);
  }

  /// A read-only view of an array does not tell which array.
  private boolean isOpaque() {
    return array == null && !segment.isNative();
  }

  /// For example `FLOAT32 × 1024`.
  @Override
  public String toString() {
    return type + " × " + count();
  }
}
