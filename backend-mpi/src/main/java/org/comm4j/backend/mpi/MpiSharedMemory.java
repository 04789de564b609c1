package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import org.comm4j.api.BackendException;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.UnsupportedException;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.engine.HostRegion;
import org.comm4j.core.engine.Region;
import org.jspecify.annotations.Nullable;

/// Regions that the ranks of a host share: windows of `MPI_Win_allocate_shared`, all memory on the
/// leader.
///
/// The library frees a window collectively, but a region is closed by each rank for itself. So a
/// window is freed when the host's ranks make the next region and all have closed it.
final class MpiSharedMemory implements SharedMemoryProvider {
  private static final long NODE_SCOPE = 1L << 62; // of a communicator's host groups
  private static final int CLOSED = 2; // words before those that say what is closed

  private final MpiCommunicator parent;
  private final List<Integer> ranksHere;
  private final List<Window> windows = new ArrayList<>(); // in the order in which they were made
  private @Nullable MpiCommunicator node;

  MpiSharedMemory(MpiCommunicator parent) {
    this.parent = parent;
    this.ranksHere = parent.group().ranksHere();
  }

  @Override
  public NodeCommunicator splitLocal() {
    parent.group().checkUsable("splitLocal");
    return new NodeCommunicator() {
      @Override
      public int rank() {
        return ranksHere.indexOf(parent.rank());
      }

      @Override
      public int size() {
        return ranksHere.size();
      }

      @Override
      public void barrier() {
        parent.group().checkUsable("barrier");
        if (size() > 1) {
          gather(CallSignature.Purpose.FENCE, 0);
        }
      }
    };
  }

  /// The host's ranks as a communicator; a collective of them the first time.
  private MpiCommunicator node() {
    MpiCommunicator group = node;
    if (group == null) {
      MpiGroup all = parent.group();
      meet(all);
      long sinceNs = System.nanoTime();
      Runnable patience = () -> all.checkPatience("createRegion", sinceNs);
      long comm =
          all.make("createRegion", ranksHere, () -> Comms.ofRanks(all.collectives(), ranksHere));
      int[] members = ranksHere.stream().mapToInt(rank -> all.members()[rank]).toArray();
      String name = "node/" + Long.toHexString(all.scope());
      group =
          new MpiCommunicator(
              new MpiGroup(
                  all.job(),
                  name,
                  all.scope() | NODE_SCOPE,
                  members,
                  comm,
                  Comms.duplicate(comm, patience)));
      group.group().follow(all);
      node = group;
    }
    return group;
  }

  /// Waits until the host's ranks are here: the library makes a group in a blocking function, where
  /// nobody could be given up.
  private void meet(MpiGroup all) {
    Exchange exchange = new Exchange(all, "createRegion", Tags.CLOSED + 2, DataType.UINT8);
    for (int peer : ranksHere) {
      exchange.send(peer, MemorySegment.NULL, 0, 0);
      exchange.receive(peer, MemorySegment.NULL, 0, 0);
    }
    MpiCall meeting =
        new MpiCall(
            all,
            "createRegion",
            0,
            new CallMemory(all.job().memory(), all.staging(), null),
            List.of(exchange)) {
          @Override
          boolean isCollective() {
            return false; // other hosts' ranks have no part in it
          }

          @Override
          void missing(BitSet ranks) {
            ranksHere.forEach(ranks::set);
            ranks.clear(group.rank());
          }
        };
    all.lock();
    try {
      all.checkUsable("createRegion");
      all.start(meeting);
    } finally {
      all.unlock();
    }
    meeting.await(Long.MAX_VALUE);
  }

  /// What fails among the host's ranks breaks the communicator as every call of it does.
  private long[][] gather(CallSignature.Purpose purpose, long... mine) {
    parent.group().checkUsable(purpose.name().toLowerCase(Locale.ROOT));
    try {
      return node().gather(purpose, mine);
    } catch (CommException failure) {
      throw broken(failure);
    }
  }

  /// Breaks the communicator.
  ///
  /// @return what has broken it; another rank may have been first
  private CommException broken(CommException failure) {
    parent.abort(failure);
    CommException first = parent.failure();
    return first == null ? failure : first; // it was closed meanwhile
  }

  @Override
  public SharedRegion<HostData> createRegion(DataType type, long count) {
    long ignored = type.bytes(count); // who wants too much hears of it before others wait
    parent.group().checkUsable("createRegion");
    MpiJob job = parent.group().job();
    if (ranksHere.size() == 1) {
      return HostRegion.ofOne(
          type, count, whole -> job.checkUnused(whole.segment(), "region", whole));
    }
    if (!job.sharesMemory()) {
      throw new UnsupportedException(Abilities.notShared());
    }
    long[][] all = gather(CallSignature.Purpose.REGION, words(type, count));
    check(all, type, count);
    Window window =
        parent
            .group()
            .make("createRegion", ranksHere, () -> replace(closedByAll(all), type, count));
    return new HostRegion(window.data, isLeader(), window);
  }

