package org.comm4j.core.engine;

import static org.comm4j.core.engine.CallSignature.Purpose.FENCE;
import static org.comm4j.core.engine.CallSignature.Purpose.NODE_BARRIER;
import static org.comm4j.core.engine.CallSignature.Purpose.REGION;

import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.UnsupportedException;
import org.comm4j.core.transport.PeerMemory;
import org.jspecify.annotations.Nullable;

/// Regions that the ranks of a host share: parts of the leader's window.
///
/// A region's memory is the leader's again once every rank has closed it, or its last communicator,
/// or its process has ended ([Loans]), or the leader has, where it never fenced it; it may then
/// hold other data, so each rank sees it through an extent that ends with its close. Who is only
/// given up may go on and read it: for him it stays.
final class EngineSharedMemory implements SharedMemoryProvider {
  private final EngineCommunicator parent;
  private final Engine engine;
  private final HostCalls<EngineCommunicator> calls;
  private @Nullable EngineCommunicator node; // guarded by the engine's lock, as isClosed
  private boolean isClosed;

  EngineSharedMemory(EngineCommunicator parent, Engine engine) {
    this.parent = parent;
    this.engine = engine;
    int[] here = parent.ranksHere().toArray();
    this.calls = new HostCalls<>(parent, parent.members(), this::node, rank -> here[rank]);
  }

  /// The ranks of the host as a communicator, which breaks with this one; a collective of them the
  /// first time.
  private EngineCommunicator node(String label) {
    try (var _ = engine.enter()) {
      if (node != null) {
        return node;
      }
    }
    EngineCommunicator made = parent.hostGroup(label);
    try (var _ = engine.enter()) {
      node = made;
      if (!isClosed) {
        return made;
      }
    }
    made.close(); // with the other one, by another thread meanwhile
    return made;
  }

  /// Runs a call among the ranks of this host. What fails there breaks the communicator as every
  /// call of it does.
  <T> T inNode(String label, Function<EngineCommunicator, T> call) {
    parent.checkNow(label);
    return calls.run(label, call);
  }

  /// Who is there, the session says; the ranks meet in the barrier.
  @Override
  public NodeCommunicator splitLocal() {
    parent.checkNow("splitLocal");
    List<Integer> ranks = parent.ranksHere().boxed().toList();
    return new NodeCommunicator() {
      @Override
      public int rank() {
        return ranks.indexOf(parent.rank());
      }

      @Override
      public int size() {
        return ranks.size();
      }

      @Override
      public void barrier() {
        inNode(
            "barrier of the node group",
            node -> {
              node.barrierInternal(NODE_BARRIER);
              return node;
            });
      }
    };
  }

  @Override
  public SharedRegion<HostData> createRegion(DataType type, long count) {
    long bytes = Objects.requireNonNull(type, "type").bytes(count);
    EngineCommunicator group = inNode("createRegion", Function.identity());
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
    Loan mine = null;
    RuntimeException noRoom = null;
    if (leader) {
      try (var _ = engine.lock()) {
        engine.giveBack();
        Windows.Part part = windows.take(Math.max(1, bytes));
        List<Integer> readers =
            IntStream.range(1, group.size()).mapToObj(group::worldRank).toList();
        mine = new Loan(windows, part, engine.loans().lend(readers));
      } catch (RuntimeException failure) { // the others must hear of it
        noRoom = failure;
      }
    }
    try {
      long start = mine == null ? -1 : mine.part.start();
      long number = mine == null ? 0 : mine.number;
      long[][] all =
          inNode(
              "createRegion", node -> node.gatherInternal(REGION, type.id(), count, start, number));
      calls.checkSame(all, type, count);
      if (all[0][2] < 0) {
        throw noRoom != null
            ? noRoom
            : new TransportFailedException(
                "createRegion: rank %d, the leader of this host, has no room for %s × %d in its window"
                    .formatted(parent.rankOf(group.worldRank(0)), type, count),
                null);
      }
      int home = group.worldRank(0);
      PeerMemory.Extent extent =
          mine == null ? view(windows, home, all[0], bytes) : mine.part.extent();
      HostData whole = CommData.of(type, extent.segment().asSlice(0, bytes));
      return new HostRegion(whole, leader, home(whole, extent, mine, home, all[0][3]));
    } catch (Throwable thrown) {
      if (mine != null) { // nobody reads it before a fence, which can't be any more
        mine.takeBack();
      }
      throw thrown;
    }
  }

