package org.comm4j.backend.local;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.OwnFolder;

/// Makes the transports of ranks that are threads of this JVM.
///
/// Their memory is anonymous, or, without native access, in files without a name, since nothing
/// else in Java gives address space that costs nothing until it is touched, and parts that can be
/// closed.
final class LocalTransports {
  private static final long MIN_WINDOW_BYTES = 16 << 20;

  private static final String PREFIX = "comm4j-local-";

  private LocalTransports() {}

  /// One for each rank, with windows of `windowBytes`, or half, a quarter, … of it where there is
  /// not so much address space.
  ///
  /// @param calls empty without native access
  static List<SharedMemoryTransport> group(
      int ranks, long windowBytes, Optional<NativeCalls> calls, long maxSleepNanos) {
    if (calls.isPresent()) {
      for (long bytes = windowBytes; bytes > 0; bytes /= 2) {
        var layout = new BlockLayout(ranks, BlockLayout.roundUp(bytes, BlockLayout.PAGE_BYTES));
        var memories = ThreadMemory.group(layout, calls.get());
        if (memories.isPresent()) {
          return group(layout, memories.get(), calls, maxSleepNanos);
        }
        if (bytes <= MIN_WINDOW_BYTES) {
          break;
        }
      }
    }
    var layout = new BlockLayout(ranks, BlockLayout.roundUp(windowBytes, BlockLayout.PAGE_BYTES));
    return group(layout, files(layout), calls, maxSleepNanos);
  }

  private static List<SharedMemoryTransport> group(
      BlockLayout layout,
      List<? extends RankMemory> memories,
      Optional<NativeCalls> calls,
      long maxSleepNanos) {
    var doorbell = new ThreadDoorbell(layout.ranks());
    var fence = SleepFence.ofThisProcess(calls);
    var group = new ArrayList<SharedMemoryTransport>();
    for (int rank = 0; rank < layout.ranks(); rank++) {
      var memory = memories.get(rank);
      group.add(
          new SharedMemoryTransport(
              rank, layout, memory, WindowOption.LOCAL, doorbell, fence, maxSleepNanos));
    }
    return group;
  }

  private static List<FileMemory> files(BlockLayout layout) {
    Path root = OwnFolder.root();
    var place = new SharedPlace(root, WindowOption.LOCAL.variable(), layout.windowBytes());
    try {
      return FileMemory.undisturbed(() -> files(layout, place));
    } catch (IOException e) {
      throw new TransportFailedException(
          "creating shared memory in %s failed: %s".formatted(root, e), e);
    }
  }

  private static List<FileMemory> files(BlockLayout layout, SharedPlace place) throws IOException {
    removeRemains();
    var memories = new ArrayList<FileMemory>();
    try (OwnFolder folder = OwnFolder.create(place.root(), PREFIX)) {
      for (int rank = 0; rank < layout.ranks(); rank++) {
        memories.add(FileMemory.create(rank, file(folder, rank), layout, place, null, null));
      }
      for (FileMemory memory : memories) {
        for (int peer = 0; peer < layout.ranks(); peer++) {
          memory.attach(peer, file(folder, peer));
        }
      }
      return memories;
    } catch (Throwable e) {
      memories.forEach(FileMemory::close);
      throw e;
    }
  }

  /// Removes the files of processes that were killed while they made them.
  static void removeRemains() {
    OwnFolder.sweep(OwnFolder.root(), PREFIX);
  }

  private static Path file(OwnFolder folder, int rank) {
    return folder.path().resolve("rank-" + rank);
  }
}
