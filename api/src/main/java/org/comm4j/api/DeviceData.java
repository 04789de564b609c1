package org.comm4j.api;

/// Data in a device's memory, by address. It has no segment: the host can't read it.
///
/// @param type what the elements are
/// @param address of the first element in the device's address space; as devices need it a multiple
///   of the element's size, at most of 8, of complex numbers of half their size
/// @param count how many elements, at least 0
/// @param device the number of the device as its own library counts, at least 0
public record DeviceData(DataType type, long address, long count, int device) implements CommData {
  /// Checks the arguments.
  public DeviceData {
    type.bytes(count);
    if (device < 0) {
      throw new IllegalArgumentException("device: " + device + " (expected: 0 or more)");
    }
  }

  @Override
  public DeviceData slice(long from, long count) {
    Ranges.check(from, count, this.count);
    return new DeviceData(type, address + type.bytes(from), count, device);
  }

  /// For example `FLOAT32 × 1024 on device 0`.
  @Override
  public String toString() {
    return type + " × " + count + " on device " + device;
  }
}
