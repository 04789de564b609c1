package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.CallSignature;
import org.jspecify.annotations.Nullable;

/// Opens the communicator of all ranks of a launch.
final class World {
  private World() {}

  static BackendCommunicator open(MpiLibrary library, Session session, CommConfig config) {
    long endNs = System.nanoTime() + config.joinTimeout().toNanos();
    Runnable patience = () -> checkAllCome(session, endNs);
    initialise(library, config, patience);
    Library.jobStarted(config.timeout().toNanos());
    MpiGroup group = null;
    try {
      MpiJob job = new MpiJob(session, config, Wait.agree(session, config));
      long world = copy(patience);
      checkTags(library, world);
      int[] members = IntStream.range(0, session.size()).toArray();
      group = new MpiGroup(job, "world", 0, members, world, Comms.duplicate(world, patience));
      MpiCommunicator communicator = new MpiCommunicator(group);
      new SameBits(group, patience).probe("open");
      probeSharing(job, communicator);
      Library.jobOpened();
      return communicator;
    } catch (Throwable thrown) {
      end(group);
      if (areAbsent(thrown, session)) {
        Library.markAbsent();
      }
      throw thrown;
    }
  }

  /// Whether an open has failed since ranks are gone, or have not come. The others end in order,
  /// and who has failed waits for that.
  static boolean areAbsent(Throwable thrown, Session session) {
    return thrown instanceof CollectiveTimeoutException
        || session.news().failures().stream().anyMatch(each -> !each.left());
  }

  /// A copy of the library's world; who gives it up has lost that.
  private static long copy(Runnable patience) {
    boolean isOver = false;
    try {
      long copy = Comms.duplicate(Functions.constants().commWorld, patience);
      isOver = true;
      return copy;
    } finally {
      if (!isOver) {
        Library.loseWorld();
      }
    }
  }

  /// Initialises the library and holds what it says of this process against the launch.
  ///
  /// @param patience throws if other ranks are not to be waited for any longer
  /// @throws BackendUnavailableException if they differ
  static void initialise(MpiLibrary library, CommConfig config, Runnable patience) {
    Library.initialise(library, ThreadLevel.of(config), patience);
    long world = Functions.constants().commWorld;
    int rank = Errors.ask("MPI_Comm_rank", answer -> Mpi.commRank(world, answer));
    int size = Errors.ask("MPI_Comm_size", answer -> Mpi.commSize(world, answer));
    int launchRank = config.rank().orElse(0);
    int launchSize = config.worldSize().orElse(1);
    if (rank != launchRank || size != launchSize) {
      throw new BackendUnavailableException(
          MpiProvider.NAME,
          "%s (%s) says this process is rank %d of %d, but its launch%s says rank %d of %d"
              .formatted(
                  library.version(),
                  library.file(),
                  rank,
                  size,
                  config.launcher().isEmpty() ? "" : " (" + config.launcher() + ")",
                  launchRank,
                  launchSize),
          "start the ranks with the launcher that belongs to the library (comm-cli run --backend mpi does), or"
              + " name the launcher's library with COMM_MPI_LIBRARY");
    }
  }

  /// Ends a job that has not opened; what the library has made stays, since ranks may be at it.
  ///
  /// @param group its only one, or null before it is made
  private static void end(@Nullable MpiGroup group) {
    if (group == null) {
      Library.jobEnded();
    } else {
      var _ = group.close();
      group.job().remove(group);
    }
  }

  /// Throws if the others are not to be waited for any longer.
  static void checkAllCome(Session session, long endNs) {
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedCallException(
          "opening a communicator was interrupted on rank " + session.rank());
    }
    List<Session.Failure> failures = session.news().failures();
    if (!failures.isEmpty()) {
      Session.Failure first = failures.getFirst();
      throw new PeerFailedException(
          List.of(first.rank()), List.of(first.rank()), first.evidence(), first.cause());
    }
    if (System.nanoTime() - endNs >= 0) {
      throw new CollectiveTimeoutException(
          List.of(), "not all ranks have opened their communicator; raise COMM_JOIN_TIMEOUT");
    }
  }

  /// Lets the ranks of a job agree on where they meet.
  static CommConfig meet(MpiLibrary library, CommConfig config) {
    Runnable patience = MeetingPlace.patience(config);
    initialise(library, config, patience);
    return MeetingPlace.find(config, patience);
  }

  private static void checkTags(MpiLibrary library, long comm) {
    int largest = largestTag(comm);
    if (largest < Tags.LARGEST) {
      throw new BackendUnavailableException(
          "mpi",
          "%s has tags up to %d (expected: at least %d, of which 32768 are the user's)"
              .formatted(library.version(), largest, Tags.LARGEST),
          "use a library with larger tags: MPICH, Open MPI and their like have them");
    }
  }

  /// The largest tag of the library.
  private static int largestTag(long comm) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(ADDRESS);
      MemorySegment flag = arena.allocate(JAVA_INT);
      Errors.check(
          Mpi.commGetAttr(comm, Functions.constants().tagUb, value, flag), "MPI_Comm_get_attr");
      return flag.get(JAVA_INT, 0) == 0
          ? 32767
          : value.get(ADDRESS, 0).reinterpret(Integer.BYTES).get(JAVA_INT, 0);
    }
  }

  /// Finds out whether the library shares memory between the ranks of each host: it may be told not
  /// to, and a window that it makes all the same has no memory.
  private static void probeSharing(MpiJob job, MpiCommunicator world) {
    if (world.size() == 1) {
      return;
    }
    long comm = world.group().collectives();
    List<Integer> allRanks = IntStream.range(0, world.size()).boxed().toList();
    long sharing = world.group().make("open", allRanks, () -> Comms.sharing(comm));
    boolean isShared = Comms.ranks(sharing, comm).containsAll(world.group().ranksHere());
    try (ClosedWindows.Chosen closed = Library.closedWindows().choose(world.group().members())) {
      long[] all = {isShared ? 1 : 0, -closed.count()}; // of an earlier launch in this process
      world.run(new Collective.AllReduce(CommData.of(all), CommData.of(all), ReduceOp.MIN));
      job.sharesMemory(all[0] == 1);
      if (!job.sharesMemory() || world.group().ranksHere().size() < world.size()) {
        Library.markNetwork();
      }
      closed.free(world, (int) -all[1], CallSignature.Purpose.REGION, "open");
    }
    Comms.free(sharing); // all have made it, and nobody has used it
  }
}
