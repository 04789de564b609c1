package org.comm4j.backend.cuda;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.RegisteredMemory;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.CallSignature.Purpose;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.engine.HostCalls;
import org.comm4j.core.engine.Region;
import org.jspecify.annotations.Nullable;

/// What ranks share besides windows: regions of the leader's device, and memory that ranks have
/// already. Regions of the host's memory are those of the host's communicator. All ranks are of one
/// host.
final class CudaSharedMemory implements SharedMemoryProvider {
  private final CudaCommunicator communicator;
  private final CudaRank rank;
  private final EngineCommunicator host;
  private final Session members;
  private final String key;
  private final HostCalls<EngineCommunicator> calls;
  private int made; // regions and registrations, by which all ranks count alike

  /// @param members the session as the communicator's ranks see it
  /// @param key the communicator's alone in the session
  CudaSharedMemory(
      CudaCommunicator communicator,
      CudaRank rank,
      EngineCommunicator host,
      Session members,
      String key) {
    this.communicator = communicator;
    this.rank = rank;
    this.host = host;
    this.members = members;
    this.key = key;
    int[] worldRanks = IntStream.range(0, host.size()).map(host::worldRank).toArray();
    this.calls = new HostCalls<>(communicator, worldRanks, _ -> host, each -> each);
  }

  @Override
  public NodeCommunicator splitLocal() {
    communicator.checkUsable("splitLocal");
    return host.sharedMemory().splitLocal();
  }

  @Override
  public SharedRegion<HostData> createRegion(DataType type, long count) {
    return host.sharedMemory().createRegion(type, count);
  }

  @Override
  public SharedRegion<DeviceData> createDeviceRegion(DataType type, long count) {
    communicator.checkUsable("createDeviceRegion");
    long bytes = type.bytes(count);
    Gpu gpu = openGpu();
    CudaIpcBlocks.Block own = CudaIpcBlocks.Block.none(gpu::close);
    try {
      BackendException noRoom = null;
      if (isLeader()) {
        try {
          own = CudaIpcBlocks.Block.cleared(gpu, Math.max(1, bytes));
        } catch (BackendException e) { // the others must hear of it
          if (!CudaDriver.isFull(e)) {
            throw communicator.breakWith(e);
          }
          noRoom = e;
        }
      }
      long hasRoom = noRoom == null ? 1 : 0;
      long[][] all = gather("createDeviceRegion", Purpose.DEVICE_REGION, type.id(), count, hasRoom);
      calls.checkSame(all, type, count);
      if (all[0][2] == 0) {
        throw new TransportFailedException(
            "createDeviceRegion: rank 0, the leader, has no room for %s × %d in the memory of its device%s; close buffers and regions"
                .formatted(type, count, noRoom == null ? "" : " (" + noRoom.getMessage() + ")"),
            noRoom);
      }
    } catch (Throwable thrown) { // nobody has opened it
      own.giveBack().run();
      throw thrown;
    }
    int number = ++made;
    CudaIpcBlocks blocks = open("createDeviceRegion", key + "/region/" + number, gpu, own);
    Arena life = Arena.ofShared(); // of views: the memory is given to others later
    var data = new DeviceData(type, blocks.address(0), count, gpu.device().ordinal(), life.scope());
    rank.checks().opened(data);
    return new CudaRegion(rank, type, data, isLeader(), owner(number, blocks, data, life));
  }

  private Region.Owner owner(int number, CudaIpcBlocks blocks, DeviceData data, Arena life) {
    return new Region.Owner() {
      @Override
      public void fence() {
        communicator.checkUsable("fence");
        calls.checkSameFence(gather("fence", Purpose.DEVICE_FENCE, number), host.rank());
      }

      @Override
      public void close() {
        rank.checkUnused("region", data);
        life.close();
        blocks.close();
      }
    };
  }

  @Override
  public RegisteredMemory register(DeviceData data) {
    communicator.checkUsable("register");
    Gpu gpu = openGpu();
    try {
      CudaIpcBlocks.Block own = CudaIpcBlocks.Block.none(() -> {});
      IllegalArgumentException wrong = null;
      try {
        own = lent(data);
      } catch (IllegalArgumentException e) { // the others must hear of it
        wrong = e;
      } catch (BackendException e) {
        throw communicator.breakWith(e);
      }
      long[][] all = offers(data, wrong);
      int number = ++made; // a key is used once, also one that fails
      CudaIpcBlocks blocks = open("register", key + "/registered/" + number, gpu, own);
      return new Registered(all, gpu, blocks, "/over/" + number);
    } catch (Throwable thrown) {
      gpu.close();
      throw thrown;
    }
  }

  private CudaIpcBlocks.Block lent(DeviceData data) {
    rank.checks().check("register", data);
    communicator.checkLent("register", data);
    return data.bytes() > 0
        ? new CudaIpcBlocks.Block(data.address(), rank.checks().allocation(data), () -> {})
        : CudaIpcBlocks.Block.none(() -> {});
  }