  /// @param told by the leader
  private PeerMemory.Extent view(Windows windows, int home, long[] told, long bytes) {
    try {
      return windows.memory().view(home, told[2], bytes);
    } catch (CommException failure) { // the others have the region, and would wait in its fence
      CommException reason = calls.broken(failure);
      try (var _ = engine.lock()) {
        engine.giveBackLoan(home, told[3]);
      }
      throw reason;
    }
  }

  private Home home(
      HostData whole, PeerMemory.Extent extent, @Nullable Loan mine, int leader, long number) {
    var home = new Home(whole, extent, mine, leader, number);
    if (mine == null) {
      try (var _ = engine.lock()) {
        engine.giveBackAtTheEnd(home.giveBack);
      }
    }
    return home;
  }

  private void checkUnused(HostData region) {
    try (var _ = engine.lock()) {
      engine.checkUnused(region.segment(), "region", region);
    }
  }

  /// Memory of this rank's window that others read.
  private final class Loan {
    private final Windows windows;
    private final Windows.Part part;
    private final long number;

    Loan(Windows windows, Windows.Part part, long number) {
      this.windows = windows;
      this.part = part;
      this.number = number;
    }

    void takeBack() {
      try (var _ = engine.lock()) {
        engine.loans().forget(number);
        windows.giveBack(part);
      }
    }

    /// Takes it back once all its readers have said that they have closed it.
    ///
    /// @param mayBeRead whether they may have passed a fence; else some of them may not have got
    ///   the region, and will never say so
    void takeBackLater(boolean mayBeRead) {
      try (var _ = engine.lock()) {
        engine.giveBack(() -> {
          part.extent().close();
          if (mayBeRead && engine.loans().isOut(number, engine::mayRead)) {
            return false;
          }
          engine.loans().forget(number);
          windows.giveBack(part);
          return true;
        });
      }
    }
  }

  /// Where a region that is shared lives. It needs the communicator no more.
  private final class Home implements Region.Owner {
    private final HostData whole;
    private final PeerMemory.Extent extent; // ends with the region, and with it what was viewed
    private final @Nullable Loan mine; // on the leader
    private final int home;
    private final long number;
    private final BooleanSupplier giveBack = this::giveBack; // to the leader
    private boolean hasFenced; // has tried: others may have passed the fence

    /// @param home the leader, as a rank of the session
    /// @param number of the leader's loan
    Home(HostData whole, PeerMemory.Extent extent, @Nullable Loan mine, int home, long number) {
      this.whole = whole;
      this.extent = extent;
      this.mine = mine;
      this.home = home;
      this.number = number;
    }

    @Override
    public void fence() {
      long[][] all =
          inNode(
              "fence",
              node -> {
                hasFenced = true;
                return node.gatherInternal(FENCE, number);
              });
      calls.checkSameFence(all, node("fence").rank());
    }

    @Override
    public void close() {
      checkUnused(whole);
      if (mine != null) {
        mine.takeBackLater(hasFenced);
        return;
      }
      try (var _ = engine.lock()) {
        engine.giveBack(giveBack);
      }
    }

    private boolean giveBack() {
      extent.close();
      engine.giveBackLoan(home, number);
      return true;
    }
  }

  void close() {
    EngineCommunicator group;
    try (var _ = engine.lock()) {
      isClosed = true;
      group = node;
    }
    if (group != null) {
      group.close();
    }
  }
}
