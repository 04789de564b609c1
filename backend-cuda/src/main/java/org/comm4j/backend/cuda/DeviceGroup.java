package org.comm4j.backend.cuda;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.locks.ReentrantLock;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// A communicator's ranks as their devices see them, where kernels reach the memory of all of them:
/// the windows and what kernels say to the host.
final class DeviceGroup implements AutoCloseable {
  /// How much data of one rank a call of low latency can have.
  static final long LINE_BYTES = 16 << 10;

  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final int BLOCK_BYTES = Control.BYTES + Arrivals.BYTES;

  private final CudaRank rank;
  private final boolean isOneProcess;
  private final int maxBlocks;
  private final int arch;
  private final CudaDevice.Stream stream;
  private final CudaIpcMemory memory;
  private final Window layout;
  private final CudaDevice.HostMemory block; // for the two that follow
  private final Control control;
  private final Arrivals arrivals;
  private final Object words = new Object(); // never held while the driver is called
  private boolean closed; // guarded by words
  private final ReentrantLock leaving = new ReentrantLock();
  private boolean isOver; // guarded by leaving: no call is given up any more
  private volatile boolean hasLeft;

  private DeviceGroup(
      CudaRank rank,
      List<Offer> offers,
      CudaDevice.Stream stream,
      CudaIpcMemory memory,
      Window layout,
      CudaDevice.HostMemory block) {
    this.rank = rank;
    this.isOneProcess = offers.stream().allMatch(offer -> offer.process.equals(rank.process()));
    this.maxBlocks = Math.max(1, offers.stream().mapToInt(Offer::blocks).min().orElseThrow());
    this.arch = offers.stream().mapToInt(Offer::arch).min().orElseThrow();
    this.stream = stream;
    this.memory = memory;
    this.layout = layout;
    this.block = block;
    this.control = new Control(block.segment().asSlice(0, Control.BYTES));
    control.segment().fill((byte) 0);
    this.arrivals =
        new Arrivals(rank, memory, layout, block.segment().asSlice(Control.BYTES, Arrivals.BYTES));
  }

  /// Opens this rank's part; a collective of the communicator's ranks.
  ///
  /// @param members the session as those ranks see it
  /// @param key used once, the same on all of them
  /// @param stream for kernels; not closed with the group
  /// @return the caller closes it; null on all ranks where data goes through the host
  /// @throws BackendUnavailableException on all ranks, if the ranks can't reach each other's memory
  ///   and it is told not to go through the host
  static @Nullable DeviceGroup open(
      CudaRank rank, Session members, String key, CudaDevice.Stream stream) {
    List<Offer> offers =
        members.exchange(key + "/device", Offer.of(rank).bytes(), rank.config().timeout()).stream()
            .map(Offer::of)
            .toList();
    checkAlike(offers);
    if (rank.options().path() == CudaOptions.Path.NAIVE) {
      return null;
    }
    try {
      checkFit(offers);
      return reach(rank, offers, members, key, stream);
    } catch (BackendUnavailableException e) {
      if (rank.options().path() == CudaOptions.Path.P2P) {
        throw e;
      }
      if (members.rank() == 0) {
        LOG.log(
            System.Logger.Level.INFO,
            "devices go through the host: {0}; {1}",
            e.reason(),
            e.remedy());
      }
      return null;
    }
  }

  private static void checkFit(List<Offer> offers) {
    if (offers.size() > Window.MAX_RANKS) {
      throw new BackendUnavailableException(
          CudaProvider.NAME,
          "%d ranks (expected: at most %d)".formatted(offers.size(), Window.MAX_RANKS),
          "split the communicator, or let data go through the host (COMM_CUDA_PATH=auto)");
    }
    if (offers.size() > 1 && offers.stream().anyMatch(offer -> offer.blocks == 0)) {
      throw new BackendUnavailableException(
          CudaProvider.NAME,
          "a device has fewer multiprocessors than ranks, whose kernels wait for each other",
          "start fewer ranks for it, or let data go through the host (COMM_CUDA_PATH=auto)");
    }
  }

  private static DeviceGroup reach(
      CudaRank rank, List<Offer> offers, Session members, String key, CudaDevice.Stream stream) {
    long chunk = rank.options().chunkBytes();
    long scratch = Window.partBytes(chunk, members.size()) + chunk;
    var layout = new Window(members.size(), LINE_BYTES, Math.ceilDiv(scratch, 256) * 256);
    CudaDevice.HostMemory block = rank.gpu().hostMemory().take(BLOCK_BYTES);
    try {
      CudaIpcMemory memory =
          CudaIpcMemory.open(
              members,
              key,
              rank.driver(),
              rank.device().ordinal(),
              layout,
              rank.process(),
              rank.config().timeout());
      return new DeviceGroup(rank, offers, stream, memory, layout, block);
    } catch (RuntimeException e) {
      rank.gpu().hostMemory().giveBack(BLOCK_BYTES, block);
      throw e;
    }
  }

