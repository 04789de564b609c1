package org.comm4j.backend.local;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.comm4j.api.CommException;
import org.comm4j.api.JoinException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.Processors;
import org.jspecify.annotations.Nullable;

/// Brings the memory of a session's ranks together: every rank creates its file, maps everybody's,
/// and takes the names away. A rank that fails at one of these says so, so that all fail together
/// and nobody waits. When it is over, well or not, no name is left. Used once.
final class ShmRendezvous {
  private static final int MAX_MESSAGE = 4000;
  private static final byte FUTEX = 1;
  private static final byte BARRIERS = 2;

  private final Session session;
  private final Path root;
  private final Duration timeout;
  private final boolean carriesCollectives;
  private @Nullable ShmDirectory names;
  private @Nullable FileMemory memory;

  /// @param root the file system, `/dev/shm` but for tests
  /// @param timeout for each step
  /// @param carriesCollectives whether windows are for more than regions
  ShmRendezvous(Session session, Path root, Duration timeout, boolean carriesCollectives) {
    this.session = session;
    this.root = root;
    this.timeout = timeout;
    this.carriesCollectives = carriesCollectives;
  }

  /// Opens this rank's end; all ranks call it at once.
  ///
  /// @param windowBytes of each rank's window, a multiple of [BlockLayout#PAGE_BYTES]
  /// @param found empty without native access
  /// @param singleCopy whether peers' memory may be read, if there is
  /// @throws CommException if it can't be opened on some rank
  SharedMemoryTransport open(
      long windowBytes,
      Optional<NativeCalls> found,
      SingleCopyOption singleCopy,
      long maxSleepNanos) {
    byte common = agree(windowBytes, abilities(found));
    var layout = new BlockLayout(session.size(), windowBytes);
    var place = new SharedPlace(root, WindowOption.SHM.variable(), windowBytes);
    NativeCalls calls = found.orElse(null);
    try {
      together("create", place, () -> create(layout, place, calls, singleCopy));
      together("map", place, this::attachAll);
      together("unlink", place, () -> requireNonNull(names).close());
      requireNonNull(memory).decide();
    } catch (Throwable e) {
      release(e);
      throw e;
    }
    return new SharedMemoryTransport(
        session.rank(),
        layout,
        requireNonNull(memory),
        WindowOption.SHM,
        calls != null && (common & FUTEX) != 0 ? new FutexDoorbell(calls) : new PollingDoorbell(),
        calls != null && (common & BARRIERS) != 0
            ? SleepFence.asymmetric(calls)
            : SleepFence.symmetric(),
        maxSleepNanos);
  }

  private static byte abilities(Optional<NativeCalls> found) {
    int futex = found.isPresent() ? FUTEX : 0;
    return (byte) (found.isPresent() && found.get().joinBarriers() ? futex | BARRIERS : futex);
  }

  /// Compares the sizes of the windows.
  ///
  /// @return what all ranks are able to: who can't sleep on a futex could not wake those who do
  private byte agree(long windowBytes, byte abilities) {
    byte[] mine = ByteBuffer.allocate(Long.BYTES + 1).putLong(windowBytes).put(abilities).array();
    List<byte[]> all = session.exchange("shm.options", mine, timeout);
    byte common = abilities;
    for (int rank = 0; rank < all.size(); rank++) {
      var theirs = ByteBuffer.wrap(all.get(rank));
      long bytes = theirs.getLong();
      if (bytes != ByteBuffer.wrap(all.getFirst()).getLong()) {
        throw new JoinException(
            JoinException.Reason.CONFIGURATION,
            "%s is %d bytes on rank 0 but %d on rank %d; set it to the same value on all ranks"
                .formatted(
                    WindowOption.SHM.variable(),
                    ByteBuffer.wrap(all.getFirst()).getLong(),
                    bytes,
                    rank));
      }
      common &= theirs.get();
    }
    return common;
  }

  private void create(
      BlockLayout layout, SharedPlace place, @Nullable NativeCalls calls, SingleCopyOption option)
      throws IOException {
    var entered = ShmDirectory.enter(root, session.id(), session.rank());
    names = entered;
    int rank = session.rank();
    SingleCopy singleCopy =
        calls == null
            ? null
            : new SingleCopy(rank, layout, calls, option, Processors.areFewerThanRanks(session));
    var created = FileMemory.create(rank, entered.file(rank), layout, place, calls, singleCopy);
    memory = created;
    if (carriesCollectives && layout.ranks() > 1) { // later some ranks would have opened
      created.reserve(layout.windowAt(), EngineCommunicator.firstBytes(layout.windowBytes()));
    }
  }

  private void attachAll() throws IOException {
    for (int peer = 0; peer < session.size(); peer++) {
      requireNonNull(memory).attach(peer, requireNonNull(names).file(peer));
    }
    requireNonNull(memory).meet();
  }

  /// Does this rank's part of a step, and tells and hears how it went.
  private void together(String step, SharedPlace place, Step part) {
    CommException failure = null;
    try {
      FileMemory.undisturbed(() -> {
        part.run();
        return true;
      });
    } catch (CommException e) {
      failure = e;
    } catch (IOException | RuntimeException e) {
      failure = place.failed("sharing memory", e);
    }
    List<String> answers =
        exchange(step, failure == null ? "" : String.valueOf(failure.getMessage()));
    if (failure != null) {
      throw failure;
    }
    for (int rank = 0; rank < answers.size(); rank++) {
      if (!answers.get(rank).isEmpty()) {
        throw new TransportFailedException("rank %d: %s".formatted(rank, answers.get(rank)), null);
      }
    }
  }

  private List<String> exchange(String step, String mine) {
    String cut = mine.substring(0, Math.min(mine.length(), MAX_MESSAGE));
    return session.exchange("shm." + step, cut.getBytes(StandardCharsets.UTF_8), timeout).stream()
        .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
        .toList();
  }

  private void release(Throwable failure) {
    try {
      if (memory != null) {
        memory.close();
      }
      if (names != null) {
        names.close();
        names.reapRemains();
      }
    } catch (IOException | RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  /// One rank's part.
  @FunctionalInterface
  private interface Step {
    void run() throws IOException;
  }
}