  /// {@return of each rank the type and how many elements}
  ///
  /// @param wrong what is wrong with this rank's, or null
  private long[][] offers(DeviceData data, @Nullable IllegalArgumentException wrong) {
    long[][] all =
        gather(
            "register",
            Purpose.REGISTER,
            data.type().id(),
            data.bytes() == 0 ? 0 : data.count(),
            wrong == null ? 1 : 0);
    if (wrong != null) {
      throw wrong;
    }
    for (int each = 0; each < all.length; each++) {
      if (all[each][2] == 0) {
        throw new TransportFailedException(
            "register: rank %d's data can't be lent; see the exception on that rank"
                .formatted(each),
            null);
      }
    }
    return all;
  }

  /// Opens it for what outlives the communicators, and perhaps the rank's last one.
  private Gpu openGpu() {
    return Gpu.open(
        rank.driver(), rank.device().ordinal(), rank.process(), rank.config().timeout());
  }

  /// What this rank's device reaches of everybody's memory.
  private final class Registered implements RegisteredMemory {
    private final long[][] offers;
    private final Gpu gpu;
    private final CudaIpcBlocks blocks;
    private final String over;
    private final Arena life = Arena.ofShared(); // of views
    private boolean closed; // guarded by this

    /// @param offers of each rank: the type and how many elements
    /// @param gpu open until this is closed, also where the rank's last communicator is before
    /// @param over a key of the session
    Registered(long[][] offers, Gpu gpu, CudaIpcBlocks blocks, String over) {
      this.offers = offers;
      this.gpu = gpu;
      this.blocks = blocks;
      this.over = over;
      for (int each = 0; each < offers.length; each++) {
        rank.checks().opened(view(each));
      }
    }

    @Override
    public synchronized DeviceData data(int each) {
      if (closed) {
        throw new IllegalStateException("registered memory is closed");
      }
      Objects.checkIndex(each, offers.length);
      return view(each);
    }

    private DeviceData view(int each) {
      return new DeviceData(
          DataType.ofId((int) offers[each][0]),
          blocks.address(each),
          offers[each][1],
          rank.device().ordinal(),
          life.scope());
    }

    @Override
    public void close() {
      List<DeviceData> views;
      synchronized (this) {
        if (closed) {
          return;
        }
        views =
            IntStream.range(0, offers.length)
                .filter(each -> each != host.rank()) // its own it frees itself
                .mapToObj(this::view)
                .toList();
        closed = true;
        life.close();
      }
      try (gpu) {
        blocks.close();
        long endNs = System.nanoTime() + rank.config().timeout().toNanos();
        awaitUnused(views, endNs);
        awaitClosed(endNs);
      }
      try {
        members.agree(
            over,
            IntStream.range(0, members.size()).boxed().toList(),
            new byte[0],
            rank.config().timeout());
      } catch (CollectiveTimeoutException e) {
        throw late("RegisteredMemory.close()", e);
      }
    }

    /// Calls of this rank's may be at what ranks of this process have lent, which is no import that
    /// could not be closed.
    private void awaitUnused(List<DeviceData> views, long endNs) {
      while (views.stream().anyMatch(each -> rank.userOf(each) != null)) {
        if (System.nanoTime() - endNs >= 0) {
          throw inUse();
        }
        if (Thread.currentThread().isInterrupted()) {
          throw interrupted();
        }
        LockSupport.parkNanos(this, DeviceCall.SHORT_NS);
      }
    }

    private TransportFailedException inUse() {
      return new TransportFailedException(
          "RegisteredMemory.close(): rank %d has had calls in flight for %.1f s, for which the driver would wait; await them first"
              .formatted(host.rank(), rank.config().timeout().toNanos() / 1e9),
          null);
    }

    private static InterruptedCallException interrupted() {
      return new InterruptedCallException("RegisteredMemory.close() was interrupted");
    }

    /// Who hears that all have come may free what was lent.
    private void awaitClosed(long endNs) {
      try {
        if (!blocks.awaitClosed(Duration.ofNanos(Math.max(0, endNs - System.nanoTime())))) {
          throw inUse();
        }
      } catch (InterruptedException _) {
        Thread.currentThread().interrupt();
        throw interrupted();
      }
    }
  }

  // --- together; what fails here, fails on all ranks ---

  private long[][] gather(String label, Purpose purpose, long... mine) {
    return calls.run(label, each -> each.gatherInNode(label, purpose, mine));
  }

  private CudaIpcBlocks open(String what, String key, Gpu gpu, CudaIpcBlocks.Block own) {
    Duration timeout = rank.config().timeout();
    try {
      return CudaIpcBlocks.open(members, key, rank.driver(), rank.process(), gpu, own, timeout);
    } catch (BackendUnavailableException e) { // on all ranks alike
      throw new TransportFailedException("%s: %s; %s".formatted(what, e.reason(), e.remedy()), e);
    } catch (CollectiveTimeoutException e) {
      throw communicator.breakWith(late(what, e));
    } catch (CommException e) {
      throw communicator.breakWith(e);
    }
  }

  private CollectiveTimeoutException late(String what, CollectiveTimeoutException e) {
    return new CollectiveTimeoutException(
        e.missing(),
        "rank %d waited %.1f s in %s of '%s' for rank(s) %s, who have not come; raise COMM_TIMEOUT if they may take longer"
            .formatted(
                host.rank(),
                rank.config().timeout().toNanos() / 1e9,
                what,
                host.name(),
                e.missing()));
  }
}
