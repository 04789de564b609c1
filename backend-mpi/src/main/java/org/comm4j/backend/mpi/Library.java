package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.jspecify.annotations.Nullable;

/// The library's life in this process. It is initialised once, by the first communicator, and
/// finalised once, when the JVM ends: it can't be initialised again. Nothing is finalised that
/// others have initialised, nor where it would wait for ranks that are gone; and the JVM's end does
/// not wait for a library that does not come back although all ranks are there.
///
/// A launcher ends all processes when one ends that has not finalised the library, whatever they do
/// then. So the JVM's end waits for the others; after a failure as long as ranks may be late.
final class Library {
  private static final long CLOSING_NS = 500_000_000;
  private static final long ABSENT_MILLIS = 3_000;
  private static final long FINALIZE_MILLIS = 5_000; // when all ranks are there
  private static final long POLL_NS = 1_000_000;

  /// Longer than a rank needs to come out of a barrier that others have left: up to 60 ms were seen
  /// with 9 busy processes on 2 processors.
  private static final long QUIET_NS = 300_000_000;

  private static final CountDownLatch ALL_COME = new CountDownLatch(1);
  private static final Retired RETIRED = new Retired();
  private static final ClosedWindows CLOSED_WINDOWS = new ClosedWindows();

  /// How long the end of the JVM waits for what is closed meanwhile. Not final for tests.
  static volatile long closingNs = CLOSING_NS;

  /// How long it waits, and calls nothing, before it finalises. Not final for tests.
  static volatile long quietNs = QUIET_NS;

  private static @Nullable FutureTask<Boolean> starting; // whether it is ours
  private static volatile @Nullable Signals signals; // as they were before
  private static boolean isReady;
  private static volatile boolean isWorldLost;
  private static boolean areAbsent; // ranks, which may never come
  private static boolean isLost; // a request, which may never end
  private static long timeoutNs = Long.MAX_VALUE; // of the last launch
  private static volatile boolean usesNetwork;
  private static int jobs;
  private static int threadLevel;

  private Library() {}

  /// Loads and initialises it, unless that has happened.
  ///
  /// @param patience throws if other ranks are not to be waited for any longer; that goes on then,
  ///   and who calls this later waits for it
  /// @throws BackendUnavailableException if it was finalised already, can't be initialised, or has
  ///   lost its world
  static void initialise(MpiLibrary library, ThreadLevel level, Runnable patience) {
    makeReady(isOurs(started(library, level), patience));
    if (isFinalised()) {
      throw new BackendUnavailableException(
          "mpi",
          "%s was finalised in this process already and can't be initialised again"
              .formatted(library.version()),
          "let comm4j finalise it, which happens when the JVM ends");
    }
    if (isWorldLost) {
      throw new BackendUnavailableException(
          "mpi",
          "this process gave up a communicator of all ranks that was being made, and %s can't go on"
              .formatted(library.version()),
          "start the job again; raise COMM_JOIN_TIMEOUT if ranks may take longer");
    }
  }

  private static boolean isOurs(FutureTask<Boolean> started, Runnable patience) {
    boolean isOver = false;
    try {
      boolean isOurs = Worker.await(started, patience);
      isOver = true;
      return isOurs;
    } finally {
      if (!isOver) {
        restoreSignals();
        markAbsent();
      }
    }
  }

  /// The program goes on beside the library, which may never come back.
  private static void restoreSignals() {
    Signals before = signals;
    if (before != null) {
      before.restore();
    }
  }

  /// On a thread of its own, since the library waits for all ranks there and can't be thrown out.
  private static synchronized FutureTask<Boolean> started(MpiLibrary library, ThreadLevel level) {
    FutureTask<Boolean> last = starting;
    if (last != null && last.state() != Future.State.FAILED) {
      Functions.load(library, level); // refuses another one
      return last;
    }
    FutureTask<Boolean> next = new FutureTask<>(() -> start(library, level));
    starting = next;
    Thread.ofPlatform().daemon().name("comm4j-mpi-initialise").start(next);
    return next;
  }

  /// {@return whether it is ours, and to be finalised, also where it can't be used}
  private static boolean start(MpiLibrary library, ThreadLevel level) {
    Functions.load(library, level);
    try (Signals kept = Signals.keep(); // an MPI may load UCX only now
        Arena arena = Arena.ofConfined()) {
      signals = kept;
      if (isFinalised() || Errors.ask("MPI_Initialized", Mpi::initialized) != 0) {
        return false;
      }
      MemorySegment provided = arena.allocate(JAVA_INT);
      int code =
          Mpi.initThread(MemorySegment.NULL, MemorySegment.NULL, level.inLibrary(), provided);
      if (code != Constants.SUCCESS) {
        throw new BackendUnavailableException(
            "mpi",
            "MPI_Init_thread of %s returned %d".formatted(library.version(), code),
            "see what the library and its launcher have printed");
      }
      Runtime.getRuntime().addShutdownHook(new Thread(Library::finish, "comm4j-mpi-finalize"));
      return true;
    }
  }

  /// On the caller's thread: the program may have initialised it for that one alone.
  private static synchronized void makeReady(boolean isOurs) {
    if (isReady || isFinalised()) {
      return;
    }
    ThreadLevel wanted = Functions.level();
    Constants constants = Functions.constants();
    threadLevel = Errors.ask("MPI_Query_thread", Mpi::queryThread);
    long comm = constants.commWorld; // whose handler a program finds changed, as the README says
    Errors.check(Mpi.commSetErrhandler(comm, constants.errorsReturn), "MPI_Comm_set_errhandler");
    // whose handler errors without a communicator go to, from MPI 4 on
    Errors.check(
        Mpi.commSetErrhandler(constants.commSelf, constants.errorsReturn),
        "MPI_Comm_set_errhandler");
    if (threadLevel < wanted.inLibrary()) { // they have an order
      throw new BackendUnavailableException(
          "mpi",
          "%s gives thread level %s (expected: %s)"
              .formatted(Functions.library().version(), threadLevelName(), wanted.shown()),
          lowLevelRemedy(wanted, isOurs));
    }
    isReady = true;
  }

