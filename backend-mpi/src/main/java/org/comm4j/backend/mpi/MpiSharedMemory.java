package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.comm4j.api.BackendException;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.UnsupportedException;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.engine.HostCalls;
import org.comm4j.core.engine.HostRegion;
import org.comm4j.core.engine.Region;
import org.jspecify.annotations.Nullable;

/// Regions that the ranks of a host share: windows of `MPI_Win_allocate_shared`, all memory on the
/// leader.
///
/// A region is closed by each rank for itself; when the library frees its window [ClosedWindows]
/// tells.
final class MpiSharedMemory implements SharedMemoryProvider {
  private static final long NODE_SCOPE = 1L << 62; // of a communicator's host groups
  private static final AtomicLong NUMBERS = new AtomicLong(); // of this process's windows
  private static final Path MEMORY = Path.of("/dev/shm"); // where the libraries have such windows
  private static final int MORE_BYTES = 8 << 10; // a page that is begun, and one of the library's
  private static final int NUMBER = 2; // the word with a window's number
  private static final int CLOSED = 3; // the word with how many windows this rank has closed
  private static final int FREE = 4; // the word with how many bytes this rank has free

  private final MpiCommunicator parent;
  private final List<Integer> ranksHere;
  private final HostCalls<MpiCommunicator> calls;
  private final LongSupplier freeBytes;
  private @Nullable MpiCommunicator node;

  MpiSharedMemory(MpiCommunicator parent) {
    this(parent, MpiSharedMemory::freeBytes);
  }

