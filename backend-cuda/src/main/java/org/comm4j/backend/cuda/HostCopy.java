package org.comm4j.backend.cuda;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommData;
import org.comm4j.api.DeviceData;
import org.comm4j.api.UnsupportedException;
import org.jspecify.annotations.Nullable;

/// Pinned memory of the host for a device's data, which the host's messages can move. Parts of the
/// data are where they are in it.
final class HostCopy implements AutoCloseable {
  private static final long MOST_BYTES = 1 << 30; // of a block of the host's memory

  private final CudaRank rank;
  private final DeviceData of;
  private final CudaDevice.@Nullable HostMemory memory; // null for no data

  /// @throws UnsupportedException if it is more than 1 GiB
  HostCopy(CudaRank rank, DeviceData of) {
    if (of.bytes() > MOST_BYTES) {
      throw new UnsupportedException(
          "%s through the host's memory (expected: at most %d bytes; send it in parts)"
              .formatted(of, MOST_BYTES));
    }
    this.rank = rank;
    this.of = of;
    this.memory = of.bytes() == 0 ? null : rank.gpu().hostMemory().take(of.bytes());
  }

  /// {@return the data that this is for}
  DeviceData of() {
    return of;
  }

  /// {@return a part of the data, here}
  CommData data(DeviceData part) {
    return CommData.of(part.type(), segment(part));
  }

  /// Copies a part of the data from the device, and waits for it.
  void fetch(DeviceData part) {
    if (part.bytes() > 0) {
      rank.copy(part.address(), segment(part).address(), part.bytes());
    }
  }

  /// Copies a part of the data to the device, and waits for it.
  void store(DeviceData part) {
    if (part.bytes() > 0) {
      rank.copy(segment(part).address(), part.address(), part.bytes());
    }
  }

  private MemorySegment segment(DeviceData part) {
    return memory == null || part.bytes() == 0
        ? MemorySegment.ofArray(new byte[0])
        : memory.segment().asSlice(part.address() - of.address(), part.bytes());
  }

  /// Gives the memory back.
  @Override
  public void close() {
    if (memory != null) {
      rank.gpu().hostMemory().giveBack(of.bytes(), memory);
    }
  }
}