  /// What a rank tells the others of itself.
  ///
  /// @param arch its device's compute capability
  /// @param blocks how many a kernel of its can have, so that those of all ranks of its device are
  ///   there at the same time; 0 if they can't be
  private record Offer(UUID process, int arch, int blocks, long chunkBytes, int path) {
    private static final int BYTES = 16 + 4 + 4 + 8 + 4;

    static Offer of(CudaRank rank) {
      return new Offer(
          rank.process(),
          rank.device().capability(),
          blocks(rank),
          rank.options().chunkBytes(),
          rank.options().path().ordinal());
    }

    /// A block needs a multiprocessor. Half of them are for other communicators and the program.
    private static int blocks(CudaRank rank) {
      int most = Math.min(rank.device().multiprocessors(), Window.MAX_BLOCKS);
      int wanted = rank.options().maxBlocks();
      int all = wanted == 0 ? most / 2 : Math.min(wanted, most);
      int sharing = rank.ranksOnDevice();
      return sharing > most ? 0 : Math.max(1, all / sharing);
    }

    static Offer of(byte[] bytes) {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      return new Offer(
          new UUID(in.getLong(), in.getLong()),
          in.getInt(),
          in.getInt(),
          in.getLong(),
          in.getInt());
    }

    byte[] bytes() {
      return ByteBuffer.allocate(BYTES)
          .putLong(process.getMostSignificantBits())
          .putLong(process.getLeastSignificantBits())
          .putInt(arch)
          .putInt(blocks)
          .putLong(chunkBytes)
          .putInt(path)
          .array();
    }
  }

  private static void checkAlike(List<Offer> offers) {
    Offer first = offers.getFirst();
    for (int rank = 1; rank < offers.size(); rank++) {
      Offer other = offers.get(rank);
      if (other.chunkBytes != first.chunkBytes || other.path != first.path) {
        throw new JoinException(
            JoinException.Reason.CONFIGURATION,
            "COMM_CUDA_CHUNK is %d and COMM_CUDA_PATH %s on rank 0 but %d and %s on rank %d (expected: the same on all ranks)"
                .formatted(
                    first.chunkBytes,
                    CudaOptions.Path.values()[first.path],
                    other.chunkBytes,
                    CudaOptions.Path.values()[other.path],
                    rank));
      }
    }
  }

  /// {@return whether all ranks are of this process, so that an address means the same to all}
  boolean isOneProcess() {
    return isOneProcess;
  }

  /// {@return how many blocks a kernel may have; the same on all ranks}
  int maxBlocks() {
    return maxBlocks;
  }

  /// {@return the lowest compute capability of the ranks' devices}
  int arch() {
    return arch;
  }

  CudaDevice.Stream stream() {
    return stream;
  }

  /// {@return everybody's windows}
  CudaIpcMemory memory() {
    return memory;
  }

  /// {@return what is where in a window}
  Window layout() {
    return layout;
  }

  /// {@return parameters for this rank's kernels}
  Parameters parameters() {
    return memory.parameters(control.segment().address(), rank.config().timeout().toNanos());
  }

  /// {@return what kernels have said}
  Control control() {
    return control;
  }

  /// {@return who has come to the kernels}
  Arrivals arrivals() {
    return arrivals;
  }

  /// Makes kernels leave where the communicator is broken, and all blocks of a kernel where one has
  /// left: the others may wait for what will not come any more. Who is late they find out
  /// themselves.
  void abort(boolean isBroken) {
    synchronized (words) {
      if (closed) {
        return;
      }
      boolean hasLeft =
          switch (control.outcome()) {
            case DONE, LATE -> false;
            case ABORTED, MISMATCH, LEFT -> true;
          };
      if (isBroken || hasLeft) {
        control.abort();
      }
    }
  }

  /// {@return whether a kernel has left before its end}
  boolean isLeftEarly() {
    synchronized (words) {
      return !closed && control.outcome() != Control.Outcome.DONE;
    }
  }

  /// Gives up calls whose kernels have not ended, before the program hears that they are over and
  /// uses their memory. Once is enough, as the group is not used again; who comes meanwhile waits.
  void leave() {
    leaving.lock();
    try {
      if (hasLeft || isOver) {
        return;
      }
      hasLeft = true; // first: who sees that a kernel has ended must know that it may not have come
      control.abort();
      memory.leave(control.segment().address());
    } finally {
      leaving.unlock();
    }
  }

  /// {@return whether calls were given up: kernels that end afterwards may have done nothing, and
  /// say nothing}
  boolean hasLeft() {
    return hasLeft;
  }

  /// Lets no more calls be given up, which is done before [#close].
  ///
  /// @return false if that still goes on, as on a device that is stuck, and writes into memory of
  ///   this rank and others, or what [#arrivals] reads does
  boolean endLeaving() {
    if (!leaving.tryLock()) {
      return false;
    }
    try {
      isOver = memory.hasLeft() && arrivals.end();
      return isOver;
    } finally {
      leaving.unlock();
    }
  }

  /// Gives everything back; none of this rank's kernels may run any more, and no call be given up.
  @Override
  public void close() {
    synchronized (words) {
      if (closed) {
        return;
      }
      closed = true;
    }
    rank.gpu().hostMemory().giveBack(BLOCK_BYTES, block);
    memory.close();
  }
}