  /// @param freeBytes how many there are for windows
  MpiSharedMemory(MpiCommunicator parent, LongSupplier freeBytes) {
    this.parent = parent;
    this.freeBytes = freeBytes;
    this.ranksHere = parent.group().ranksHere();
    this.calls = new HostCalls<>(parent, parent.group().members(), this::node, ranksHere::get);
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
          meetFor(CallSignature.Purpose.NODE_BARRIER, 0);
        }
      }
    };
  }

  /// Returns when all ranks of the host are there, for the same.
  ///
  /// @param number of the region that is fenced; 0 in the barrier
  private void meetFor(CallSignature.Purpose purpose, long number) {
    calls.checkSameFence(gather(purpose, number), ranksHere.indexOf(parent.rank()));
  }

  /// The host's ranks as a communicator; a collective of them the first time.
  private MpiCommunicator node(String label) {
    MpiCommunicator group = node;
    if (group == null) {
      MpiGroup all = parent.group();
      meet(label, all);
      Runnable patience = all.patience(label);
      long comm = all.make(label, ranksHere, () -> Comms.ofRanks(all.collectives(), ranksHere));
      String name = "node/" + Long.toHexString(all.scope());
      group =
          new MpiCommunicator(
              new MpiGroup(
                  all.job(),
                  name,
                  all.scope() | NODE_SCOPE,
                  membersHere(),
                  comm,
                  Comms.duplicate(comm, patience)));
      group.group().follow(all);
      node = group;
    }
    return group;
  }

  /// The host's ranks in the MPI job.
  private int[] membersHere() {
    return ranksHere.stream().mapToInt(rank -> parent.group().members()[rank]).toArray();
  }

  /// Waits until the host's ranks are here: the library makes a group in a blocking function, where
  /// nobody could be given up.
  private void meet(String label, MpiGroup all) {
    Exchange exchange = new Exchange(all, label, Tags.CLOSED + 2, DataType.UINT8);
    for (int peer : ranksHere) {
      exchange.send(peer, MemorySegment.NULL, 0, 0);
      exchange.receive(peer, MemorySegment.NULL, 0, 0);
    }
    MpiCall meeting =
        new MpiCall(
            all,
            label,
            0,
            new CallMemory(all.job().memory(), all.staging(), null),
            List.of(exchange)) {
          @Override
          boolean isCollective() {
            return false; // other hosts' ranks have no part in it
          }

          @Override
          void missing(BitSet ranks) {
            Requests own = running();
            if (own != null) {
              exchange.missing(own, ranks);
            }
          }

          @Override
          List<Integer> neededOf(Leavers leavers) {
            return leavers.amongst(ranksHere); // also who has come: it must make the group too
          }
        };
    all.lock();
    try {
      all.checkUsable(label);
      all.start(meeting);
    } finally {
      all.unlock();
    }
    meeting.await(Long.MAX_VALUE);
  }

  private long[][] gather(CallSignature.Purpose purpose, long... mine) {
    return inNode(purpose.label(), group -> group.gather(purpose, mine));
  }

  /// Runs a call among the ranks of this host. What fails there breaks the communicator as every
  /// call of it does.
  private <T> T inNode(String label, Function<MpiCommunicator, T> call) {
    parent.group().checkUsable(label);
    return calls.run(label, call);
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
    long[][] all;
    try (ClosedWindows.Chosen closed = Library.closedWindows().choose(membersHere())) {
      all =
          gather(
              CallSignature.Purpose.REGION,
              type.id(),
              count,
              nextNumber(),
              closed.count(),
              freeBytes.getAsLong());
      calls.checkSame(all, type, count);
      free(closed, all);
    }
    checkRoom(type.bytes(count), all[0][FREE]);
    Window window =
        parent.group().make("createRegion", ranksHere, () -> window(type, count, all[0][NUMBER]));
    return new HostRegion(window.data, isLeader(), window);
  }

  /// Where there is too little, a library may wait for ever, or make a window in which a store
  /// faults. So all ranks look first at what the leader has, and go on or not together.
  ///
  /// @param before what the leader had before windows were freed
  private void checkRoom(long bytes, long before) {
    if (fits(bytes, before)) {
      return;
    }
    long free = gather(CallSignature.Purpose.REGION, freeBytes.getAsLong())[0][0];
    if (!fits(bytes, free)) {
      throw new TransportFailedException(
          "createRegion: %d bytes do not fit in %s of this host, which has %d free; remove what is in it, or make it larger (with Docker --shm-size)"
              .formatted(bytes, MEMORY, free),
          null);
    }
  }

  private static boolean fits(long bytes, long free) {
    return bytes <= free - MORE_BYTES;
  }

  private static long freeBytes() {
    try {
      return Files.getFileStore(MEMORY).getUsableSpace();
    } catch (IOException _) {
      return Long.MAX_VALUE; // then the library has to say it
    }
  }

  /// Proposes a number for a window; the leader's is taken.
  private long nextNumber() {
    int rank = parent.group().members()[parent.rank()];
    return NUMBERS.incrementAndGet() * parent.group().job().session().size() + rank;
  }

  private void free(ClosedWindows.Chosen closed, long[][] all) {
    int most = Arrays.stream(all).mapToInt(words -> (int) words[CLOSED]).max().orElseThrow();
    inNode(
        "createRegion",
        group -> {
          closed.free(group, most, CallSignature.Purpose.REGION, "createRegion");
          return group;
        });
  }

  /// Makes a window; the library waits for the host's ranks. What fails here alone would leave the
  /// others waiting in it.
  private Window window(DataType type, long count, long number) {
    try {
      return new Window(node("createRegion").group(), isLeader(), type, count, number);
    } catch (BackendException e) {
      throw calls.broken(
          new TransportFailedException(
              "createRegion: %d bytes could not be shared by the ranks of this host: %s"
                  .formatted(type.bytes(count), e.getMessage()),
              e));
    }
  }

  /// Ends the calls on regions; these stay until each rank has closed them ([ClosedWindows]).
  void close() {
    MpiCommunicator group = node;
    if (group != null) {
      group.close();
    }
  }

  /// Memory that the library shares between the ranks of a host.
  ///
  /// If the library makes it but refuses what comes then, it stays until the process ends: its
  /// ranks could free it only together, and the communicator by which they would agree is broken.
  private final class Window implements Region.Owner {
    private final Arena arena = Arena.ofShared();
    private final ClosedWindows.Window window;
    private final HostData data;

    /// @param hasAll whether all of it is this rank's, and not another's
    /// @param number by which its ranks know it
    Window(MpiGroup node, boolean hasAll, DataType type, long count, long number) {
      long bytes = type.bytes(count);
      long own = hasAll ? bytes : 0;
      Constants constants = Functions.constants();
      try (Arena temporary = Arena.ofConfined()) {
        MemorySegment address = temporary.allocate(ADDRESS);
        MemorySegment made = temporary.allocate(JAVA_LONG);
        Errors.check(
            Mpi.winAllocateShared(own, 1, constants.infoNull, node.collectives(), address, made),
            "MPI_Win_allocate_shared");
        long handle = Handles.get(made);
        Errors.check( // its errors would end the job else, unlike those of communicators
            Mpi.winSetErrhandler(handle, constants.errorsReturn), "MPI_Win_set_errhandler");
        Errors.check(
            Mpi.winSharedQuery(
                handle, 0, temporary.allocate(JAVA_LONG), temporary.allocate(JAVA_INT), address),
            "MPI_Win_shared_query");
        Errors.check(Mpi.winLockAll(constants.modeNocheck, handle), "MPI_Win_lock_all");
        data = CommData.of(type, address.get(ADDRESS, 0).reinterpret(bytes, arena, null));
        window =
            new ClosedWindows.Window(number, IntStream.of(node.members()).boxed().toList(), handle);
      } catch (BackendException e) {
        arena.close();
        throw e;
      }
    }

    @Override
    public void fence() {
      Errors.check(Mpi.winSync(window.handle()), "MPI_Win_sync");
      meetFor(CallSignature.Purpose.FENCE, window.number());
      Errors.check(Mpi.winSync(window.handle()), "MPI_Win_sync");
    }

    @Override
    public void close() {
      parent.group().job().closeUnused(arena, data.segment(), "region", data);
      if (!CallMemory.isLost(data.segment())) { // else a call that failed may have left it there
        Library.closedWindows().add(window);
      }
    }
  }
}
