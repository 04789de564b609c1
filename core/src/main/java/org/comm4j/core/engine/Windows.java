package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.transport.PeerMemory;

/// This rank's window, as memory: who has which part of it. Guarded by the engine's lock.
final class Windows {
  private final PeerMemory memory;
  private final WindowLayout layout;
  private final String backend;
  private final TreeMap<Long, Long> freeExtents = new TreeMap<>(); // start → bytes
  private final List<WindowBuffer> buffers = new ArrayList<>();
  private long neverUsed; // buffers from here on have never been touched, so they are zero

  Windows(PeerMemory memory, String backend) {
    this.memory = memory;
    this.backend = backend;
    long bytes = memory.windowBytes();
    this.layout =
        memory.carriesCollectives() ? WindowLayout.of(bytes) : WindowLayout.withoutLanes(bytes);
    this.neverUsed = layout.buffersStart();
  }

  PeerMemory memory() {
    return memory;
  }

  WindowLayout layout() {
    return layout;
  }

  /// Which of some world ranks read each other's windows.
  Hosts hosts(int[] members) {
    return Hosts.of(Arrays.stream(members).map(memory::host).toArray(), layout.stageBytes());
  }

  /// Puts memory behind a lane's staging areas, before the lane's first use.
  ///
  /// @throws TransportFailedException if there is none
  void reserveLane(int lane) {
    memory.reserve(layout.staging(lane, 0), WindowLayout.AREAS * layout.stageBytes());
  }

  /// Takes a part of the window, zeroed.
  ///
  /// @param bytes 1 or more
  /// @throws TransportFailedException if there is no room
  Part take(long bytes) {
    Range range = find(bytes);
    try {
      PeerMemory.Extent extent = memory.map(range.start(), range.bytes());
      if (range.used()) {
        extent.segment().fill((byte) 0);
      }
      return new Part(range, extent);
    } catch (Throwable thrown) {
      giveBack(range);
      throw thrown;
    }
  }

  void giveBack(Part part) {
    part.extent().close();
    giveBack(part.range());
  }

  private Range find(long bytes) {
    long rounded = (bytes + WindowLayout.PAGE_BYTES - 1) & -WindowLayout.PAGE_BYTES;
    if (rounded < bytes) {
      throw noRoom(bytes); // more than a number of bytes can be
    }
    for (Map.Entry<Long, Long> free : freeExtents.entrySet()) {
      if (free.getValue() >= rounded) {
        return cut(free.getKey(), free.getValue(), rounded);
      }
    }
    long start = lastFree();
    if (rounded > layout.windowBytes() - start) {
      throw noRoom(bytes);
    }
    long end = start + rounded;
    memory.reserve(neverUsed, end - neverUsed);
    boolean used = start < neverUsed;
    freeExtents.remove(start);
    neverUsed = end;
    return new Range(start, rounded, used);
  }

  /// Takes the beginning of a free extent.
  private Range cut(long start, long extentBytes, long bytes) {
    freeExtents.remove(start);
    if (extentBytes > bytes) {
      freeExtents.put(start + bytes, extentBytes - bytes);
    }
    return new Range(start, bytes, true);
  }

  /// From where on everything is free.
  private long lastFree() {
    Map.Entry<Long, Long> last = freeExtents.lastEntry();
    return last != null && last.getKey() + last.getValue() == neverUsed ? last.getKey() : neverUsed;
  }

  private TransportFailedException noRoom(long bytes) {
    long free = layout.windowBytes() - neverUsed;
    long largest = layout.windowBytes() - lastFree();
    for (long extent : freeExtents.values()) {
      free += extent;
      largest = Math.max(largest, extent);
    }
    return new TransportFailedException(
        "%d bytes do not fit in this rank's window of backend '%s': of its %d bytes %d are free, at most %d in one piece; %s"
            .formatted(bytes, backend, layout.windowBytes(), free, largest, memory.remedy()),
        null);
  }

  private void giveBack(Range range) {
    long start = range.start();
    long bytes = range.bytes();
    Map.Entry<Long, Long> before = freeExtents.lowerEntry(start);
    if (before != null && before.getKey() + before.getValue() == start) {
      start = before.getKey();
      bytes += before.getValue();
      freeExtents.remove(start);
    }
    Long behind = freeExtents.remove(range.start() + range.bytes());
    freeExtents.put(start, behind == null ? bytes : bytes + behind);
  }

  void add(WindowBuffer buffer) {
    buffers.add(buffer);
  }

  void remove(WindowBuffer buffer) {
    buffers.remove(buffer);
  }

  List<WindowBuffer> buffers() {
    return List.copyOf(buffers);
  }

  /// The buffer that a segment is inside of, or null.
  @org.jspecify.annotations.Nullable
  WindowBuffer bufferOf(MemorySegment segment) {
    if (!segment.isNative()) {
      return null;
    }
    for (int i = 0; i < buffers.size(); i++) {
      if (buffers.get(i).contains(segment)) {
        return buffers.get(i);
      }
    }
    return null;
  }

  /// A part of the window that somebody has.
  ///
  /// @param extent its mapping, which may be closed earlier
  record Part(Range range, PeerMemory.Extent extent) {
    long start() {
      return range.start();
    }

    MemorySegment segment() {
      return extent.segment();
    }
  }

  /// @param used whether it may hold old data
  private record Range(long start, long bytes, boolean used) {}
}
