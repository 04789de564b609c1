package org.comm4j.core.engine;

import static java.util.stream.Collectors.toCollection;
import static org.comm4j.core.engine.CallSignature.Purpose.FENCE;
import static org.comm4j.core.engine.CallSignature.Purpose.REGION;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.UnsupportedException;
import org.jspecify.annotations.Nullable;

/// Regions that the ranks of a host share: parts of the leader's window.
///
/// A region's memory is the leader's again once every rank has closed it, or has left; the others
/// say so with a message of the library's own, which no call waits for.
final class EngineSharedMemory implements SharedMemoryProvider {
  private static final int FIRST_TAG = Communicator.MAX_TAG + 1;
  private static final int TAGS = 1 << 16;

  private final EngineCommunicator parent;
  private final Engine engine;
  private @Nullable EngineCommunicator node;
  private int regions;

  EngineSharedMemory(EngineCommunicator parent, Engine engine) {
    this.parent = parent;
    this.engine = engine;
  }

  private EngineCommunicator node() {
    EngineCommunicator group = node;
    if (group == null) {
      try {
        group = parent.hostGroup("node/" + Long.toHexString(parent.scope()));
      } catch (CollectiveTimeoutException late) {
        List<Integer> missing =
            IntStream.range(0, parent.size())
                .filter(rank -> late.missing().contains(parent.worldRank(rank)))
                .boxed()
                .toList();
        throw new CollectiveTimeoutException(
            missing,
            "rank %d waited %.1f s in createRegion() or splitLocal() of '%s' for rank(s) %s of its host, who have not come; raise COMM_TIMEOUT if they may take longer"
                .formatted(
                    parent.rank(),
                    engine.config().timeout().toMillis() / 1e3,
                    parent.name(),
                    missing));
      }
      node = group;
    }
    return group;
  }

  /// Runs a call among the ranks of this host. What fails there breaks the communicator as every
  /// call of it does.
  private <T> T inNode(Function<EngineCommunicator, T> call) {
    try {
      return call.apply(node());
    } catch (ClosedException closed) {
      throw closed;
    } catch (CommException failure) {
      parent.abort(failure);
      throw Objects.requireNonNull(parent.failure()); // another may have been first
    }
  }

  private void barrier() {
    inNode(group -> {
      group.barrierInternal(FENCE);
      return group;
    });
  }

  @Override
  public NodeCommunicator splitLocal() {
    EngineCommunicator group = node();
    return new NodeCommunicator() {
      @Override
      public int rank() {
        return group.rank();
      }

      @Override
      public int size() {
        return group.size();
      }

      @Override
      public void barrier() {
        EngineSharedMemory.this.barrier();
      }
    };
  }

  @Override
  public SharedRegion<HostData> createRegion(DataType type, long count) {
    EngineCommunicator group = inNode(Function.identity());
    long bytes = type.bytes(count);
    if (group.size() == 1) {
      return HostRegion.ofOne(type, count, this::checkUnused);
    }
    Windows windows = engine.windows();
    if (windows == null) {
      throw new UnsupportedException(
          "backend '%s' shares no memory between ranks; use a group of one rank per host, or broadcast"
              .formatted(parent.backend()));
    }
    boolean leader = group.rank() == 0;
    Windows.Part part = null;
    RuntimeException noRoom = null;
    if (leader) {
      engine.lock();
      try {
        engine.giveBack();
        part = windows.take(Math.max(1, bytes));
      } catch (RuntimeException failure) { // the others must hear of it
        noRoom = failure;
      } finally {
        engine.unlock();
      }
    }
    try {
      long start = part == null ? -1 : part.start();
      long[][] all = inNode(node -> node.gatherInternal(REGION, type.id(), count, start));
      check(group, all, type, count);
      if (all[0][2] < 0) {
        throw noRoom != null
            ? noRoom
            : new TransportFailedException(
                "createRegion: rank %d, the leader of this host, has no room for %s × %d in its window"
                    .formatted(group.worldRank(0), type, count),
                null);
      }
      MemorySegment memory =
          part == null
              ? windows.memory().window(group.worldRank(0)).asSlice(all[0][2], bytes)
              : part.segment().asSlice(0, bytes);
      int tag = FIRST_TAG + regions++ % TAGS;
      HostData whole = CommData.of(type, memory);
      return new HostRegion(whole, leader, new Home(tag, part, whole));
    } catch (Throwable thrown) {
      giveBack(windows, part); // nobody reads it before a fence, which can't be any more
      throw thrown;
    }
  }

  private void checkUnused(HostData region) {
    engine.lock();
    try {
      engine.checkUnused(region.segment(), "region", region);
    } finally {
      engine.unlock();
    }
  }

  private void giveBack(Windows windows, Windows.@Nullable Part part) {
    if (part != null) {
      engine.lock();
      try {
        windows.giveBack(part);
      } finally {
        engine.unlock();
      }
    }
  }

  private void check(EngineCommunicator group, long[][] all, DataType type, long count) {
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] != type.id() || all[rank][1] != count) {
        parent.abort(
            new MismatchedCallException(
                "rank %d of the host creates a region of %s × %d but rank %d one of %s × %d"
                    .formatted(
                        rank,
                        DataType.ofId((int) all[rank][0]),
                        all[rank][1],
                        group.rank(),
                        type,
                        count)));
        throw Objects.requireNonNull(parent.failure()); // another rank may have been first
      }
    }
  }

  /// Where a region that is shared lives.
  private final class Home implements Region.Owner {
    private final int tag; // of the messages that say it was closed
    private final Windows.@Nullable Part part; // on the leader, of its window
    private final HostData whole;

    Home(int tag, Windows.@Nullable Part part, HostData whole) {
      this.tag = tag;
      this.part = part;
      this.whole = whole;
    }

    @Override
    public void fence() {
      barrier();
    }

    @Override
    public void close() {
      checkUnused(whole);
      Windows windows = engine.windows();
      if (part == null || windows == null) {
        node().sendInternal(0, tag);
      } else {
        giveBackLater(windows, part, tag);
      }
    }
  }

  /// Gives a part of this rank's window back once all its readers have said that they have closed
  /// it.
  private void giveBackLater(Windows windows, Windows.Part part, int tag) {
    EngineCommunicator group = node();
    List<Integer> readers =
        IntStream.range(1, group.size()).boxed().collect(toCollection(ArrayList::new));
    engine.lock();
    try {
      engine.giveBack(() -> {
        part.extent().close();
        readers.removeIf(
            rank -> group.takeInternal(rank, tag) || engine.isGone(group.worldRank(rank)));
        if (readers.isEmpty()) {
          windows.giveBack(part);
        }
        return readers.isEmpty();
      });
    } finally {
      engine.unlock();
    }
  }

  void close() {
    EngineCommunicator group = node;
    if (group != null) {
      group.close();
    }
  }
}
