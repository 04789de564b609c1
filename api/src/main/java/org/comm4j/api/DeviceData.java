package org.comm4j.api;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Data in a device's memory, by address. It has no segment: the host can't read it.
///
/// @param type what the elements are
/// @param address of the first element in the device's address space; as devices need it a multiple
///   of the element's size, at most of 8, of complex numbers of half their size
/// @param count how many elements, at least 0
/// @param device the number of the device as its own library counts, at least 0
/// @param scope as long as it is alive, the memory is there: the address may be another's later
public record DeviceData(
    DataType type, long address, long count, int device, MemorySegment.Scope scope)
    implements CommData {
  /// Checks the arguments.
  ///
  /// @throws IllegalArgumentException if `count` or `device` is negative, or the elements have more
  ///   bytes than a long counts
  public DeviceData {
    Objects.requireNonNull(type, "type");
    type.bytes(count);
    Objects.requireNonNull(scope, "scope");
    if (device < 0) {
      throw new IllegalArgumentException("device: " + device + " (expected: 0 or more)");
    }
  }

  /// Of memory that nothing tells the end of.
  ///
  /// @param type what the elements are
  /// @param address of the first element in the device's address space
  /// @param count how many elements, at least 0
  /// @param device the number of the device as its own library counts, at least 0
  /// @throws IllegalArgumentException if `count` or `device` is negative, or the elements have more
  ///   bytes than a long counts
  public DeviceData(DataType type, long address, long count, int device) {
    this(type, address, count, device, MemorySegment.NULL.scope());
  }

  @Override
  public DeviceData slice(long from, long count) {
    Ranges.check(from, count, this.count);
    return new DeviceData(type, address + type.bytes(from), count, device, scope);
  }

  /// For example `FLOAT32 × 1024 on device 0`.
  @Override
  public String toString() {
    return type + " × " + count + " on device " + device;
  }
}
