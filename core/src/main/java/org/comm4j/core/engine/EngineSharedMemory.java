package org.comm4j.core.engine;

import static org.comm4j.core.engine.CallSignature.Purpose.FENCE;
import static org.comm4j.core.engine.CallSignature.Purpose.REGION;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.transport.PeerMemory;
import org.jspecify.annotations.Nullable;

/// Regions that the ranks of a host share: parts of the leader's window.
///
/// A region's memory is the leader's again once every rank has closed it; the others say so with a
/// message of the library's own.
final class EngineSharedMemory implements SharedMemoryProvider {
  private static final int FIRST_TAG = Communicator.MAX_TAG + 1;
  private static final int TAGS = 1 << 16;

  private final EngineCommunicator parent;
  private final Engine engine;
  private final List<Closing> closing = new ArrayList<>();
  private @Nullable EngineCommunicator node;
  private int regions;

  EngineSharedMemory(EngineCommunicator parent, Engine engine) {
    this.parent = parent;
    this.engine = engine;
  }

  /// A region that the leader has closed and others perhaps not.
  private record Closing(Windows.Range range, List<Pending> goodbyes) {}

  private EngineCommunicator node() {
    EngineCommunicator group = node;
    if (group == null) {
      group = parent.hostGroup("node/" + Long.toHexString(parent.scope()));
      node = group;
    }
    return group;
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
        group.barrierInternal(FENCE);
      }
    };
  }

  @Override
  public SharedRegion createRegion(DataType type, long count) {
    EngineCommunicator group = node();
    long bytes = type.bytes(count);
    if (group.size() == 1) {
      return new EngineRegion(this, type, count, true, null, null);
    }
    Windows windows = engine.windows();
    if (windows == null) {
      throw new UnsupportedException(
          "backend '%s' shares no memory between ranks; use a group of one rank per host, or broadcast"
              .formatted(parent.backend()));
    }
    sweep();
    boolean leader = group.rank() == 0;
    Windows.Range range = null;
    TransportFailedException noSpace = null;
    if (leader) {
      engine.lock();
      try {
        range = windows.take(Math.max(1, bytes));
      } catch (TransportFailedException failure) {
        noSpace = failure;
      } finally {
        engine.unlock();
      }
    }
    long[][] all =
        group.gatherInternal(REGION, type.id(), count, range == null ? -1 : range.start());
    check(group, all, type, count, windows, range);
    if (all[0][2] < 0) {
      throw noSpace != null
          ? noSpace
          : new TransportFailedException(
              "createRegion: rank %d, the leader of this host, has no room for %s × %d in its window"
                  .formatted(group.worldRank(0), type, count),
              null);
    }
    int tag = FIRST_TAG + regions++ % TAGS;
    PeerMemory.Extent extent = range == null ? null : mapped(windows, range);
    return new EngineRegion(
        this,
        type,
        count,
        leader,
        extent == null
            ? windows.memory().window(group.worldRank(0)).asSlice(all[0][2], bytes)
            : extent.segment().asSlice(0, bytes),
        new EngineRegion.Home(tag, range, extent));
  }

  private PeerMemory.Extent mapped(Windows windows, Windows.Range range) {
    engine.lock();
    try {
      return windows.map(range);
    } finally {
      engine.unlock();
    }
  }

  private void check(
      EngineCommunicator group,
      long[][] all,
      DataType type,
      long count,
      Windows windows,
      Windows.@Nullable Range range) {
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] != type.id() || all[rank][1] != count) {
        if (range != null) {
          engine.lock();
          try {
            windows.giveBack(range);
          } finally {
            engine.unlock();
          }
        }
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

  void fence() {
    node().barrierInternal(FENCE);
  }

  /// This rank has closed a region.
  void closed(EngineRegion.Home home) {
    EngineCommunicator group = node();
    Windows.Range range = home.range();
    PeerMemory.Extent extent = home.extent();
    if (range == null || extent == null) {
      group.sendInternal(0, home.tag());
      return;
    }
    extent.close();
    List<Pending> goodbyes =
        IntStream.range(1, group.size())
            .mapToObj(rank -> group.receiveInternal(rank, home.tag()))
            .toList();
    synchronized (closing) {
      closing.add(new Closing(range, goodbyes));
    }
    sweep();
  }

  /// On threads that close regions as on the one that makes them.
  private void sweep() {
    synchronized (closing) {
      giveBackClosed();
    }
  }

  private void giveBackClosed() {
    Windows windows = engine.windows();
    closing.removeIf(region -> {
      if (windows == null || !region.goodbyes().stream().allMatch(Pending::isDone)) {
        return false;
      }
      engine.lock();
      try {
        windows.giveBack(region.range());
      } finally {
        engine.unlock();
      }
      return true;
    });
  }

  void close() {
    EngineCommunicator group = node;
    if (group != null) {
      group.close();
    }
  }
}
