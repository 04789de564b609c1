package org.comm4j.backend.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommData;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;
import org.jspecify.annotations.Nullable;

/// Memory of the host for a device's data, which the host's messages can move. Parts of the data
/// are where they are in it.
///
/// It is pinned, so that the device copies it at once, up to what a collective through the host
/// pins: the system can't have such memory back. More is plain memory, copied piece by piece.
final class HostCopy implements AutoCloseable {
  private static final int PINNED_CHUNKS = 4;
  private static final long MOST_PINNED_BYTES = 1L << 30; // a buffer of Java's counts with an int

  private final CudaRank rank;
  private final DeviceData of;
  private final CudaDevice.@Nullable HostMemory pinned;
  private final @Nullable Arena plain;
  private final MemorySegment memory;

  HostCopy(CudaRank rank, DeviceData of) {
    this.rank = rank;
    this.of = of;
    long bytes = of.bytes();
    boolean isPinned =
        bytes <= Math.min(MOST_PINNED_BYTES, PINNED_CHUNKS * rank.options().chunkBytes());
    if (bytes == 0) {
      pinned = null;
      plain = null;
      memory = MemorySegment.ofArray(new byte[0]);
    } else if (isPinned) {
      pinned = rank.gpu().hostMemory().take(bytes);
      plain = null;
      memory = pinned.segment();
    } else {
      pinned = null;
      plain = Arena.ofShared();
      memory = plain.allocate(bytes, Long.BYTES);
    }
  }

  /// {@return the data that this is for}
  DeviceData of() {
    return of;
  }

  /// {@return a part of the data, here}
  HostData data(DeviceData part) {
    return CommData.of(
        part.type(),
        part.bytes() == 0
            ? MemorySegment.ofArray(new byte[0])
            : memory.asSlice(part.address() - of.address(), part.bytes()));
  }

  /// Copies a part of the data from the device, and waits for it.
  void fetch(DeviceData part) {
    if (plain != null) {
      rank.read(part.address(), data(part));
    } else if (part.bytes() > 0) {
      rank.copy(part.address(), data(part).segment().address(), part.bytes());
    }
  }

  /// Copies a part of the data to the device, and waits for it.
  void store(DeviceData part) {
    if (plain != null) {
      rank.write(data(part), part.address());
    } else if (part.bytes() > 0) {
      rank.copy(data(part).segment().address(), part.address(), part.bytes());
    }
  }

  /// Gives the memory back.
  @Override
  public void close() {
    if (pinned != null) {
      rank.gpu().hostMemory().giveBack(of.bytes(), pinned);
    }
    if (plain != null) {
      plain.close();
    }
  }
}