  private static String lowLevelRemedy(ThreadLevel wanted, boolean isOurs) {
    if (threadLevel == ThreadLevel.SERIALIZED.inLibrary()) {
      return "set %s=serialized: then threads wait for each other".formatted(ThreadLevel.OPTION);
    }
    return isOurs
        ? "use a library that was built with support for threads"
        : "initialise MPI with MPI_Init_thread and %s, or let comm4j do it"
            .formatted(wanted.shown());
  }

  /// How the library lets threads call it, in MPI's words.
  static synchronized String threadLevelName() {
    Constants constants = Functions.constants();
    if (threadLevel == constants.threadMultiple) {
      return "MPI_THREAD_MULTIPLE";
    }
    if (threadLevel == constants.threadSerialized) {
      return "MPI_THREAD_SERIALIZED";
    }
    return threadLevel == constants.threadFunneled ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE";
  }

  private static boolean isFinalised() {
    return Errors.ask("MPI_Finalized", Mpi::finalized) != 0;
  }

  /// Communicators that are closed here but not yet freed.
  static Retired retired() {
    return RETIRED;
  }

  /// Windows of regions that are closed here but not yet freed.
  static ClosedWindows closedWindows() {
    return CLOSED_WINDOWS;
  }

  /// A launch opens its first communicator.
  ///
  /// @param mostNs how long its ranks may be late
  static synchronized void jobStarted(long mostNs) {
    jobs++;
    timeoutNs = mostNs;
  }

  /// It has opened it, so all ranks are there, whatever was before.
  static synchronized void jobOpened() {
    areAbsent = false;
    isLost = false;
  }

  /// A launch's last communicator is closed.
  static synchronized void jobEnded() {
    jobs--;
    Library.class.notifyAll();
  }

  /// A failure has left something in the library that may never end.
  static synchronized void markLost() {
    isLost = true;
  }

  /// What all ranks do together with the library's world was given up: nothing of that which comes
  /// after it would match.
  static void loseWorld() {
    isWorldLost = true;
    markAbsent(); // for who finalises
  }

  /// All ranks have come where they should.
  static synchronized void allCame() {
    areAbsent = false;
  }

  /// Ranks are gone, or have not come where they should.
  static synchronized void markAbsent() {
    areAbsent = true;
  }

  /// Ranks are there that share no memory with others.
  static void markNetwork() {
    usesNetwork = true;
  }

  private static synchronized void finish() {
    try {
      if (!areJobsOver() || isFinalised()) {
        return; // what is open would be in its way
      }
      Thread finishing =
          Thread.ofPlatform().daemon().name("comm4j-mpi-finish").start(Library::finishNow);
      if (areAbsent) { // it may wait for ever
        finishing.join(ABSENT_MILLIS);
      } else if (ALL_COME.await(patienceNs(), TimeUnit.NANOSECONDS)) { // ranks may go on
        finishing.join(FINALIZE_MILLIS);
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    }
  }

  /// How long the others are waited for: they may wait for what never ends, if anything does not.
  private static long patienceNs() {
    return isLost ? timeoutNs : Long.MAX_VALUE;
  }

  /// Waits a little for those that the program ends while the JVM does: its hooks run beside ours.
  private static boolean areJobsOver() throws InterruptedException {
    long endNs = System.nanoTime() + closingNs;
    for (long leftNs = closingNs; jobs > 0 && leftNs > 0; leftNs = endNs - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(Library.class, leftNs);
    }
    return jobs == 0;
  }

  private static void finishNow() {
    try {
      awaitAll();
    } catch (BackendException _) {
      // the library fails, perhaps also to finalise, which is tried
    } finally {
      ALL_COME.countDown();
    }
    if (Worker.areOutWithin(CLOSING_NS)) { // else what was given up would be in its way
      int ignored = Mpi.finish();
    }
  }

  /// Returns when all ranks have come, and none of them moves its messages along any more.
  ///
  /// In MPICH's UCX a rank begins to finalise by asking each other rank for an answer, which that
  /// gives whenever it moves messages along, and when all have answered it waits without moving
  /// anything. So a rank that answers before it begins itself waits for ever then: nobody answers
  /// it. That happened to who came out of the barrier late, as its processor was busy.
  private static void awaitAll() {
    long endNs = System.nanoTime() + CLOSING_NS;
    while (!RETIRED.free() && System.nanoTime() - endNs < 0) {
      LockSupport.parkNanos(POLL_NS);
    }
    long world = Functions.constants().commWorld;
    Requests come = new Requests(1);
    Errors.check(MpiCollectives.startBarrier(world, come.next()), "MPI_Ibarrier");
    while (!come.test()) {
      LockSupport.parkNanos(POLL_NS);
    }
    Errors.check(MpiCollectives.barrier(world), "MPI_Barrier");
    if (usesNetwork && Functions.library().abi() == Abi.MPICH) {
      long quietEndNs = System.nanoTime() + quietNs;
      while (System.nanoTime() - quietEndNs < 0) {
        LockSupport.parkNanos(quietNs);
      }
    }
  }
}