  /// Frees what all have closed and makes the next one; the library waits for the host's ranks.
  /// What fails here alone would leave the others waiting in it.
  private Window replace(BitSet closedByAll, DataType type, long count) {
    try {
      for (int i = closedByAll.length() - 1; i >= 0; i = closedByAll.previousSetBit(i - 1)) {
        windows.remove(i).free();
      }
      Window window = new Window(node().group().collectives(), isLeader(), type, count);
      windows.add(window);
      return window;
    } catch (BackendException e) {
      throw broken(
          new TransportFailedException(
              "createRegion: %d bytes could not be shared by the ranks of this host: %s"
                  .formatted(type.bytes(count), e.getMessage()),
              e));
    }
  }

  private void check(long[][] all, DataType type, long count) {
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] != type.id() || all[rank][1] != count) {
        throw broken(
            new MismatchedCallException(
                "rank %d of the host creates a region of %s × %d but rank %d one of %s × %d"
                    .formatted(
                        rank,
                        DataType.ofId((int) all[rank][0]),
                        all[rank][1],
                        ranksHere.indexOf(parent.rank()),
                        type,
                        count)));
      }
    }
  }

  /// What the next region is to be, and behind it which of the windows this rank has closed, as
  /// bits.
  private long[] words(DataType type, long count) {
    BitSet closed = new BitSet();
    for (int i = 0; i < windows.size(); i++) {
      closed.set(i, windows.get(i).closed);
    }
    long[] words = new long[CLOSED + Math.ceilDiv(windows.size(), Long.SIZE)];
    words[0] = type.id();
    words[1] = count;
    long[] bits = closed.toLongArray();
    System.arraycopy(bits, 0, words, CLOSED, bits.length);
    return words;
  }

  private static BitSet closedByAll(long[][] all) {
    return Arrays.stream(all)
        .map(words -> BitSet.valueOf(Arrays.copyOfRange(words, CLOSED, words.length)))
        .reduce((a, b) -> {
          a.and(b);
          return a;
        })
        .orElseThrow();
  }

  /// What is still open stays until the JVM ends.
  void close() {
    MpiCommunicator group = node;
    if (group != null) {
      group.close();
    }
  }

  /// Memory that the library shares between the ranks of a host.
  private final class Window implements Region.Owner {
    private final Arena arena = Arena.ofShared();
    private final long handle;
    private final HostData data;
    private volatile boolean closed;

    /// @param hasAll whether all of it is this rank's, and not another's
    Window(long comm, boolean hasAll, DataType type, long count) {
      long bytes = type.bytes(count);
      long own = hasAll ? bytes : 0;
      Constants constants = Functions.constants();
      try (Arena temporary = Arena.ofConfined()) {
        MemorySegment address = temporary.allocate(ADDRESS);
        MemorySegment made = temporary.allocate(JAVA_LONG);
        Errors.check(
            Mpi.winAllocateShared(own, 1, constants.infoNull, comm, address, made),
            "MPI_Win_allocate_shared");
        handle = Handles.get(made);
        Errors.check( // its errors would end the job else, unlike those of communicators
            Mpi.winSetErrhandler(handle, constants.errorsReturn), "MPI_Win_set_errhandler");
        Errors.check(
            Mpi.winSharedQuery(
                handle, 0, temporary.allocate(JAVA_LONG), temporary.allocate(JAVA_INT), address),
            "MPI_Win_shared_query");
        Errors.check(Mpi.winLockAll(constants.modeNocheck, handle), "MPI_Win_lock_all");
        data = CommData.of(type, address.get(ADDRESS, 0).reinterpret(bytes, arena, null));
      } catch (BackendException e) {
        arena.close();
        throw e;
      }
    }

    @Override
    public void fence() {
      Errors.check(Mpi.winSync(handle), "MPI_Win_sync");
      splitLocal().barrier();
      Errors.check(Mpi.winSync(handle), "MPI_Win_sync");
    }

    @Override
    public void close() {
      parent.group().job().closeUnused(arena, data.segment(), "region", data);
      closed =
          !CallMemory.isLost(
              data.segment()); // to which a call that failed may still have the library
    }

    /// A collective of the host's ranks.
    void free() {
      try (Arena temporary = Arena.ofConfined()) {
        Errors.check(Mpi.winUnlockAll(handle), "MPI_Win_unlock_all");
        MemorySegment window = temporary.allocate(JAVA_LONG);
        Handles.set(window, 0, handle);
        Errors.check(Mpi.winFree(window), "MPI_Win_free");
      }
    }
  }
}
